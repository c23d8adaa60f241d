"""The guard: every way a candidate has of changing more than its kernel file, one test each."""

from __future__ import annotations

import os
import socket
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import guard
from orchestrator.errors import WorkspaceError
from orchestrator.guard import touched
from orchestrator.records import Finding, Status
from orchestrator.text import printable
from orchestrator.tree import KERNEL_BYTES, lay_out, read_kernel, remove_tree, write_reply_files

KERNEL = "rmsnorm_triton.py"
BASELINE = {
    "SPEC.md": b"# rmsnorm\n",
    "ref.py": b"import torch\n\n\ndef rmsnorm_ref(x, w):\n    return x\n",
    "test_correctness.py": b"RTOL = 1e-5\nATOL = 1e-6\nassert close(RTOL, ATOL)\n",
    "bench.py": b"print('latency')\r\n",
    ".gitignore": b"*.log\n__pycache__/\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "attempt"
    lay_out(BASELINE, folder)
    (folder / KERNEL).write_bytes(b"import triton\n")
    (folder / KERNEL).chmod(0o644)
    yield folder
    remove_tree(folder)


def only(tree: Path, baseline: dict[str, bytes] = BASELINE) -> Finding:
    """The one finding of a folder, checked for what all findings have in common; and the folder can be put back."""
    findings = touched(baseline, tree, KERNEL)
    assert len(findings) == 1, findings
    (finding,) = findings
    assert finding.status is Status.TAMPERED
    assert KERNEL in finding.advice
    assert len(finding.text) <= 160
    restore(baseline, tree)
    assert_restored(tree, baseline)
    return finding


def restore(baseline: dict[str, bytes], tree: Path) -> None:
    """What the next attempt does: the old folder goes, a new one is laid out."""
    remove_tree(tree)
    lay_out(baseline, tree)


def assert_restored(tree: Path, baseline: dict[str, bytes] = BASELINE) -> None:
    assert {path.name: path.read_bytes() for path in tree.iterdir()} == baseline
    assert {path.lstat().st_mode & 0o7777 for path in tree.iterdir()} == {0o644}
    assert touched(baseline, tree, KERNEL) == ()


# --- what is in order -----------------------------------------------------------------------------------------------


def test_an_honest_tree_has_no_findings(tree: Path) -> None:
    assert touched(BASELINE, tree, KERNEL) == ()


def test_a_missing_kernel_is_not_tampering(tree: Path) -> None:
    (tree / KERNEL).unlink()
    assert touched(BASELINE, tree, KERNEL) == ()
    assert read_kernel(tree, KERNEL) is None


def test_a_rewritten_file_with_the_same_content_is_not_tampering(tree: Path) -> None:
    (tree / "ref.py").unlink()
    (tree / "ref.py").write_bytes(BASELINE["ref.py"])
    assert touched(BASELINE, tree, KERNEL) == ()


def test_the_umask_does_not_reach_the_files(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        lay_out(BASELINE, tmp_path / "attempt")
        assert write_reply_files(tmp_path / "attempt", {KERNEL: b"x"}) == ()
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "attempt").iterdir()} == {0o644}


# --- files of the baseline ------------------------------------------------------------------------------------------


def test_edited_test_is_named_with_its_line(tree: Path) -> None:
    (tree / "test_correctness.py").write_bytes(BASELINE["test_correctness.py"].replace(b"1e-6", b"1e+6"))
    finding = only(tree)
    assert (finding.where, finding.message) == ("test_correctness.py", "edited")
    assert finding.text == r"line 2: 'ATOL = 1e+6\n'; was 'ATOL = 1e-6\n'"


