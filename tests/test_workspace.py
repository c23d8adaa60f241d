"""The workspace against the real git: what it writes, what it refuses, and many runs at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from orchestrator import workspace
from orchestrator.errors import WorkspaceError
from orchestrator.workspace import Champion, Workspace, attempt_folder

KERNEL = "rmsnorm_triton.py"
FILES = {
    "SPEC.md": b"# rmsnorm\n",
    "ref.py": b"import torch\n",
    "test_correctness.py": b"RTOL = 1e-5\r\nATOL\xff\0\n",  # line ends and bytes that a filter would touch
    "bench.py": b"",
}
CHANGED = {**FILES, "SPEC.md": b"# rmsnorm, tighter\n"}


def git(space: Workspace, *args: str) -> str:
    """What a person's git says about the repository, without any of our code."""
    command = ["git", "--git-dir", str(space.path), *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def tree_of(space: Workspace, commit: str) -> dict[str, bytes]:
    names = git(space, "ls-tree", "-r", "--name-only", commit).splitlines()
    command = ["git", "--git-dir", str(space.path), "cat-file", "blob"]
    return {
        name: subprocess.run([*command, f"{commit}:{name}"], check=True, capture_output=True).stdout for name in names
    }


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return Workspace.open(tmp_path / "workspaces", "rmsnorm")


# --- history --------------------------------------------------------------------------------------------------------


def test_the_baseline_is_committed_before_anything_else(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    assert run.name == "run/r1"
    assert run.baseline == git(space, "rev-parse", "main") == git(space, "rev-parse", "run/r1")
    assert tree_of(space, "main") == FILES == dict(run.files)
    assert (
        git(space, "log", "-1", "--format=%an <%ae> %cn", "main")
        == "orchestrator <orchestrator@localhost> orchestrator"
    )


def test_an_unchanged_baseline_is_not_committed_again(space: Workspace) -> None:
    first = space.start_run(FILES, "r1")
    assert space.start_run(dict(reversed(FILES.items())), "r2").baseline == first.baseline
    assert git(space, "rev-list", "--count", "main") == "1"


def test_a_run_tells_its_story_to_plain_git(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    trailers = {"Status": "WRONG_VALUES", "Round": "1", "Stage": "correct", "Prompt-Sha256": "ab12"}
    first = run.commit_attempt(KERNEL, b"one", "attempt 1 (correct, round 1): WRONG_VALUES", trailers)
    empty = run.commit_attempt(KERNEL, None, "attempt 2 (correct, round 2): NO_CODE", {"Status": "NO_CODE"})
    third = run.commit_attempt(KERNEL, b"three", "attempt 3 (correct, round 3): PASSED", {"Status": "PASSED"})
    last = run.commit_file("DECISION.md", b"merged\n", "decision: MERGE\n")
    merge = run.merge("merge run/r1: rmsnorm is faster\n")

    assert git(space, "log", "--format=%s", "--first-parent", "run/r1").splitlines()[:4] == [
        "decision: MERGE",
        "attempt 3 (correct, round 3): PASSED",
        "attempt 2 (correct, round 2): NO_CODE",
        "attempt 1 (correct, round 1): WRONG_VALUES",
    ]
    shown = git(space, "log", "-1", "--format=%(trailers:only)", first)
    assert shown.splitlines() == [f"{key}: {value}" for key, value in trailers.items()]
    assert tree_of(space, first) == {**FILES, KERNEL: b"one"}
    assert git(space, "rev-parse", f"{empty}^{{tree}}") == git(space, "rev-parse", f"{first}^{{tree}}")
    assert tree_of(space, third) == {**FILES, KERNEL: b"three"}
    assert git(space, "rev-parse", "main", "main^1", "main^2").splitlines() == [merge, run.baseline, last]
    assert tree_of(space, "main") == {**FILES, KERNEL: b"three", "DECISION.md": b"merged\n"}
    assert git(space, "fsck", "--strict", "--no-dangling") == ""
    modes = {line.split()[0] for line in git(space, "ls-tree", "-r", "main").splitlines()}
    assert modes == {"100644"}


def test_a_value_cannot_forge_a_trailer_or_a_subject(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    values = {"Status": "CRASHED", "Model": "m\n\nStatus: PASSED\r\nStatus: PASSED\x00\u2028Status: PASSED\ud800"}
    commit = run.commit_attempt(KERNEL, b"x", "attempt 1\n\nStatus: PASSED", values)
    assert git(space, "log", "-1", "--format=%(trailers:key=Status,valueonly)", commit) == "CRASHED"
    assert git(space, "log", "-1", "--format=%s", commit) == r"attempt 1\n\nStatus: PASSED"
    assert len(git(space, "log", "-1", "--format=%B", commit).splitlines()) == 4


def test_a_changed_spec_is_a_new_baseline_beside_the_champion(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"champion", "attempt 1", {})
    run.commit_file("DECISION.md", b"why", "decision")
    merged = run.merge("merge")
    again = space.start_run(CHANGED, "r2")
    assert again.baseline == git(space, "rev-parse", "main") != run.baseline
    assert git(space, "rev-parse", "main^") == merged
    assert git(space, "log", "-1", "--format=%s", "main") == "baseline changed: SPEC.md"
    assert tree_of(space, "main") == {**CHANGED, KERNEL: b"champion", "DECISION.md": b"why"}
    assert space.read(KERNEL) == b"champion"


def test_a_demoted_champion_leaves_main_and_stays_in_history(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"champion", "attempt 1", {})
    run.commit_file("DECISION.md", b"why", "decision")
    merged = run.merge("merge run/r1: fast")
    champion = space.champion(KERNEL)
    assert champion == Champion(merged, KERNEL, b"champion", "r1") and space.last_demotion() is None
    space.start_run(CHANGED, "r2")  # another baseline beside it
    assert space.champion(KERNEL) == champion and space.is_baseline(CHANGED) and not space.is_baseline(FILES)
    demotion = space.demote(champion, "demoted: WRONG_VALUES", {"Status": "WRONG_VALUES"})
    assert space.champion(KERNEL) is None and tree_of(space, "main") == CHANGED
    assert git(space, "log", "-1", "--format=%(trailers:only)", "main").splitlines() == [
        *(f"Demoted: {merged}", "Status: WRONG_VALUES"),
    ]
    assert tree_of(space, "main^")[KERNEL] == b"champion"
    assert space.last_demotion() is not None
    assert space.demote(champion, "again", {}) == demotion == git(space, "rev-parse", "main"), "once is enough"
    assert run.merge_commit() == merged, "that it won once stays true"
    better = space.start_run(CHANGED, "r3")
    better.commit_attempt(KERNEL, b"better", "attempt 1", {})
    better.merge("merge run/r3: faster")
    assert space.demote(champion, "again", {}) == demotion, "another champion is not touched"
    assert space.read(KERNEL) == b"better"


def test_a_repository_that_somebody_packed_is_read_and_written_all_the_same(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"champion", "attempt 1", {})
    tip = space.tip("run/r1")
    git(space, "gc", "-q", "--prune=now")
    assert not list((space.path / "refs" / "heads").rglob("r1")) and not list((space.path / "objects").glob("??/*"))
    assert space.tip("run/r1") == tip and space.tip("run/r2") == ""
    again = space.open_run("r1")
    assert dict(again.files) == FILES and space.read_at(KERNEL, tip) == b"champion"
    again.commit_file("DECISION.md", b"why", "decision")
    again.merge("merge run/r1: fast")
    assert tree_of(space, "main") == {**FILES, KERNEL: b"champion", "DECISION.md": b"why"}
    assert git(space, "fsck", "--strict", "--no-dangling") == ""


def test_a_folder_put_on_main_by_hand_is_refused(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"champion", "attempt 1", {})
    inner = space._objects.tree({"x": space._objects.blob(b"x")})
    listing = git(space, "ls-tree", "main") + f"\n040000 tree {inner}\tfolder\n"
    made = subprocess.run(
        ["git", "--git-dir", str(space.path), "mktree"], input=listing, capture_output=True, text=True, check=True
    )
    commit = space._objects.commit(made.stdout.strip(), (space.tip("main"),), "x <y@z>", "by hand")
    space._move("main", commit, space.tip("main"))
    with pytest.raises(WorkspaceError, match="holds folder, which is no file of ours"):
        run.merge("merge")


def test_a_champion_put_there_by_hand_is_of_no_run(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"champion", "attempt 1", {})
    run.merge("merge run/r1: fast")
    entries = space._entries("main") | {KERNEL: space._objects.blob(b"by hand")}
    commit = space._commit(entries, "by hand\n", space.tip("main"))
    space._move("main", commit, space.tip("main"))
    assert space.champion(KERNEL) == Champion(commit, KERNEL, b"by hand", "")


def test_a_file_dropped_from_the_baseline_leaves_main(space: Workspace) -> None:
    space.start_run(FILES, "r1")
    fewer = {name: data for name, data in FILES.items() if name != "bench.py"}
    space.start_run(fewer, "r2")
    assert tree_of(space, "main") == fewer


def test_an_earlier_run_is_opened_again(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"x", "attempt 1", {})
    space.start_run(CHANGED, "r2")
    again = Workspace.open(space.root, "rmsnorm").open_run("r1")
    assert (again.name, again.baseline, dict(again.files)) == (run.name, run.baseline, FILES)
    with pytest.raises(WorkspaceError, match="no run r"):
        space.open_run("r")


def test_read_says_none_for_what_is_not_there(space: Workspace) -> None:
    assert space.read(KERNEL) is None
    run = space.start_run(FILES, "r1")
    assert space.read(KERNEL) is None
    run.commit_attempt(KERNEL, b"x", "attempt 1", {})
    assert (space.read(KERNEL), space.read(KERNEL, "run/r1")) == (None, b"x")


# --- merging --------------------------------------------------------------------------------------------------------


def test_merge_after_main_moved_keeps_both(space: Workspace) -> None:
    one, two = space.start_run(FILES, "r1"), space.start_run(FILES, "r2")
    one.commit_attempt("h200_" + KERNEL, b"one", "attempt 1", {})
    two.commit_attempt(KERNEL, b"two", "attempt 1", {})
    first = one.merge("merge r1")
    second = two.merge("merge r2")
    assert git(space, "rev-parse", f"{second}^1") == first
    assert tree_of(space, "main") == {**FILES, "h200_" + KERNEL: b"one", KERNEL: b"two"}


def test_merge_leaves_a_champion_alone_that_the_run_did_not_touch(space: Workspace) -> None:
    """A run that began with an old champion in its tree must not bring it back over a newer one."""
    first = space.start_run(FILES, "r1")
    first.commit_attempt(KERNEL, b"old", "attempt 1", {})
    first.merge("merge")
    slow, quick = space.start_run(CHANGED, "r2"), space.start_run(CHANGED, "r3")
    quick.commit_attempt(KERNEL, b"new", "attempt 1", {})
    quick.merge("merge")
    slow.commit_file("DECISION.md", b"slow", "decision")
    slow.merge("merge")
    assert space.read(KERNEL) == b"new"


def test_merge_refuses_when_the_baseline_changed_meanwhile(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"x", "attempt 1", {})
    space.start_run(CHANGED, "r2")
    before = git(space, "rev-parse", "main")
    with pytest.raises(WorkspaceError, match="baseline of rmsnorm changed"):
        run.merge("merge")
    assert git(space, "rev-parse", "main") == before


def test_merge_refuses_a_baseline_that_came_back_under_another_commit(space: Workspace) -> None:
    """A to B to A: what was measured in between was measured against another champion; judge again."""
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"x", "attempt 1", {})
    space.start_run(CHANGED, "r2")
    space.start_run(FILES, "r3")
    with pytest.raises(WorkspaceError, match="judge the kernel again"):
        run.merge("merge")


def test_merge_needs_something_to_merge(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    with pytest.raises(WorkspaceError, match="nothing that is not on main"):
        run.merge("merge")
    run.commit_attempt(KERNEL, b"x", "attempt 1", {})
    run.merge("merge")
    with pytest.raises(WorkspaceError, match="nothing that is not on main"):
        run.merge("merge")


# --- folders --------------------------------------------------------------------------------------------------------


def test_attempt_folder_is_plain_and_goes_away() -> None:
    with pytest.raises(KeyError), attempt_folder(FILES) as folder:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
        (folder / "locked").mkdir(mode=0)
        raise KeyError
    assert not folder.exists()


def test_lay_out_gives_the_baseline(space: Workspace, tmp_path: Path) -> None:
    space.start_run(FILES, "r1").lay_out(tmp_path / "new")
    assert {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()} == FILES


def test_export_is_what_git_has_and_not_what_memory_says(space: Workspace, tmp_path: Path) -> None:
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"an earlier attempt", "attempt 1", {})
    lied_to = replace(run, files={name: b"lies" for name in FILES})
    lied_to.export(tmp_path / "export", KERNEL, b"the kernel")
    exported = {path.name: path.read_bytes() for path in (tmp_path / "export").iterdir()}
    assert exported == {**FILES, KERNEL: b"the kernel"}


@pytest.mark.parametrize("name", ["ref.py", "../x.py", "a/b.py", ".git", "x\n.py", "", "x.lock"])
def test_a_kernel_cannot_take_a_name_of_the_baseline_or_leave(space: Workspace, tmp_path: Path, name: str) -> None:
    run = space.start_run(FILES, "r1")
    with pytest.raises(WorkspaceError):
        run.commit_attempt(name, b"x", "attempt 1", {})
    with pytest.raises(WorkspaceError):
        run.export(tmp_path / "export", name, b"x")
    assert not (tmp_path / "export").exists()


# --- refusals -------------------------------------------------------------------------------------------------------


def one_line(error: pytest.ExceptionInfo[WorkspaceError]) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("made", ["empty folder", "file", "work tree", "bare repository", "symlink", "other op"])
def test_a_foreign_folder_is_refused_and_left_alone(tmp_path: Path, made: str) -> None:
    path = tmp_path / "rmsnorm.git"
    if made == "empty folder":
        path.mkdir()
    elif made == "file":
        path.write_text("")
    elif made == "work tree":
        subprocess.run(["git", "init", "-q", str(path)], check=True)
    elif made == "bare repository":
        subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    elif made == "symlink":
        path.symlink_to(Workspace.open(tmp_path / "elsewhere", "rmsnorm").path)
    else:
        Workspace.open(tmp_path, "softmax").path.rename(path)
    before = {name for name in tmp_path.rglob("*") if name.suffix != ".lock"}
    with pytest.raises(WorkspaceError, match="choose another --workspaces folder") as error:
        Workspace.open(tmp_path, "rmsnorm")
    assert str(path) in one_line(error)
    assert {name for name in tmp_path.rglob("*") if name.suffix != ".lock"} == before


def test_a_foreign_history_is_refused(space: Workspace) -> None:
    tree = git(space, "hash-object", "-t", "tree", "-w", "/dev/null")
    identity = ["-c", "user.name=x", "-c", "user.email=x@y"]
    commit = git(space, *identity, "commit-tree", "-m", "somebody else's", tree)
    git(space, "update-ref", "refs/heads/main", commit)
    with pytest.raises(WorkspaceError, match="history that is not ours"):
        Workspace.open(space.root, "rmsnorm")


def test_a_run_id_is_used_once(space: Workspace) -> None:
    space.start_run(FILES, "r1")
    with pytest.raises(WorkspaceError, match="already a run r1"):
        space.start_run(FILES, "r1")


def test_a_run_needs_a_baseline(space: Workspace) -> None:
    with pytest.raises(WorkspaceError, match="needs a baseline"):
        space.start_run({}, "r1")
    assert space.tip("main") == ""


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "-x", "x.lock", "a..b", "x\n", "x."])
def test_names_that_are_no_names(space: Workspace, tmp_path: Path, name: str) -> None:
    with pytest.raises(WorkspaceError, match="is no run name"):
        space.start_run(FILES, name)
    with pytest.raises(WorkspaceError, match="is no op name"):
        Workspace.open(tmp_path, name)
    with pytest.raises(WorkspaceError, match="is no file name"):
        space.start_run({**FILES, name: b""}, "r1")


def test_a_damaged_repository_is_one_line(space: Workspace) -> None:
    run = space.start_run(FILES, "r1")
    tree = git(space, "rev-parse", "main^{tree}")
    (space.path / "objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(WorkspaceError, match="git cat-file failed") as error:
        run.commit_attempt(KERNEL, b"x", "attempt 1", {})
    assert str(space.path) in one_line(error)


def test_a_machine_without_git_is_told_so(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from orchestrator.workspace import Workspace as W; W.open(pathlib.Path(sys.argv[1]), 'x')"
    )
    done = run_python(code, tmp_path, PATH=str(tmp_path))
    assert done.stderr.splitlines()[-1].endswith(
        "WorkspaceError: git does not run here; install git and see that it is on PATH"
    )


def test_a_root_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match="cannot make"):
        Workspace.open(tmp_path / "file" / "below", "rmsnorm")


def test_a_lock_that_is_never_released(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever moves a ref waits for the op's lock, and does not wait for ever."""
    monkeypatch.setattr(workspace, "LOCK_SECONDS", 0.1)
    run = space.start_run(FILES, "r1")
    moves = (
        lambda: run.commit_attempt(KERNEL, b"x", "attempt 1", {}),
        lambda: run.commit_file("DECISION.md", b"x", "decision"),
        lambda: run.merge("merge"),
        lambda: space.start_run(FILES, "r2"),
        lambda: Workspace.open(space.root, "rmsnorm"),
    )
    with FileLock(space.root / "rmsnorm.lock"):
        for move in moves:
            with pytest.raises(WorkspaceError, match="another process has held"):
                move()
    for move in moves:
        move()


# --- the person's git does not count --------------------------------------------------------------------------------


def test_configuration_hooks_and_environment_of_the_person_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("reference-transaction", "pre-commit", "post-update", "pre-merge-commit"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\nexit 1\n")
        (hooks / hook).chmod(0o755)
    config = tmp_path / "config"
    config.write_text(
        f"[core]\nhooksPath = {hooks}\nautocrlf = true\n[commit]\ngpgsign = true\n[gpg]\nprogram = /bin/false\n"
        "[user]\nname = somebody\nemail = some@body\n[init]\ndefaultBranch = trunk\n[i18n]\ncommitEncoding = latin1\n"
    )
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    before = sorted(other.rglob("*"))
    for key, value in {
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_PARAMETERS": "'core.autocrlf'='true'",
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git" / "objects"),
        "GIT_NAMESPACE": "theirs",
        "GIT_QUARANTINE_PATH": str(other),
        "GIT_AUTHOR_NAME": "somebody",
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00",
        "GIT_COMMITTER_EMAIL": "some@body",
    }.items():
        monkeypatch.setenv(key, value)
    space = Workspace.open(tmp_path / "workspaces", "rmsnorm")
    run = space.start_run(FILES, "r1")
    run.commit_attempt(KERNEL, b"a\r\n", "größe", {})
    run.merge("merge")
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    assert tree_of(space, "main") == {**FILES, KERNEL: b"a\r\n"}
    assert (
        git(space, "log", "--format=%an%ae%cn%ce%G?", "main").splitlines()
        == ["orchestratororchestrator@localhostorchestratororchestrator@localhostN"] * 3
    )
    assert git(space, "log", "--format=%s", "-1", "run/r1") == "größe"
    assert "2001" not in git(space, "log", "--format=%ad")
    assert not (tmp_path / "hook-ran").exists()
    assert sorted(other.rglob("*")) == before


def test_a_broken_configuration_of_the_person_does_not_stop_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitconfig").write_text("[broken\n")
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        space = Workspace.open(tmp_path / "workspaces", "rmsnorm")
        space.start_run(FILES, "r1")
    assert tree_of(space, "main") == FILES


def test_hooks_in_the_repository_itself_are_not_run(space: Workspace, tmp_path: Path) -> None:
    hook = space.path / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\nexit 1\n")
    hook.chmod(0o755)
    space.start_run(FILES, "r1")
    assert not (tmp_path / "hook-ran").exists()


# --- several at once ------------------------------------------------------------------------------------------------

WORKER = """
import sys, pathlib
from orchestrator.workspace import Workspace
root, run_id = pathlib.Path(sys.argv[1]), sys.argv[2]
space = Workspace.open(root, "rmsnorm")
run = space.start_run({"SPEC.md": b"one", "ref.py": b"two"}, run_id)
for number in range(1, 4):
    run.commit_attempt("k.py", f"{run_id} {number}".encode(), f"attempt {number}", {"Status": "PASSED"})
run.merge(f"merge {run_id}")
"""


def environment(**extra: str) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(workspace.__file__).parents[1]), **extra}


def run_python(code: str, *args: object, **extra: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env=environment(**extra), check=False)


def assert_all_there(space: Workspace, runs: list[str]) -> None:
    """One baseline, every run's three attempts on its own branch, every merge on main, nothing broken."""
    assert git(space, "log", "--format=%s", "--first-parent", "main").splitlines()[-1].startswith("baseline: ")
    merges = git(space, "log", "--merges", "--format=%s", "--first-parent", "main").splitlines()
    assert sorted(merges) == [f"merge {run}" for run in runs]
    assert git(space, "rev-list", "--count", "--first-parent", "main") == str(len(runs) + 1)
    for run in runs:
        subjects = git(space, "log", "--format=%s", "--first-parent", f"run/{run}").splitlines()
        assert subjects[:3] == ["attempt 3", "attempt 2", "attempt 1"]
        assert len(subjects) == 4
        assert tree_of(space, f"run/{run}")["k.py"] == f"{run} 3".encode()
    assert git(space, "fsck", "--strict", "--no-dangling") == ""


def test_processes_side_by_side(tmp_path: Path) -> None:
    """Five processes make the workspace, its baseline and their runs at the same time."""
    runs = [f"p{number}" for number in range(5)]
    command = [sys.executable, "-c", WORKER, str(tmp_path)]
    started = [subprocess.Popen([*command, run], env=environment(), stderr=subprocess.PIPE) for run in runs]
    for process in started:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said.decode()
    assert_all_there(Workspace.open(tmp_path, "rmsnorm"), runs)


def test_threads_side_by_side(tmp_path: Path) -> None:
    def one(run_id: str) -> None:
        run = Workspace.open(tmp_path, "rmsnorm").start_run(FILES, run_id)
        for number in range(1, 4):
            run.commit_attempt("k.py", f"{run_id} {number}".encode(), f"attempt {number}", {})
        run.merge(f"merge {run_id}")

    runs = [f"t{number}" for number in range(5)]
    with ThreadPoolExecutor(len(runs)) as pool:
        list(pool.map(one, runs))
    assert_all_there(Workspace.open(tmp_path, "rmsnorm"), runs)


def test_two_processes_with_one_run_id(tmp_path: Path) -> None:
    """Exactly one of them gets it."""
    code = WORKER.split("for number")[0]
    command = [sys.executable, "-c", code, str(tmp_path), "same"]
    started = [subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE) for _ in range(3)]
    said = [process.communicate(timeout=60)[1].decode() for process in started]
    assert sorted(process.returncode for process in started) == [0, 1, 1]
    assert sum("already a run same" in words for words in said) == 2


def test_a_git_that_was_killed_with_its_process_leaves_no_branch_locked(space: Workspace) -> None:
    """What git has left of a move must not stop the run from going on."""
    run = space.start_run({"SPEC.md": b"one", "ref.py": b"two"}, "killed")
    left = space.path / "refs" / "heads" / "run" / "killed.lock"
    left.write_text("")
    run.commit_attempt(KERNEL, b"x", "attempt after", {})
    assert not left.exists() and git(space, "rev-list", "--count", run.name) == "2"


def test_a_git_that_outlives_its_process_is_waited_for(space: Workspace) -> None:
    run = space.start_run({"SPEC.md": b"one", "ref.py": b"two"}, "orphan")
    left = space.path / "refs" / "heads" / "run" / "orphan.lock"
    left.write_text("")
    orphan = subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep(0.7); os.unlink({str(left)!r})"])
    run.commit_attempt(KERNEL, b"x", "attempt after", {})
    assert orphan.wait() == 0, "it removed its own"


def test_a_killed_process_leaves_a_whole_repository(space: Workspace) -> None:
    code = WORKER.replace("range(1, 4)", "range(1, 10**6)")
    command = [sys.executable, "-c", code, str(space.root), "killed"]
    process = subprocess.Popen(command, env=environment(), start_new_session=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not space.tip("run/killed"):
        time.sleep(0.02)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)  # its git too, which would else move the branch once more
    process.wait()
    run = space.open_run("killed")
    run.commit_attempt(KERNEL, b"x", "attempt after", {})
    assert git(space, "fsck", "--strict", "--no-dangling") == ""
    assert int(git(space, "rev-list", "--count", run.name)) > 2
