"""docs/seeds.md names for each mechanism of the articles the code and a test; both are there,
and the test fails where the code does nothing."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from support.mutation import Row, find_function, run_rows

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"\| .* \| `([^`]+)` \| `([^`]+)` \|")
MUTATION_SECONDS_MAX = 600


def read_rows() -> list[Row]:
    """All tables of the page, in order."""
    page = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
    return [Row(*found.groups()) for found in map(ROW.fullmatch, page.splitlines()) if found]


def test_every_line_of_the_tables_is_a_row() -> None:
    page = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if line.startswith("|")]
    odd = [line for line in lines if not ROW.fullmatch(line)]
    assert set(odd) == {"| section | mechanism | code | test |", "|---|---|---|---|"}
    assert len(odd) == 2 * len(re.findall("^## Article", page, re.MULTILINE))
    assert len(read_rows()) == len(lines) - len(odd)


def test_the_code_of_a_row_is_there() -> None:
    for row in read_rows():
        assert find_function(row.code), row


def test_the_test_of_a_row_is_there() -> None:
    missing = []
    for test in {row.test for row in read_rows()}:
        path, _, name = test.partition("::")
        if name.partition("[")[0] not in functions_of(path):
            missing.append(test)
    assert missing == []


@cache
def functions_of(path: str) -> set[str]:
    """The names of a test module's functions."""
    if not (ROOT / path).is_file():
        return set()
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


@pytest.mark.slow
@pytest.mark.timeout(MUTATION_SECONDS_MAX)
def test_a_rows_test_fails_where_its_code_does_nothing() -> None:
    rows = list(dict.fromkeys(read_rows()))
    failed = run_rows(rows)
    assert [row for row in rows if row not in failed] == [], "these were not run"
    assert [row for row in rows if not failed[row]] == [], "these passed without their code"
