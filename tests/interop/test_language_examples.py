"""The examples of docs/control.md: tests in Java, Go and JavaScript, with a Kafka of their own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples"
BUILD_SECONDS_MAX = 600

Run = Callable[..., str]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Where `odradek` is on the PATH, as after `pip install`, and temporary folders are seen."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "TMPDIR": str(tmp_path)}


def brokers_left(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("odradek-*")]


def test_junit(run: Run, environment: dict[str, str], tmp_path: Path) -> None:
    reports = EXAMPLES / "java" / "target" / "surefire-reports"
    tests = {"OrdersTest": 3, "SharedWorkTest": 2}
    for name in tests:
        (reports / f"shop.{name}.txt").unlink(missing_ok=True)
    folder = EXAMPLES / "java"
    run("mvn", "-q", "-B", "test", cwd=folder, env=environment, seconds_max=BUILD_SECONDS_MAX)
    for name, count in tests.items():
        report = (reports / f"shop.{name}.txt").read_text()
        assert f"Tests run: {count}, Failures: 0, Errors: 0, Skipped: 0" in report
    assert brokers_left(tmp_path) == []


def test_go(run: Run, environment: dict[str, str], tmp_path: Path) -> None:
    command = ("go", "test", "-count=1", "-v", "./...")
    folder = EXAMPLES / "go"
    printed = run(*command, cwd=folder, env=environment, seconds_max=BUILD_SECONDS_MAX)
    assert len(re.findall(r"^--- PASS: ", printed, re.MULTILINE)) == 3, printed
    assert brokers_left(tmp_path) == []


def test_node(run: Run, environment: dict[str, str], tmp_path: Path) -> None:
    install = ("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=5")
    run(*install, cwd=EXAMPLES / "javascript", seconds_max=BUILD_SECONDS_MAX)
    printed = run("npm", "test", cwd=EXAMPLES / "javascript", env=environment)
    assert re.search(r"\bpass 3$", printed, re.MULTILINE), printed
    assert brokers_left(tmp_path) == []
