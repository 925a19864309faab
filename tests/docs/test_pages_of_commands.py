"""The commands of README.md and docs/ print what the pages say, in their order."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from support.documented import ROOT, Terminal, blocks_of, commands_of
from support.ports import ports_in_a_row

from odradek.testing import Broker

TUTORIAL = "docs/tutorial.md"
SETTINGS = """\
[pytest]
addopts = -p no:asyncio -p no:anyio
filterwarnings = ignore::DeprecationWarning
"""
"""A reader has no plugins but ours; what kafka-python is warned of depends on the Python."""
PARTITIONS_OF_A_TOPIC = """
from kafka.admin import KafkaAdminClient


def test_partitions(kafka, kafka_group):
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.create_topics({kafka_group: {}}, wait_for_metadata=True)
        (topic,) = admin.describe_topics([kafka_group])
    assert len(topic["partitions"]) == 4
"""
SECONDS_MAX = 60
OUTSIDE_OF_MAKE = {name: value for name, value in os.environ.items() if "MAKE" not in name}
"""A reader does not run it within another `make`, which would say where it is."""


@pytest.mark.slow
def test_the_tutorial_runs_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    (python,) = blocks_of(TUTORIAL, "python")
    (tmp_path / "test_orders.py").write_text(python.text)
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    with ports_in_a_row(4) as first:
        ports = dict(zip((9092, 9192, 9193, 9194), range(first, first + 4), strict=True))
        with Terminal(tmp_path, ports) as terminal:
            commands = sum(terminal.run(each) for each in blocks_of(TUTORIAL, "console"))
    assert commands == len(re.findall(r"^\$ ", (ROOT / TUTORIAL).read_text(), re.MULTILINE)) > 10


@pytest.mark.slow
def test_make_run_of_the_readme_starts_a_broker(tmp_path: Path) -> None:
    """Its port and folder may be in use, so that it has others here."""
    run, *_ = blocks_of("README.md", "console")
    command, ready = run.text.splitlines()
    with ports_in_a_row(1) as port:
        options = f"--listen localhost:{port} --data-dir {tmp_path / 'data'}"
        process = subprocess.Popen(
            [*command.removeprefix("$ ").split(), f"ARGS={options}"],
            cwd=ROOT,
            env=OUTSIDE_OF_MAKE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=SECONDS_MAX)
    page = ready.replace("9092", str(port)).replace("odradek-data", str(tmp_path / "data"))
    assert line.rpartition(", ")[0] == page.rpartition(", ")[0]
    assert re.fullmatch(r"\d+\.\d\d s\n", line.rpartition(", ")[2])


@pytest.mark.slow
def test_what_the_readme_installs_and_makes_is_there() -> None:
    """They take minutes, and are steps of what a change must pass: `.ci/run`, `.ci/smoke`."""
    _, install, *made = blocks_of("README.md", "console")
    checkout, wheel = (line.removeprefix("$ ") for line in install.text.splitlines())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert wheel == f"pip install 'dist/odradek-{version}-py3-none-any.whl[spark]'"
    commands = [f"{sys.executable} -m {checkout} --no-deps --dry-run"]
    commands += [f"{block.text.removeprefix('$ ').strip()} --dry-run" for block in made]
    printed = [
        subprocess.run(
            command.split(),
            cwd=ROOT,
            env=OUTSIDE_OF_MAKE,
            capture_output=True,
            text=True,
            timeout=200,
            check=True,
        ).stdout
        for command in commands
    ]
    for text, part in zip(printed, ("Would install odradek", "pytest", "demo"), strict=True):
        assert part in text


@pytest.mark.slow
def test_the_settings_and_commands_of_the_page_on_testing(tmp_path: Path) -> None:
    (settings,) = blocks_of("docs/testing.md", "ini")
    (workflow,) = blocks_of("docs/testing.md", "yaml")
    runs, external, records = blocks_of("docs/testing.md", "console")
    (tmp_path / "pytest.ini").write_text(settings.text + SETTINGS.partition("\n")[2])
    (tmp_path / "test_partitions.py").write_text(PARTITIONS_OF_A_TOPIC)

    *_, install, in_parallel = yaml.safe_load(workflow.text)["jobs"]["test"]["steps"]
    tested = (ROOT / "constraints.txt").read_text()
    pip, verb, ours, *packages = install["run"].split()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (pip, verb, ours) == ("pip", "install", f"./odradek-{version}-py3-none-any.whl")
    assert [each for each in packages if f"\n{each}==" not in tested] == []

    with ports_in_a_row(2) as first:
        ((command, _),) = commands_of(external)
        command = command.replace(":9094", f":{first + 1}")
        with Terminal(tmp_path, {9092: first}) as terminal:
            terminal.command(command, "odradek ready at localhost:9092, ...\n")

    with Broker({"num.partitions": "4"}) as broker, Broker() as other:
        ports = {
            int(page): int(there.bootstrap_servers.rpartition(":")[2])
            for page, there in ((9092, broker), (9192, other))
        }
        with Terminal(tmp_path, ports) as terminal:
            assert terminal.run(runs) == 2
            terminal.bash(in_parallel["run"])
            record, replay = (line.removeprefix("$ ") for line in records.text.splitlines())
            recorder = subprocess.Popen(
                [sys.executable, "-m", *terminal.local(record).split()],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert recorder.stdout is not None
            assert "localhost" in recorder.stdout.readline()
            recorder.send_signal(signal.SIGINT)
            recorder.communicate(timeout=SECONDS_MAX)
            assert recorder.returncode == 0
            assert (tmp_path / "run.pcapng").stat().st_size > 0
            terminal.bash(terminal.local(replay))
