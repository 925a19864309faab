"""Every block of code in README.md, CONTRIBUTING.md and docs/ is run by some test, or listed here.

Besides, what the commands of each console block are given is read by the real parsers:
tests/docs/test_arguments_of_commands.py.
"""

from __future__ import annotations

import re

import pytest
from support.documented import PAGES, ROOT, blocks_of, indented_blocks_of

COMMANDS = "tests/docs/test_pages_of_commands.py"
OPERATORS = "tests/docs/test_pages_of_operators.py"
PROPERTIES = "tests/docs/test_properties_blocks.py"
PYTHON = "tests/docs/test_python_blocks.py"
SECURITY = "tests/cli/test_security_page.py"
SPARK = "tests/spark/test_spark_page.py"

RUN_BY = {
    ("README.md", "console"): COMMANDS,
    ("README.md", "python"): PYTHON,
    ("docs/bench.md", "console"): OPERATORS,
    ("docs/bench.md", "python"): OPERATORS,
    ("docs/client.md", "python"): PYTHON,
    ("docs/console.md", "console"): "tests/console/test_serve_console.py",
    ("docs/control.md", "console"): OPERATORS,
    ("docs/metrics.md", "console"): OPERATORS,
    ("docs/operations.md", "console"): OPERATORS,
    ("docs/operations.md", "json"): OPERATORS,
    ("docs/operations.md", "yaml"): "tests/broker/metrics/test_dashboard.py",
    ("docs/recorder.md", "console"): OPERATORS,
    ("docs/recorder.md", "python"): PYTHON,
    ("docs/recorder.md", "text"): OPERATORS,
    ("docs/security.md", "console"): SECURITY,
    ("docs/security.md", "properties"): PROPERTIES,
    ("docs/security.md", "properties with a title"): SECURITY,
    ("docs/security.md", "python"): PYTHON,
    ("docs/security.md", "toml"): PYTHON,
    ("docs/spark.md", "python"): SPARK,
    ("docs/spark.md", "toml"): SPARK,
    ("docs/spark.md", "yaml"): SPARK,
    ("docs/testing.md", "console"): COMMANDS,
    ("docs/testing.md", "ini"): COMMANDS,
    ("docs/testing.md", "python"): "tests/testing/test_documented_tests.py",
    ("docs/testing.md", "yaml"): COMMANDS,
    ("docs/tls.md", "properties"): PROPERTIES,
    ("docs/tutorial.md", "console"): COMMANDS,
    ("docs/tutorial.md", "python"): COMMANDS,
}
"""Which test runs the blocks of a language on a page: it takes all that there are."""

NOT_RUN = {
    ("CONTRIBUTING.md", "console"): "it needs a Kafka that runs, and minutes",
    ("docs/ARCHITECTURE.md", "text"): "a drawing",
    ("docs/performance.md", "console"): "they take minutes, and change the page",
    ("docs/simulation.md", "console"): "tests/tools/simulation runs such",
    ("docs/spark.md", "console"): "minutes of Spark: tests/spark/test_spark_commands.py has such",
    ("docs/tls.md", "console"): "Kafka's tool: tests/interop/test_tools_of_pages.py runs it",
}
"""Why no test runs them as they stand; of those that are commands the arguments are read."""


def test_every_block_is_run() -> None:
    there = {
        (page, f"{each.language} with a title" if each.argument else each.language)
        for page in PAGES
        for each in blocks_of(page)
        if each.language != "mermaid"
    }
    assert there == {*RUN_BY, *NOT_RUN}


@pytest.mark.parametrize("page", PAGES)
def test_no_block_is_without_a_language(page: str) -> None:
    assert indented_blocks_of(page) == []


@pytest.mark.parametrize(
    ("page", "test"), sorted({(page, test) for (page, _), test in RUN_BY.items()})
)
def test_the_test_reads_the_page(page: str, test: str) -> None:
    assert re.search(
        rf'"(?:docs/)?{re.escape(page.removeprefix("docs/"))}"', (ROOT / test).read_text()
    )
