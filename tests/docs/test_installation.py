"""No page has readers install odradek by a name that leads nowhere: README.md says what works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.documented import PAGES, ROOT

PLACE = "README.md#install"
BY_NAME = re.compile(r"pip install [^`\n]*?(?<![\w/.])odradek(?![\w./-])")
"""Not by a file, such as `dist/odradek-0.1.0-py3-none-any.whl`."""
EXAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("examples/**/*.py"))


def test_readme_says_how_it_is_installed() -> None:
    _, heading, rest = (ROOT / "README.md").read_text().partition("\n### Install\n")
    assert heading
    section = rest.partition("\n## ")[0]
    assert "not on PyPI yet" in section
    for way in ("pip install .", "make wheel", "odradek @ git+URL", "pip install 'odradek[tls]'"):
        assert way in section


@pytest.mark.parametrize("page", [page for page in PAGES if page != "README.md"])
def test_a_page_that_installs_it_says_where_that_is_told(page: str) -> None:
    text = (ROOT / page).read_text()
    assert not BY_NAME.search(text) or PLACE in text


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_that_installs_it_says_where_that_is_told(example: str) -> None:
    lines = Path(ROOT / example).read_text().splitlines()
    assert [line for line in lines if BY_NAME.search(line) and "README.md" not in line] == []
