"""What `make site` adds to the pages of docs/: a hook of mkdocs, named in mkdocs.yml.

The first page is README.md, the reference of the command line is what `--help` says, and a file of
the repository that a page links to has a page of its own. These are made as the site is built, so
that nothing that is committed can be stale. A link that leads nowhere stops the build.

Source: https://www.mkdocs.org/user-guide/configuration/#hooks
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Final

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
PACKAGE: Final = ROOT / "build" / "reference" / "odradek"
"""Where mkdocs.yml has mkdocstrings look."""
ROOT_PAGES: Final = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
MODULES: Final = {
    "testing": ["odradek.testing", "odradek.testing.conditions", "odradek.testing.faults"],
    "client": ["odradek.client"],
    "spark": ["odradek.spark_connector", "odradek.spark_connector.decoding"],
}
"""The pages of the reference of Python, and whose public names are on each."""
COLUMNS: Final = 96
"""How wide the help of `odradek serve` is set."""
_LINK: Final = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_LANGUAGES: Final = {
    ".py": "python",
    ".java": "java",
    ".go": "go",
    ".js": "js",
    ".mjs": "js",
    ".toml": "toml",
}


def on_startup(command: str, dirty: bool) -> None:
    """Show mkdocstrings the packages alone, since it looks at every file that lies below.

    It does so by itself where the folder is not there yet when it begins.
    """
    shutil.rmtree(PACKAGE, ignore_errors=True)
    PACKAGE.mkdir(parents=True)
    shutil.copy(ROOT / "__init__.py", PACKAGE)
    for package in ROOT.glob("[a-z]*/__init__.py"):
        (PACKAGE / package.parent.name).symlink_to(package.parent)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from elsewhere, and have links lead to them."""
    sources: set[Path] = set()
    for file in list(files.documentation_pages()):
        folder = (DOCS / file.src_uri).parent
        file.content_string = _with_site_links(file.content_string, folder, file.src_uri, sources)
    for name, page in ROOT_PAGES.items():
        text = _with_site_links((ROOT / name).read_text(), ROOT, page, sources)
        files.append(File.generated(config, page, content=text))
    for source in sources:
        files.append(File.generated(config, _page_of(source), content=_source_page(source)))
    reference = {"cli": command_line_reference()}
    reference |= {page: python_reference(modules) for page, modules in MODULES.items()}
    for page, text in reference.items():
        files.append(File.generated(config, f"reference/{page}.md", content=text))
    return files


def python_reference(modules: Iterable[str]) -> str:
    """A page with all public names of some modules, as mkdocstrings is told of it."""
    lines = ["# " + ", ".join(f"`{module}`" for module in modules)]
    for name in modules:
        module = import_module(name)
        for public in sorted(module.__all__, key=str.lower):
            value = getattr(module, public)
            where = getattr(value, "__module__", name)
            lines += ["", f"::: {where}.{public}"]
    return "\n".join(lines) + "\n"


def command_line_reference() -> str:
    """What every command's `--help` says, as one page of Markdown."""
    # mkdocs loads this file by its path, so that it is in no package, and imports by name.
    command = typer.main.get_command(import_module("odradek.cli.app").app)
    context = typer.Context(command, info_name="odradek")
    text = get_docs_for_click(obj=command, ctx=context, name="odradek", title="The command line")
    # To typer, `serve` is a command without options: it is read by argparse, to start sooner.
    begins = text.index("## `odradek serve`")
    ends = text.index("\n## ", begins)
    help_text = subprocess.run(
        [sys.executable, "-m", "odradek", "serve", "--help"],
        env={**os.environ, "COLUMNS": str(COLUMNS)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return f"{text[:begins]}## `odradek serve`\n\n```text\n{help_text}```\n{text[ends:]}"


def _with_site_links(text: str, folder: Path, page: str, sources: set[Path]) -> str:
    """A page whose links to other files of the repository lead to their pages on the site.

    Args:
        text: the page, in Markdown.
        folder: what its links are relative to.
        page: its own place on the site.
        sources: takes the files that need a page, relative to the repository's root.
    """

    def on_site(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        if not target.is_file() or ROOT not in target.parents:
            return found[0]  # mkdocs says that it leads nowhere.
        path = target.relative_to(ROOT)
        if path.parts[0] == "docs":
            place = path.relative_to("docs").as_posix()
        elif path.as_posix() in ROOT_PAGES:
            place = ROOT_PAGES[path.as_posix()]
        else:
            sources.add(path)
            place = _page_of(path)
        return f"]({'../' * page.count('/')}{place}{found[2] or ''})"

    return _LINK.sub(on_site, text)


def _page_of(source: Path) -> str:
    return f"source/{source.as_posix()}.md"


def _source_page(source: Path) -> str:
    language = _LANGUAGES.get(source.suffix, "text")
    return f"# {source}\n\n````{language}\n{(ROOT / source).read_text()}````\n"
