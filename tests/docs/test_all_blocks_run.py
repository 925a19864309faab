"""Every block of code in README.md and docs/ is run by some test: nothing is left out unseen."""

from __future__ import annotations

import re

import pytest
from support.documented import PAGES, ROOT, blocks_of

DRAWINGS = "mermaid"
RUN_BY = {
    ("README.md", "console"): "tests/docs/test_pages_of_commands.py",
    ("README.md", "python"): "tests/docs/test_python_blocks.py",
    ("docs/client.md", "python"): "tests/docs/test_python_blocks.py",
    ("docs/console.md", "console"): "tests/console/test_serve_console.py",
    ("docs/operations.md", "yaml"): "tests/broker/metrics/test_dashboard.py",
    ("docs/recorder.md", "python"): "tests/docs/test_python_blocks.py",
    ("docs/security.md", "console"): "tests/cli/test_security_page.py",
    ("docs/security.md", "properties"): "tests/cli/test_security_page.py",
    ("docs/security.md", "python"): "tests/docs/test_python_blocks.py",
    ("docs/spark.md", "console"): "tests/spark/test_spark_page.py",
    ("docs/spark.md", "python"): "tests/spark/test_spark_page.py",
    ("docs/spark.md", "toml"): "tests/spark/test_spark_page.py",
    ("docs/spark.md", "yaml"): "tests/spark/test_spark_page.py",
    ("docs/testing.md", "console"): "tests/docs/test_pages_of_commands.py",
    ("docs/testing.md", "ini"): "tests/docs/test_pages_of_commands.py",
    ("docs/testing.md", "python"): "tests/testing/test_documented_tests.py",
    ("docs/testing.md", "yaml"): "tests/docs/test_pages_of_commands.py",
    ("docs/tutorial.md", "console"): "tests/docs/test_pages_of_commands.py",
    ("docs/tutorial.md", "python"): "tests/docs/test_pages_of_commands.py",
}
"""Which test runs the blocks of a language on a page: it takes all that there are."""


def test_every_block_is_run() -> None:
    blocks = {(page, each.language) for page in PAGES for each in blocks_of(page)}
    there = {(page, language) for page, language in blocks if language not in (DRAWINGS, "text")}
    assert there == set(RUN_BY)


@pytest.mark.parametrize(
    ("page", "test"), sorted({(page, test) for (page, _), test in RUN_BY.items()})
)
def test_the_test_reads_the_page(page: str, test: str) -> None:
    assert re.search(
        rf'"(?:docs/)?{re.escape(page.removeprefix("docs/"))}"', (ROOT / test).read_text()
    )
