"""The site on disk: nothing that others wrote can act in it, it is whole, and it is read by landmarks."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from orchestrator import config
from orchestrator.errors import UsageError
from orchestrator.ops import Op
from orchestrator.recorder import Recorder
from orchestrator.report import gather, site
from orchestrator.report.gather import Gathered
from orchestrator.watch import Silent
from tests import past_runs
from tests.report.conftest import History, load


class Parsed(HTMLParser):
    """The elements of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def every(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def pages(written: Path) -> Iterator[tuple[Path, Parsed]]:
    for path in sorted(written.rglob("*.html")):
        yield path, Parsed(path)


def test_nothing_that_was_written_by_others_is_an_element(written: Path) -> None:
    """A reply, a kernel, a model's name, a finding and an output hold HTML: it is on the page as text."""
    own = {"../assets/plotly.min.js", "../assets/site.js", "assets/plotly.min.js", "assets/site.js"}
    for path, page in pages(written):
        scripts = page.every("script")
        assert {one.get("src") for one in scripts if one.get("type") != "application/json"} <= own, path
        assert not page.every("img") and not page.every("style"), path
        told = [name for _, attributes in page.elements for name in attributes]
        assert not [name for name in told if name.startswith("on") or name == "style"], path
        (policy,) = [one["content"] or "" for one in page.every("meta") if "http-equiv" in one]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    (merged,) = [
        path for path, _ in pages(written) if path.parent.name == "runs" and "BLOCK, not by N" in path.read_text()
    ]
    assert merged.read_text().count("&lt;script&gt;document.title") >= 5


def test_every_link_leads_somewhere(written: Path) -> None:
    count = 0
    for path, page in pages(written):
        ids = {attributes.get("id") for _, attributes in page.elements}
        for tag, name in (("a", "href"), ("link", "href"), ("script", "src")):
            for one in page.every(tag):
                target = one.get(name) or ""
                if target.startswith("#"):
                    assert target[1:] in ids, (path, target)
                elif target and not target.startswith("data:"):
                    assert (path.parent / unquote(target)).is_file(), (path, target)
                    count += 1
    assert count > 30


def test_a_page_is_read_by_its_landmarks_and_headings(written: Path) -> None:
    for path, page in pages(written):
        assert len(page.every("main")) == len(page.every("h1")) == len(page.every("nav")) == 1, path
        assert page.elements[[tag for tag, _ in page.elements].index("body") + 1] == (
            "a",
            {"class": "skip", "href": "#main"},
        )
        labels = [one.get("aria-labelledby") for one in page.every("section")]
        assert set(labels) <= {attributes.get("id") for _, attributes in page.elements}, path
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids)), path
        assert all(
            one.get("role") == "img" and one.get("aria-label")
            for one in page.every("div")
            if one.get("class") == "canvas"
        )


def test_what_was_not_measured_says_so_and_is_not_drawn(written: Path, history: History) -> None:
    _, (_, lost, _, unmeasured) = history
    text = (written / "runs" / f"{unmeasured.id}.html").read_text()
    assert "Nothing was measured. Correct, but not measured: there is no GPU here." in text
    assert "only a correct kernel is, and none passed" in (written / "runs" / f"{lost.id}.html").read_text()
    page = Parsed(written / "ops" / "softmax.html")
    assert not page.every("figure") and not page.every("script")
    assert "No run of this op was measured. There is nothing to plot." in (written / "ops" / "softmax.html").read_text()


def test_only_an_earlier_report_is_replaced(gathered: Gathered, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="something else than a report"):
        site.write(gathered, tmp_path / "mine")
    first = site.write(gathered, tmp_path / "new" / "site")
    first.write_text("old")
    assert site.write(gathered, tmp_path / "new" / "site").read_text() != "old"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["site"]  # and nothing half made beside it


def test_an_earlier_report_stands_until_the_new_one_does(
    gathered: Gathered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, rename = tmp_path / "site", Path.rename
    site.write(gathered, out).write_text("old")

    def interrupted(path: Path, target: Path) -> Path:
        if target == out and (path / "index.html").read_text() != "old":
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "rename", interrupted)
        site.write(gathered, out)
    assert (out / "index.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_run_under_way_is_told_as_one_without_a_decision(rmsnorm: Op, tmp_path: Path) -> None:
    run = Recorder.open(rmsnorm, "anthropic", config.load(), tmp_path, past_runs.H200, Silent()).run
    first = site.write(gather.gather(tmp_path, gather.everything, load), tmp_path / "report")
    text = (first.parent / "runs" / f"{run.id}.html").read_text()
    assert "UNDECIDED" in text and "Nothing was attempted." in text and "This run has no decision" in text
    assert "UNDECIDED" in first.read_text()
