"""What is known of the Triton that judges: the guide is the package's own, and a prompt quotes what matters of it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import pytest

from orchestrator import config, ops, resources
from orchestrator.agents import Request
from orchestrator.docs import cache, pages, select
from orchestrator.docs.guide import Entry, Guide, from_markdown, guide_of, to_markdown
from orchestrator.errors import WorkspaceError
from orchestrator.loop import run_op
from orchestrator.ops import Op
from orchestrator.prompts import Prompts
from orchestrator.records import Judging, Prompt, Reply, Report, Status, Turn, Usage
from orchestrator.watch import Silent
from tests.conftest import zoo_kernel
from tests.scripted_judge import Script, ScriptedJudge, key

OPS = resources.shipped("configs") / "ops"
TRITON = version("triton")
JUDGING = Judging("CPU, Triton's interpreter", True, {"torch": "2.13", "triton": TRITON}, ())
LACKS = Report(Status.COMPILE_ERROR, "does not compile", "module 'triton.language' has no attribute 'rsqrt_fast'")


@pytest.fixture(scope="module")
def guide() -> Guide:
    """Of the Triton that is installed here."""
    return cache.installed()


# --- the guide --------------------------------------------------------------------------------------------------------


def test_it_is_of_the_installed_triton_and_has_what_kernels_use(guide: Guide) -> None:
    assert guide.version == TRITON
    for name in (
        "tl.load",
        "tl.dot",
        "tl.associative_scan",
        "libdevice.tanh",
        "triton.cdiv",
        "tl.tensor.to",
        "tl.int64",
    ):
        assert name in guide.entries
    load = guide.entries["tl.load"]
    assert load.signature.startswith("tl.load(pointer, mask=None, other=None") and "_semantic" not in load.signature
    assert load.about.startswith("Return a tensor of data")


def test_it_survives_its_page(guide: Guide) -> None:
    hostile = guide_of("9", [Entry("tl.odd", "tl.odd(x)", "# a heading\n\n## tl.other\n\n```python\nx\n```")])
    for one in (guide, hostile):
        back = from_markdown(to_markdown(one, "Generated."))
        assert back is not None and back.version == one.version and list(back.entries) == list(one.entries)
        assert {name: entry.signature for name, entry in back.entries.items()} == {
            name: entry.signature for name, entry in one.entries.items()
        }
    assert from_markdown("# Something else\n") is None


@pytest.mark.parametrize(
    ("missing", "instead"),
    [
        ("tl.rsqrt_fast", "tl.rsqrt"),
        ("tl.tanh", "libdevice.tanh"),
        ("tl.math.pow", "libdevice.pow"),
        ("triton.language.sum_of_squares", "tl.sum"),
        ("tl.lode", "tl.load"),
        ("tl.assoc_scan", "tl.associative_scan"),
    ],
)
def test_a_missing_name_leads_to_what_may_be_meant(guide: Guide, missing: str, instead: str) -> None:
    assert guide.find(missing) is None
    assert instead in [entry.name for entry in guide.near(missing)]


def test_a_name_is_found_however_it_is_written(guide: Guide) -> None:
    written = ("tl.exp", "triton.language.exp", "tl.math.exp", "tl.extra.libdevice.tanh")
    assert [one.name.rsplit(".", 1)[-1] for name in written if (one := guide.find(name))] == [
        "exp",
        "exp",
        "exp",
        "tanh",
    ]


# --- what a prompt quotes ---------------------------------------------------------------------------------------------


def quoted(guide: Guide, name: str) -> set[str]:
    files = ops.load(name, OPS).workspace_files()
    return {entry.name for entry in select.for_op(guide, (files["SPEC.md"] + files["ref.py"]).decode())}


def test_an_op_is_told_of_what_it_needs(guide: Guide) -> None:
    assert {"tl.load", "tl.dot"} <= quoted(guide, "matmul")
    assert {"tl.cumsum", "tl.associative_scan"} <= quoted(guide, "cumsum")
    assert "libdevice.tanh" in quoted(guide, "gelu_tanh") and "tl.rand" in quoted(guide, "dropout")
    assert "tl.dot" not in quoted(guide, "rmsnorm") and len(quoted(guide, "rmsnorm")) < 20


def test_what_the_pages_of_its_tags_use_is_told_too(guide: Guide) -> None:
    op = ops.load("cumsum", OPS)
    first = Prompts(op, JUDGING, 3, guide).generate().turns[0].text
    assert op.spec.tags == ("semiring",) and "`tl.associative_scan(" in first
    told = {entry.name for entry in select.for_op(guide, "", "use `tl.histogram` and tl.no_such_name")}
    assert "tl.histogram" in told and "tl.no_such_name" not in told


def test_every_name_of_the_table_is_one_of_this_triton(guide: Guide) -> None:
    """Newer names may be missing in an older release; in the newest that is tested none is."""
    import yaml

    table = yaml.safe_load((resources.shipped("prompts") / "references" / "names.yaml").read_text())
    names = [*table["always"], *(name for row in table["where"] for name in row["names"])]
    if TRITON.startswith("3.7"):
        assert [name for name in names if guide.find(name) is None] == []


def test_an_error_leads_to_the_names_it_is_about(guide: Guide) -> None:
    told = select.for_report(guide, LACKS)
    assert [one.name for one in told.missing] == ["tl.rsqrt_fast"] and told.missing[0].near[0].name == "tl.rsqrt"
    called = select.for_report(guide, replace(LACKS, detail="TypeError: dot() got an unexpected keyword argument 'k'"))
    assert [one.name for one in called.entries] == ["tl.dot"] and not called.missing
    method = select.for_report(guide, replace(LACKS, detail="AttributeError: 'tensor' object has no attribute 'flaot'"))
    assert [one.name for one in method.missing] == ["tl.tensor.flaot"]


def test_wrong_values_lead_to_no_names(guide: Guide) -> None:
    assert select.for_report(guide, replace(LACKS, status=Status.WRONG_VALUES)) == select.Told()


def test_paths_and_modules_in_a_traceback_are_no_missing_names(guide: Guide) -> None:
    detail = (
        'File "/site/triton/language/core.py", in triton.language.core.wrapper: triton.compiler.errors.CompilationError'
    )
    assert select.for_report(guide, replace(LACKS, detail=detail)).missing == ()


def test_prompts_quote_them_and_name_the_version(rmsnorm: Op, guide: Guide) -> None:
    prompts = Prompts(rmsnorm, JUDGING, 3, guide)
    first = prompts.generate()
    assert f"Of Triton {TRITON}" in first.turns[0].text and "`tl.rsqrt(x)`" in first.turns[0].text
    asked = Prompt("", (Turn("user", "?"),))
    repair = prompts.repair(asked, Reply("a reply", "m", Usage(0.0)), LACKS, 1).turns[-1].text
    assert f"Triton {TRITON} has no `tl.rsqrt_fast`. Near to it:\n- `tl.rsqrt(x)`" in repair


class Somewhere(ScriptedJudge):
    """A scripted judge that says which Triton it has."""

    async def start(self) -> Judging:
        return JUDGING


class Good:
    """An agent with one kernel."""

    name = "scripted"

    async def propose(self, request: Request) -> Reply:
        return Reply(f"```python rmsnorm_triton.py\n{zoo_kernel('good').decode()}\n```\n", "scripted", Usage(0.0))


@pytest.mark.asyncio
async def test_a_run_makes_the_guide_and_quotes_it(rmsnorm: Op, tmp_path: Path) -> None:
    judge = Somewhere({key(zoo_kernel("good")): Script(Status.PASSED)}, tmp_path / "log")
    settings = config.load(overrides=(f"docs.folder={tmp_path / 'docs'}",))
    run = await run_op(rmsnorm, Good(), judge, settings, tmp_path / "workspaces", Silent())
    prompt = tmp_path / "workspaces" / "runs" / run.id / "attempts" / "01-correct-1" / "prompt.md"
    assert "`tl.rsqrt(x)`" in prompt.read_text()
    assert sorted(path.name for path in (tmp_path / "docs").iterdir()) == [
        *("triton-best-practices.md", "triton-lang-guide.md", "triton-tutorials.md"),
    ]


def test_without_a_guide_nothing_is_said_of_the_language(rmsnorm: Op) -> None:
    assert "# The language" not in Prompts(rmsnorm, JUDGING, 3).generate().turns[0].text


# --- the cache --------------------------------------------------------------------------------------------------------


def test_it_is_made_once_and_again_for_another_version(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / ".triton_docs"
    assert cache.ready(TRITON, folder) is not None
    assert cache.ready(TRITON, folder) is cache.ready(TRITON, folder), "one for many runs"
    page = folder / cache.GUIDE
    page.write_text(page.read_text() + "\n## tl.marked\n\n```python\ntl.marked()\n```\n")
    kept = cache.ready(TRITON, folder)
    assert kept is not None and "tl.marked" in kept.entries, "what is there is taken"
    page.write_text(page.read_text().replace(f"Triton {TRITON}", "Triton 2.0", 1))
    again = cache.ready(TRITON, folder)
    assert again is not None and again.version == TRITON and "tl.marked" not in again.entries


def test_for_a_triton_that_is_not_here_there_is_no_guide(tmp_path: Path) -> None:
    assert cache.ready("2.0", tmp_path) is None


def test_a_folder_that_cannot_be_written_costs_a_run_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = cache.ready(TRITON, tmp_path / "file" / "docs")
    assert found is not None and found.version == TRITON
    with pytest.raises(WorkspaceError, match="docs"):
        cache.make(tmp_path / "file" / "docs", None)


# --- pages from the network -------------------------------------------------------------------------------------------

HTML = """<html><body><nav>Menu</nav><div role="main"><h1>Vector addition<a href="#x"></a></h1><p>First<br>line.</p>
<pre><span>def f(x):</span>
<span>    return x</span></pre><ul><li>one</li></ul></div><footer>the end</footer></body></html>"""


@contextmanager
def site(folder: Path, name: str, html: str) -> Iterator[str]:
    """A server on the loopback that has this for each page of that name."""
    for path in pages.PAGES[name]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(html)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_the_sites_pages_become_text_with_source_and_date(tmp_path: Path) -> None:
    with site(tmp_path, pages.TUTORIALS, HTML) as url:
        page = pages.page(pages.TUTORIALS, url, "2026-01-02")
    assert page.source == f"{url}, 9 pages"
    assert f"From {url}, 9 pages; 2026-01-02." in page.text and f"{url}/getting-started/" in page.text
    assert "## Vector addition" in page.text and "def f(x):\n    return x\n```" in page.text and "- one" in page.text
    assert "Menu" not in page.text and "the end" not in page.text


@pytest.mark.parametrize(
    ("name", "html"), [(pages.TUTORIALS, HTML), (pages.PRACTICES, "<html>no main part</html>")], ids=["404", "empty"]
)
def test_what_cannot_be_had_is_replaced_by_our_own_and_said(tmp_path: Path, name: str, html: str) -> None:
    with site(tmp_path, name, html) as url:
        page = pages.page(pages.PRACTICES, url, "2026-01-02")
    assert page.source.startswith(f"our own references; {url} cannot be read (")
    assert page.text.count("## ") == 5 and "restore_value" in page.text


def test_offline_no_network_is_asked() -> None:
    assert pages.page(pages.TUTORIALS, None, "2026-01-02").source == "our own references; no network was asked"


def test_the_command_says_what_is_from_where_and_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "orchestrator", "docs"]
    made = subprocess.run([*command, "--offline"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"triton-lang-guide.md: Triton {TRITON} as it is installed here" in made.stdout
    assert made.stdout.count("our own references; no network was asked") == 2
    asked = subprocess.run(
        [*command, "tl.dot", "tl.rsqrt_fast"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert asked.returncode == 1 and "tl.dot(input, other" in asked.stdout
    assert f"Triton {TRITON} has no tl.rsqrt_fast.\n  near to it: tl.rsqrt(x)" in asked.stdout
