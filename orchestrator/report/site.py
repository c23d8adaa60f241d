"""The site on disk: pages from templates, the stylesheet, the drawing script and plotly.js beside them.

Owns that the site is whole or not there, that it replaces nothing but an earlier site, and that nothing in it can run:
every text is escaped, and a policy in each page allows the site's own two scripts and nothing inline. It opens from
file:// and asks no network.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from importlib import resources as packages
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment

from orchestrator import __version__, resources
from orchestrator.errors import UsageError
from orchestrator.report import changes, op_page, overview, run_page
from orchestrator.report.gather import Gathered
from orchestrator.tree import os_errors, put_in_place

INDEX = "index.html"
_MARK = "orchestrator-site"  # a file that says whose folder this is
_STATIC = ("site.css", "site.js")
_LIGHT, _DARK = "default", "github-dark"  # styles of highlighted code
# plotly.js brings a stylesheet for maps, inline, unless an element of this name is there already.
_MAPS = re.compile(r'document\.getElementById\("([0-9a-f]{64})"\)')


def write(gathered: Gathered, out: Path) -> Path:
    """Write the site; returns its first page. Raises UsageError where `out` holds something else than a site."""
    if out.exists() and not (out.is_dir() and ((out / _MARK).is_file() or not any(out.iterdir()))):
        raise UsageError(f"{out} holds something else than a report; --out DIR names another folder")
    with os_errors(f"write the report into {out}"):
        out.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        try:
            _fill(gathered, new)
            new.chmod(0o755)
            put_in_place(new, out)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return out / INDEX


def _fill(gathered: Gathered, folder: Path) -> None:
    maps = _assets(folder / "assets")
    environment = _environment(maps)
    for name in ("ops", "runs"):
        (folder / name).mkdir()
    shown = [told for told in gathered.told if told.run.id in gathered.chosen]
    ops = sorted({told.run.op for told in shown})
    _render(environment, "overview", folder / INDEX, "", view=overview.overview(gathered))
    for op in ops:
        _render(environment, "op", folder / "ops" / f"{op}.html", "../", view=op_page.page(op, gathered))
    for told in shown:
        _render(environment, "run", folder / "runs" / f"{told.run.id}.html", "../", view=run_page.page(told))
    (folder / _MARK).write_text(f"written by orchestrator {__version__}; replaced as a whole by the next report\n")


def _assets(folder: Path) -> str:
    """The files that every page uses; returns the name by which plotly.js knows its stylesheet for maps."""
    folder.mkdir()
    for name in _STATIC:
        shutil.copyfile(resources.templates() / "site" / name, folder / name)
    light, dark = changes.stylesheet(_LIGHT, ".code"), changes.stylesheet(_DARK, ".code")
    text = f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
    (folder / "code.css").write_text(text, encoding="utf-8")
    script = packages.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    (folder / "plotly.min.js").write_bytes(script)
    found = _MAPS.search(script.decode("utf-8", "replace"))
    return found[1] if found else ""


def _environment(maps: str) -> Environment:
    environment = resources.environment(resources.templates() / "site", html=True, url=_url)
    environment.globals.update(version=__version__, maps=maps)
    return environment


def _url(name: str) -> str:
    return quote(name, safe="")


def _render(environment: Environment, template: str, path: Path, root: str, **facts: object) -> None:
    text = environment.get_template(f"{template}.html.j2").render(root=root, **facts)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
