"""`make site`: every link leads somewhere, and the references are what the code says."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.documented import PAGES, ROOT

import odradek.client
import odradek.testing
from odradek.cli.commands import COMMANDS

pytestmark = pytest.mark.slow
SECONDS_MAX = 200


class Page(HTMLParser):
    """The links of a page, what can be linked to in it, its text, and that without code."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.text = ""
        self.prose = ""
        self._code = 0
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self._code += tag == "code"
        self.anchors.add(found.get("id") or "")
        for name in ("href", "src"):
            if found.get(name):
                self.links.add(found[name] or "")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.text += data
        if not self._code:
            self.prose += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert built.returncode == 0, built.stderr
    return {path.relative_to(folder): Page(path) for path in folder.rglob("*.html")}


def test_every_page_is_there(site: dict[Path, Page]) -> None:
    renamed = {"README": "index", "CONTRIBUTING": "contributing"}
    names = {Path(page).stem for page in PAGES}
    assert {f"{renamed.get(name, name)}.html" for name in names} <= {
        path.as_posix() for path in site
    }


def test_every_fence_became_a_block_of_code(site: dict[Path, Page]) -> None:
    assert [path for path, page in site.items() if "```" in page.prose] == []


def test_every_link_leads_somewhere(site: dict[Path, Page]) -> None:
    """Those that mkdocs does not look at, too: of headings, of generated pages, in HTML."""
    broken = []
    for path, page in site.items():
        if path.name == "404.html":
            continue  # It is shown for any address, and links from the root.
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or Path(parts.path).suffix not in ("", ".html"):
                continue
            place = Path(*_normal(path.parent / unquote(parts.path))) if parts.path else path
            place = place / "index.html" if place.suffix == "" else place
            if place not in site or unquote(parts.fragment) not in {"", *site[place].anchors}:
                broken.append((path, link))
    assert broken == []


def _normal(path: Path) -> list[str]:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return parts


def test_the_reference_has_every_command(site: dict[Path, Page]) -> None:
    page = site[Path("reference/cli.html")]
    assert {f"odradek-{name}" for name in [*COMMANDS, "serve"]} <= page.anchors
    assert "--cluster-dir DIR" in page.text


@pytest.mark.parametrize("module", [odradek.testing, odradek.client])
def test_the_reference_has_every_public_name(site: dict[Path, Page], module: object) -> None:
    name = module.__name__
    page = site[Path(f"reference/{name.rpartition('.')[2]}.html")]
    named = {anchor.rpartition(".")[2] for anchor in page.anchors}
    assert set(module.__all__) - named == set()
