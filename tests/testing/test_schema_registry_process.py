"""A schema registry as a process: what it says where it cannot be had, and what it leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.pytest_runs import PytestRun

from odradek.testing import SchemaRegistryProcess, SchemaRegistryStartError
from odradek.testing.process.process_end import is_alive
from odradek.testing.process.schema_registry import JAR_VARIABLE
from odradek.testing.waiting import wait_until

SECONDS_MAX = 120


def tools_but(folder: Path, *without: str) -> str:
    """A PATH with the programs that it looks for, but for some."""
    for name in {"java", "mvn"}.difference(without):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


def test_without_java_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", tools_but(tmp_path, "java"))
    with pytest.raises(SchemaRegistryStartError, match="`java` is not installed: it runs on Java"):
        SchemaRegistryProcess()


def test_without_maven_it_says_what_else_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", tools_but(tmp_path / "bin", "mvn"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(SchemaRegistryStartError, match=f"{JAR_VARIABLE}.*mock://"):
        SchemaRegistryProcess()


def test_a_jar_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JAR_VARIABLE, "/nowhere/x-runner.jar")
    with pytest.raises(SchemaRegistryStartError, match=r"x-runner\.jar: there is no such file"):
        SchemaRegistryProcess()


def test_what_is_no_registry_is_shown_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x-runner.jar").write_bytes(b"no jar")
    monkeypatch.setenv(JAR_VARIABLE, str(tmp_path / "x-runner.jar"))
    with pytest.raises(SchemaRegistryStartError, match="Invalid or corrupt jarfile"):
        SchemaRegistryProcess()


def test_the_fixture_fails_at_the_test_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JAR_VARIABLE, "/nowhere/x-runner.jar")
    run = PytestRun(tmp_path, "def test_it(schema_registry):\n    pass\n", head="")
    printed = run.finish(SECONDS_MAX)
    assert "/nowhere/x-runner.jar: there is no such file" in printed
    assert "schema_registry.py" not in printed


OWNER = """
import os, sys
from odradek.testing import SchemaRegistryProcess

registry = SchemaRegistryProcess()
print(registry._process.pid, repr(registry), sep="|", flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_nothing_is_left_of_it_where_its_owner_is_killed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWNER],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, _, shown = done.stdout.strip().partition("|")
    assert shown.startswith("<schema registry at http://127.0.0.1:")
    assert shown.endswith("/apis/ccompat/v7, running, schemas in memory>")
    wait_until(lambda: not is_alive(int(pid)) and not list(tmp_path.glob("odradek-*")), SECONDS_MAX)