def test_edit_of_the_same_length_and_time_is_found(tree: Path) -> None:
    path = tree / "test_correctness.py"
    before = path.stat()
    path.write_bytes(BASELINE["test_correctness.py"].replace(b"1e-5", b"1e+5"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert only(tree).message == "edited"


def test_appended_line_is_named(tree: Path) -> None:
    with (tree / "ref.py").open("ab") as file:
        file.write(b"rmsnorm_ref = None\n")
    assert only(tree).text == r"line 6: 'rmsnorm_ref = None\n'; was nothing"


def test_emptied_file_is_named(tree: Path) -> None:
    (tree / "ref.py").write_bytes(b"")
    assert only(tree).text == r"line 1: nothing; was 'import torch\n'"


def test_line_ends_count(tree: Path) -> None:
    (tree / "bench.py").write_bytes(b"print('latency')\n")
    assert only(tree).where == "bench.py"


def test_edited_ref(tree: Path) -> None:
    (tree / "ref.py").write_bytes(b"from rmsnorm_triton import rmsnorm_triton as rmsnorm_ref\n")
    assert (finding := only(tree)).where == "ref.py"
    assert "rmsnorm_triton as" in finding.text


def test_deleted_test(tree: Path) -> None:
    (tree / "test_correctness.py").unlink()
    finding = only(tree)
    assert (finding.where, finding.message) == ("test_correctness.py", "deleted")


def test_exec_bit_on_a_baseline_file(tree: Path) -> None:
    (tree / "bench.py").chmod(0o755)
    finding = only(tree)
    assert finding.where == "bench.py"
    assert "0755" in finding.message


def test_unreadable_baseline_file(tree: Path) -> None:
    (tree / "ref.py").chmod(0)
    finding = only(tree)
    assert (finding.where, "cannot be read" in finding.message) == ("ref.py", True)


def test_baseline_file_replaced_by_a_symlink_to_an_equal_file(tree: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin.py"
    twin.write_bytes(BASELINE["ref.py"])
    (tree / "ref.py").unlink()
    (tree / "ref.py").symlink_to(twin)
    assert "symlink" in only(tree).message
    assert twin.read_bytes() == BASELINE["ref.py"]


def test_baseline_file_replaced_by_a_folder(tree: Path) -> None:
    (tree / "ref.py").unlink()
    (tree / "ref.py").mkdir()
    assert "a folder" in only(tree).message


def test_huge_baseline_file_is_not_read_whole(tree: Path) -> None:
    with (tree / "ref.py").open("r+b") as file:
        file.truncate(1 << 40)  # sparse; reading it would take minutes and all memory
    assert only(tree).message == "edited"


# --- the kernel -----------------------------------------------------------------------------------------------------


def test_symlinked_kernel(tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "outside.py"
    target.write_text("secret")
    (tree / KERNEL).unlink()
    (tree / KERNEL).symlink_to(target)
    assert read_kernel(tree, KERNEL) is None
    finding = only(tree)
    assert (finding.where, "symlink to" in finding.message) == (KERNEL, True)
    assert target.read_text() == "secret"


def test_dangling_symlink_as_kernel(tree: Path) -> None:
    (tree / KERNEL).unlink()
    (tree / KERNEL).symlink_to("/nowhere/at/all")
    assert "/nowhere/at/all" in only(tree).message


def test_kernel_that_is_a_folder(tree: Path) -> None:
    (tree / KERNEL).unlink()
    (tree / KERNEL).mkdir()
    assert read_kernel(tree, KERNEL) is None
    assert "a folder" in only(tree).message


def test_kernel_that_is_a_named_pipe_does_not_block(tree: Path) -> None:
    (tree / KERNEL).unlink()
    os.mkfifo(tree / KERNEL)
    assert read_kernel(tree, KERNEL) is None
    assert "a named pipe" in only(tree).message


def test_kernel_that_is_a_socket(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / KERNEL).unlink()
    monkeypatch.chdir(tree)  # a socket's path is short by law
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(KERNEL)
        assert read_kernel(tree, KERNEL) is None
        assert "a socket" in only(tree).message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_kernel_that_is_a_device(tree: Path) -> None:
    (tree / KERNEL).unlink()
    try:
        os.mknod(tree / KERNEL, 0o020644, os.makedev(1, 5))  # /dev/zero: reading it would never end
    except PermissionError:
        pytest.skip("this machine's root makes no devices")
    assert read_kernel(tree, KERNEL) is None
    assert "a device" in only(tree).message


def test_hard_linked_kernel(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("import triton\n")
    (tree / KERNEL).unlink()
    (tree / KERNEL).hardlink_to(outside)
    assert "a hard link" in only(tree).message


@pytest.mark.parametrize("mode", [0o755, 0o4644, 0o2644])
def test_mode_change_of_the_kernel(tree: Path, mode: int) -> None:
    (tree / KERNEL).chmod(mode)
    finding = only(tree)
    assert (finding.where, f"{mode:04o}" in finding.message) == (KERNEL, True)


def test_oversized_kernel_is_named_and_not_read_whole(tree: Path) -> None:
    with (tree / KERNEL).open("r+b") as file:
        file.truncate(1 << 40)
    assert len(read_kernel(tree, KERNEL) or b"") == KERNEL_BYTES + 1
    assert "larger than" in only(tree).message


def test_read_kernel_gives_the_bytes(tree: Path) -> None:
    assert read_kernel(tree, KERNEL) == b"import triton\n"


# --- what was added -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("conftest.py", "pytest would import it"),
        ("sitecustomize.py", "start-up"),
        ("torch.py", "shadow torch"),
        ("triton.py", "shadow triton"),
        ("math.py", "shadow math"),
        ("ref.cpython-311-x86_64-linux-gnu.so", "shadow ref"),
        ("pytest.ini", "options"),
        (".gitattributes", "filters"),
        ("notes.txt", "not part of the baseline"),
    ],
)
def test_new_file_is_named_with_what_it_would_do(tree: Path, name: str, effect: str) -> None:
    (tree / name).write_text("x")
    finding = only(tree)
    assert finding.where == name
    assert effect in finding.message


def test_ignored_file(tree: Path) -> None:
    (tree / "cheat.log").write_text("the expected values")
    assert only(tree).where == "cheat.log"


def test_gitattributes_hides_nothing(tree: Path) -> None:
    (tree / ".gitattributes").write_text("test_correctness.py filter=clean -diff export-ignore\n")
    (tree / "test_correctness.py").write_text("print('PASS')\n")
    assert [finding.where for finding in touched(BASELINE, tree, KERNEL)] == ["test_correctness.py", ".gitattributes"]


def test_nested_git_with_its_own_index_and_hooks(tree: Path) -> None:
    hooks = tree / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("#!/bin/sh\ntouch /tmp/was-run\n")
    (hooks / "pre-commit").chmod(0o755)
    (tree / ".git" / "index").write_bytes(b"DIRC")
    finding = only(tree)
    assert finding.where == ".git"
    assert "index" in finding.text
    assert "hooks" in finding.text
    assert "hooks can run code" in finding.message


def test_git_file_that_points_elsewhere(tree: Path) -> None:
    (tree / ".git").write_text("gitdir: /elsewhere\n")
    assert only(tree).where == ".git"


def test_pycache_that_shadows_ref(tree: Path) -> None:
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "ref.cpython-311.pyc").write_bytes(b"\0")
    finding = only(tree)
    assert finding.where == "__pycache__"
    assert "ref.cpython-311.pyc" in finding.text
    assert "in place of the sources" in finding.message


@pytest.mark.parametrize("module", ["ref", "rmsnorm_triton", "torch"])
def test_folder_that_is_imported_before_the_file(tree: Path, module: str) -> None:
    (tree / module).mkdir()
    (tree / module / "__init__.py").write_text("")
    assert f"shadow {module}" in only(tree).message


@pytest.mark.parametrize("name", ["REF.py", "Test_Correctness.py", "rmsnorm_Triton.py", "ref\u200b.py", "\uff52ef.py"])
def test_name_that_differs_in_case_or_unicode_form_only(tree: Path, name: str) -> None:
    (tree / name).write_text("x")
    assert "in case or Unicode form only" in only(tree).message


def test_decomposed_name(tree: Path) -> None:
    baseline = {**BASELINE, "référence.py": b"x"}
    restore(baseline, tree)
    (tree / unicodedata.normalize("NFD", "référence.py")).write_bytes(b"x")
    assert "differs from référence.py" in only(tree, baseline).message


def test_name_with_control_characters_is_escaped(tree: Path) -> None:
    (tree / "a\n\x1b[2J\u202eb.py").write_text("x")
    assert only(tree).where == r"a\n\x1b[2J\u202eb.py"


def test_name_that_is_no_text(tree: Path) -> None:
    Path(os.fsdecode(os.fsencode(tree) + b"/\xff\xfe.py")).write_text("x")
    assert only(tree).where == r"\udcff\udcfe.py"


def test_symlink_to_a_folder_is_not_followed(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    (tree / "link").symlink_to(outside)
    finding = only(tree)
    assert "symlink" in finding.message
    assert "precious" not in finding.text
    assert (outside / "precious").read_text() == "kept"


def test_unreadable_folder_is_named_and_removed(tree: Path) -> None:
    (tree / "locked" / "inner").mkdir(parents=True)
    (tree / "locked" / "inner" / "file").write_text("x")
    (tree / "locked" / "inner").chmod(0)
    (tree / "locked").chmod(0)
    assert only(tree).where == "locked"


def test_thousands_of_files_are_counted_and_the_grave_ones_listed(tree: Path) -> None:
    for number in range(3000):
        (tree / f"a{number:04}").touch()
    (tree / "torch.py").touch()
    (tree / "ref.py").write_text("x")
    findings = touched(BASELINE, tree, KERNEL)
    assert [finding.where for finding in findings[:3]] == ["ref.py", "torch.py", "a0000"]
    assert len(findings) == guard.FINDINGS + 1
    assert findings[-1].where == f"{3002 - guard.FINDINGS} more"
    restore(BASELINE, tree)
    assert_restored(tree)


def test_more_entries_than_are_looked_at_is_a_finding(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "ENTRIES", 8)
    for number in range(10):
        (tree / f"a{number:04}").touch()
    assert "more than 8 entries" in touched(BASELINE, tree, KERNEL)[-1].message


def test_nesting_deeper_than_the_stack_and_the_longest_path(tree: Path) -> None:
    """A folder 3000 levels down cannot be named by a path; it is found by its top and removed."""
    here = os.open(tree, os.O_DIRECTORY)
    for _ in range(3000):
        os.mkdir("ab", dir_fd=here)
        below = os.open("ab", os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert only(tree).where == "ab"


def test_folder_that_is_gone(tree: Path) -> None:
    remove_tree(tree)
    assert "gone" in only(tree).message


def test_folder_replaced_by_a_symlink(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    lay_out(BASELINE, outside)
    remove_tree(tree)
    tree.symlink_to(outside)
    assert "no folder any more" in only(tree).message
    assert_restored(outside)


# --- a reply's files ------------------------------------------------------------------------------------------------


def test_reply_files_are_written(tree: Path) -> None:
    assert write_reply_files(tree, {KERNEL: b"new", "./ref.py": b"edited", "sub/torch.py": b"x"}) == ()
    assert read_kernel(tree, KERNEL) == b"new"
    assert [finding.where for finding in touched(BASELINE, tree, KERNEL)] == ["ref.py", "sub"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/tmp/x.py", "absolute"),
        ("../x.py", "leaves"),
        ("a/../../x.py", "leaves"),
        ("a\\x.py", "backslash"),
        ("a\0.py", "NUL"),
        (".git/hooks/pre-commit", ".git"),
        ("a/.GIT/config", ".git"),
        (".g\u200bit/config", ".git"),
        ("", "folder"),
        (".", "folder"),
        ("sub/", "folder"),
        ("\ud800.py", "no text"),
        ("a" * 300, "too long"),
        ("a/" * 20 + "x.py", "too long"),
        ("/".join(["a" * 255] * 16), "too long"),
        ("/".join(["\N{LATIN SMALL LETTER E WITH ACUTE}" * 127] * 5), "too long"),
        ("ref.py/x.py", "on its way"),
    ],
)
def test_reply_name_that_is_not_written(tree: Path, name: str, why: str) -> None:
    before = sorted(tree.parent.rglob("*"))
    (finding,) = write_reply_files(tree, {name: b"x"})
    assert finding.status is Status.TAMPERED
    words = {".git": "git repository"}.get(why, why)
    assert words in finding.message
    assert sorted(tree.parent.rglob("*")) == before
    assert touched(BASELINE, tree, KERNEL) == ()


def test_reply_does_not_write_through_a_symlink(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("kept")
    (tree / "folder").symlink_to(outside)
    (tree / "file").symlink_to(outside / "file")
    findings = write_reply_files(tree, {"folder/new.py": b"x", "file": b"x"})
    assert ["symlink" in finding.message for finding in findings] == [True, True]
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("file", "kept")]


def test_reply_does_not_write_into_a_hard_links_other_name(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("kept")
    (tree / KERNEL).unlink()
    (tree / KERNEL).hardlink_to(outside)
    assert write_reply_files(tree, {KERNEL: b"new"}) == ()
    assert outside.read_text() == "kept"


# --- the rest -------------------------------------------------------------------------------------------------------


def test_printable_keeps_text_and_caps_it() -> None:
    assert printable("größe 1 → 2") == "größe 1 → 2"
    assert printable("x" * 500, 10) == "x" * 9 + "…"
    assert printable("a\tb\r\u2028\x85") == r"a\tb\r\u2028\x85"


def test_a_full_folder_is_not_laid_out_into(tree: Path) -> None:
    with pytest.raises(WorkspaceError, match="not empty"):
        lay_out(BASELINE, tree)


def test_an_error_of_the_system_is_one_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match="cannot write into"):
        lay_out(BASELINE, tmp_path / "file" / "below")
