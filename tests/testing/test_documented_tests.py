"""The tests of docs/testing.md and examples/testing/ pass where a newcomer would run them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pytest_runs import PytestRun

from odradek.testing import Broker, Cluster, conditions, faults
from odradek.testing.fixtures.marker_options import Options
from odradek.testing.fixtures.shared_broker import SharedBroker
from odradek.tools.conformance.scenario import all_scenarios

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "testing.md"
RECIPES = sorted((ROOT / "examples" / "testing").glob("test_*.py"))
SECONDS_MAX = 250
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def passed(printed: str) -> int:
    found = re.search(r"=+ (\d+) passed(, \d+ warnings?)? in", printed)
    assert found, printed
    return int(found[1])


@pytest.mark.slow
@pytest.mark.timeout(SECONDS_MAX + 20)
def test_every_block_of_the_page_runs(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    tests = sum(len(re.findall(r"^ *(?:async )?def test_", block, re.M)) for block in blocks)
    for number, block in enumerate(blocks):
        (tmp_path / f"test_block_{number}.py").write_text(block)
    assert passed(PytestRun(tmp_path, "", head="").finish(SECONDS_MAX)) == tests >= 8


@pytest.mark.slow
@pytest.mark.timeout(SECONDS_MAX + 20)
def test_every_recipe_runs(tmp_path: Path) -> None:
    assert len(RECIPES) == 13
    tests = 0
    for recipe in RECIPES:
        source = recipe.read_text()
        (tmp_path / recipe.name).write_text(source)
        tests += len(re.findall(r"^(?:async )?def test_", source, re.M))
    run = PytestRun(tmp_path, "", ("-n", "3"), head="")
    assert passed(run.finish(SECONDS_MAX)) >= tests
    assert run.left_over() == []


def test_the_page_names_only_what_there_is() -> None:
    text = PAGE.read_text()
    kinds = {"kafka": SharedBroker, "kafka_broker": Broker, "broker": Broker, "cluster": Cluster}
    named = set(re.findall(r"\b(kafka|kafka_broker|broker|cluster)\.(\w+)\(", text))
    assert len(named) > 40
    assert [f"{of}.{name}" for of, name in named if not hasattr(kinds[of], name)] == []
    assert [
        each for each in re.findall(r"(?<!\.)\bfaults\.(\w+)\(", text) if not hasattr(faults, each)
    ] == []
    list_of_conditions = text.partition("`odradek.testing.conditions` has")[2].partition(";")[0]
    assert set(re.findall(r"`(\w+)`", list_of_conditions)) == {
        each for each in conditions.__all__ if each.islower()
    }


def test_the_page_has_every_option_of_the_marker() -> None:
    table = PAGE.read_text().partition("| option of the marker |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)=", table, re.M)) == {
        {"settings": "config"}.get(name, name) for name in Options._fields
    }


def test_there_are_as_many_scenarios_as_the_page_says() -> None:
    assert "more than 1,300 scripted scenarios" in PAGE.read_text()
    assert len(all_scenarios()) > 1_300


def test_the_page_names_every_recipe() -> None:
    named = re.findall(r"\(\.\./examples/testing/(\w+\.py)\)", PAGE.read_text())
    assert sorted(named) == [recipe.name for recipe in RECIPES]
