"""The site in a real browser: opened from the disk, at the width of a desk and of a phone, in light and in dark.

Needs a Chromium on PATH and the extra `browser`; is skipped, and says so, where one is missing. Leaves a screenshot of
each kind of page for a person to look at: in build/screenshots, or where ORCHESTRATOR_SCREENSHOTS says.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.report.conftest import History

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parent.parent.parent
SCREENSHOTS = Path(os.environ.get("ORCHESTRATOR_SCREENSHOTS", ROOT / "build" / "screenshots"))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
DRAWN = "figure.plot .canvas.js-plotly-plot .cartesianlayer"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests, without a network."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra `browser` is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH")
    with playwright.sync_playwright() as driver:
        # --no-sandbox: as root, Chromium has none. What it opens is our own.
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, width: str = "desktop", scheme: str = "light") -> Iterator[Page]:
    """A page of that width and scheme; nothing may have gone wrong in it, and nothing may have been asked for."""
    across, down = WIDTHS[width]
    context = browser.new_context(viewport={"width": across, "height": down}, color_scheme=scheme, offline=True)  # type: ignore[arg-type]
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("requestfailed", lambda request: wrong.append(f"{request.failure}: {request.url}"))
    page.on("request", lambda request: wrong.append(f"asked for: {request.url}") if _outside(request.url) else None)
    yield page
    context.close()
    assert not [line for line in wrong if not line.startswith("net::ERR_ABORTED")]  # a person went on before it came


def _outside(url: str) -> bool:
    return not url.startswith(("file:", "data:"))


def kinds(written: Path, history: History) -> dict[str, Path]:
    """A page of each kind."""
    _, (merged, lost, _, unmeasured) = history
    runs = {"run-merged": merged, "run-lost": lost, "run-unmeasured": unmeasured}
    pages = {name: written / "runs" / f"{run.id}.html" for name, run in runs.items()}
    return {"overview": written / "index.html", "op": written / "ops" / "rmsnorm.html", **pages}


LONG = pytest.mark.long  # two of the four show what there is to see; the others are for the screenshots


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        ("desktop", "light"),
        ("phone", "dark"),
        pytest.param("desktop", "dark", marks=LONG),
        pytest.param("phone", "light", marks=LONG),
    ],
)
def test_every_kind_of_page_opens_and_fits(
    browser: Browser, written: Path, history: History, width: str, scheme: str
) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with opened(browser, width, scheme) as page:
        for name, path in kinds(written, history).items():
            page.goto(path.as_uri())
            figures = page.locator("figure.plot").count()
            if figures:
                page.locator(DRAWN).nth(figures - 1).wait_for(state="attached")
            assert "taken" not in page.title(), "what others wrote has run"
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} is {wide} px wider than a {width}"
            page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
    assert len(list(SCREENSHOTS.glob(f"*-{width}-{scheme}.png"))) >= 5


def test_a_person_gets_from_the_overview_to_a_round_and_back(browser: Browser, written: Path) -> None:
    with opened(browser) as page:
        page.goto((written / "index.html").as_uri())
        page.get_by_role("link", name="rmsnorm", exact=True).click()
        assert page.get_by_role("heading", level=1).inner_text().startswith("RMSNorm")
        page.get_by_role("region", name="Champions, newest first").get_by_role("link").first.click()
        page.get_by_text("Kernel file, since attempt 1").click()
        assert page.locator("pre.code ins").first.is_visible()
        page.get_by_role("navigation").get_by_role("link", name="All ops").click()
        assert page.get_by_role("heading", level=1).inner_text() == "All ops"


def test_a_keyboard_reaches_the_content_and_a_plot_s_numbers(browser: Browser, written: Path) -> None:
    with opened(browser) as page:
        page.goto((written / "ops" / "rmsnorm.html").as_uri())
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        summary = page.get_by_text("Numbers: Latency", exact=False).first
        summary.focus()
        page.keyboard.press("Enter")
        table = page.get_by_role("table").first
        assert table.is_visible() and table.get_by_role("columnheader").nth(2).inner_text() == "this kernel"


@pytest.mark.long
def test_plots_follow_the_colours_of_the_person(browser: Browser, written: Path) -> None:
    with opened(browser) as page:
        page.goto((written / "ops" / "rmsnorm.html").as_uri())
        page.wait_for_selector(DRAWN)
        ink = "getComputedStyle(document.querySelector('.xtick text')).fill"
        light = page.evaluate(ink)
        page.emulate_media(color_scheme="dark")
        for _ in range(50):
            if page.evaluate(ink) != light:
                break
            page.wait_for_timeout(100)
        assert page.evaluate(ink) != light
