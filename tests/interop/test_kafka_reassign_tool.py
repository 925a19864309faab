"""`odradek partitions reassign` beside Kafka's `kafka-reassign-partitions.sh`, on a cluster of ours
and on one of Kafka's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.testing.waiting import wait_until
from odradek.tools.benchmarks.compared.makes import ApacheKafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
BROKERS = (1, 2, 3)

Odradek = Callable[..., str]


@pytest.fixture(scope="module", params=["odradek", "kafka"])
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    """Three brokers: ours are one process, Kafka's are three."""
    if request.param == "kafka":
        kafka = ApacheKafka(request.getfixturevalue("kafka_libs"), len(BROKERS))
        try:
            kafka.start()
            yield kafka.address
        finally:
            kafka.stop()
        return
    command = [sys.executable, "-m", "odradek", "serve", "--brokers", "3", "--ephemeral"]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        yield child.stdout.readline().split("ready at ")[1].split(", ")[0]
        child.send_signal(signal.SIGTERM)


@pytest.fixture
def odradek(bootstrap: str, run: Callable[..., str]) -> Odradek:
    def run_command(*words: str, **how: Any) -> str:
        return run(sys.executable, "-m", "odradek", *words, "-b", bootstrap, **how)

    return run_command


def throttles(odradek: Odradek, topic: str) -> dict[str, list[str]]:
    """What throttles replication, by whose setting it is."""
    owners = (("--topic", topic), *(("--broker", str(broker)) for broker in BROKERS))
    return {
        " ".join(owner): [
            line
            for line in odradek("configs", "describe", *owner, "--json").splitlines()
            if "throttled" in line
        ]
        for owner in owners
    }


def test_both_set_and_remove_the_same(
    odradek: Odradek, java: Callable[..., str], bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """A plan of ours, throttled so that it does not end; each tool begins it and cancels it, and
    Kafka's says that what ours has finished is complete."""
    odradek("topics", "create", topic, "-p", "2", "-r", "1")
    for partition in ("0", "1"):  # the first fetch of each takes a megabyte, throttled or not
        odradek("produce", topic, "-p", partition, input=("x" * 1000 + "\n") * 4000)
    before = odradek("topics", "describe", topic, "--json")
    leads = [each["replicas"][0] for each in json.loads(before)["partitions"]]
    others = ",".join(str(each) for each in BROKERS if each not in leads)
    words = ("partitions", "reassign", topic, "--to", others)
    plan = tmp_path / "plan.json"
    plan.write_text(odradek(*words, "--json"))
    to_tool = ("--bootstrap-server", bootstrap, "--reassignment-json-file", str(plan))

    def under_way() -> tuple[dict[str, list[str]], list[tuple[str, list[int], list[int]]]]:
        moving = map(json.loads, odradek("partitions", "status", "--json").splitlines())
        return throttles(odradek, topic), [
            (each["partition"], each["adding"], each["removing"]) for each in moving
        ]

    odradek(*words, "--throttle", "1000", "--execute", "--no-wait")
    ours = under_way()
    odradek("partitions", "cancel", "--all")
    # Any broker says what the settings are, and one hears of a change later than another.
    wait_until(
        lambda: not any(throttles(odradek, topic).values()), 30, lambda: "throttles are left"
    )
    java(TOOL, *to_tool, "--execute", "--throttle", "1000")
    assert under_way() == ours
    java(TOOL, *to_tool, "--cancel")
    assert under_way() == ({owner: [] for owner in ours[0]}, [])

    odradek("partitions", "reassign", "--plan", str(plan), "--execute")
    verified = java(TOOL, *to_tool, "--verify")
    for each in json.loads(plan.read_text())["partitions"]:
        name = f"{topic}-{each['partition']}"
        assert f"Reassignment of partition {name} is completed." in verified
