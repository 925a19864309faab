"""What the benchmarks of clusters share: three brokers that run, and requests to each."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ....bench.loads.wire import Wire, wire_to
from ....bench.run.interruptible import interruptible
from ....protocol import messages
from ....testing.process.broker_process import BrokerProcess

BROKER_IDS = (1, 2, 3)
SECONDS_MAX = 60.0
METADATA_VERSION = 9
CLUSTER_POLL_SECONDS = 0.01
"""Between two looks at what a broker says."""


def metadata(wire: Wire, *, topics: bool = True) -> Any:
    """What a broker says of the cluster, with all topics or without any."""
    return wire.ask(messages.MetadataRequest(topics=None if topics else []), METADATA_VERSION)


class ClusterUnderTest:
    """Three brokers that know of each other.

    Attributes:
        addresses: by broker id.
        processes: by broker id; all the same one where they share it.
    """

    def __init__(
        self, addresses: Mapping[int, str], processes: Mapping[int, BrokerProcess]
    ) -> None:
        self.addresses = addresses
        self.processes = processes

    def controller(self) -> int:
        """Who the first broker that runs says is the controller, once all of them know all."""
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            answers = []
            for address in self.addresses.values():
                with wire_to(address) as wire:
                    answers.append(metadata(wire, topics=False))
            if {len(each.brokers) for each in answers} == {len(BROKER_IDS)}:
                return int(answers[0].controller_id)
            time.sleep(CLUSTER_POLL_SECONDS)
        raise SystemExit("the brokers do not know each other")


def wake_ups(pid: int) -> int:
    """How often a process's first thread, which the loop runs in, waited for something so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)
    assert found is not None
    return int(found[1])


@contextmanager
def in_one_process() -> Iterator[ClusterUnderTest]:
    """`odradek serve --brokers 3`."""
    with (
        interruptible(),
        tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder,
        BrokerProcess(Path(folder) / "data", arguments=["--brokers", "3"]) as process,
    ):
        found = re.search(r"ready at (\S+), data", process.ready_line)
        assert found is not None
        addresses = dict(zip(BROKER_IDS, found[1].split(","), strict=True))
        cluster = ClusterUnderTest(addresses, dict.fromkeys(BROKER_IDS, process))
        cluster.controller()
        yield cluster


@contextmanager
def in_three_processes(
    zookeeper: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[ClusterUnderTest]:
    """A process for each, on one file of metadata or on ZooKeeper.

    Args:
        zookeeper: `host:port/chroot`; None: the file.
        settings: for each broker.
    """
    with (
        interruptible(),
        tempfile.TemporaryDirectory(prefix="odradek-bench-") as name,
        ExitStack() as stack,
    ):
        folder = Path(name)
        (folder / "shared").mkdir()
        where = ["--cluster-dir", str(folder / "shared")]
        if zookeeper is not None:
            where = ["--zookeeper", zookeeper]
        processes = {
            broker_id: stack.enter_context(
                BrokerProcess(
                    folder / f"broker-{broker_id}",
                    settings=settings,
                    arguments=["--broker-id", str(broker_id), *where],
                )
            )
            for broker_id in BROKER_IDS
        }
        addresses = {broker_id: each.bootstrap for broker_id, each in processes.items()}
        cluster = ClusterUnderTest(addresses, processes)
        cluster.controller()
        yield cluster
