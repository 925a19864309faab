"""The commands where kafka-python is not installed, or is a version that is another library."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from odradek.bench.errors import Unavailable
from odradek.bench.loads.round_trip_load import kafka_python_round_trip
from odradek.bench.target import BenchTarget

pytestmark = pytest.mark.clients

WITHOUT = """
import sys
sys.modules["kafka"] = None
from odradek.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
"""None in `sys.modules` makes an import fail as if there were no such module."""


def run(*arguments: object, stdin: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == code, answer.stderr
    return answer


@pytest.mark.slow  # each command is a process
def test_every_command_that_speaks_to_a_cluster_works_without_it(
    broker: Any, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", broker.bootstrap)
    run("topics", "create", topic, "-p", 2, "-c", "retention.ms=-1")
    run("topics", "alter", topic, "--unset", "retention.ms")
    run("topics", "add-partitions", topic, "--to", 3)
    run("produce", topic, "-K", ",", stdin="a,1\nb,2\n")
    read = run("consume", topic, "--from-beginning", "--until-end", "--group", f"{topic}-group")
    assert sorted(read.stdout.splitlines()) == ["1", "2"]
    described = json.loads(run("topics", "describe", topic, "--json").stdout)
    assert sum(each["end"] for each in described["partitions"]) == 2
    assert topic in run("topics", "list").stdout
    assert f"{topic}-group" in run("groups", "list").stdout
    assert topic in run("groups", "describe", f"{topic}-group").stdout
    run("groups", "reset-offsets", f"{topic}-group", "--topic", topic, "--to-earliest")
    run("transactions", "list")
    assert json.loads(run("cluster", "--once", "--json").stdout.splitlines()[0])
    run("topics", "delete", topic)
    missing = run("topics", "delete", topic, code=1)
    assert "there is no such topic" in missing.stderr


def test_a_load_of_kafka_python_says_what_it_needs(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _, port = broker.bootstrap.rpartition(":")
    monkeypatch.setitem(sys.modules, "kafka", None)
    with pytest.raises(Unavailable, match="pip install kafka-python"):
        kafka_python_round_trip().run(BenchTarget(host, int(port)), 0.1)
