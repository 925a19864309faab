"""An odradek started for a run in a temporary folder, and how soon one is ready."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ...testing.process.broker_process import BrokerProcess, BrokerStartError
from ..cluster import TargetCluster
from ..errors import BenchError
from ..figures import Figures
from ..loads.load import Load
from ..target import BenchTarget
from .interruptible import interruptible

FOLDER_PREFIX = "odradek-bench-"
OWN_BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
"""Nobody joins late in a load, and nothing that is measured depends on it."""


class OwnBroker(BrokerProcess):
    """A broker as anybody starts it, that a Ctrl-C on the terminal passes by: it is ended."""

    own_session = True

    def environment(self) -> dict[str, str]:
        """This process's own, with compiled bytecode cached as it is for anyone."""
        return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def own_broker(settings: Mapping[str, str] = OWN_BROKER_SETTINGS) -> Iterator[OwnBroker]:
    """A fresh broker that lives as long as this, and leaves nothing.

    Args:
        settings: of the broker, by Kafka's names.

    Raises:
        BenchError: it did not start.
    """
    with interruptible(), tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        try:
            broker = OwnBroker(Path(folder) / "data", settings=settings)
        except BrokerStartError as error:
            raise BenchError(f"odradek could not be started: {error}") from error
        with broker:
            yield broker


def target_of(broker: OwnBroker) -> BenchTarget:
    """The broker as something to be measured."""
    return BenchTarget("127.0.0.1", broker.port, broker.pid)


def start() -> Load:
    """Starting a broker, from its command line to its first answer."""

    def run(target: BenchTarget, seconds: float) -> Figures:
        began = time.perf_counter()
        with own_broker() as broker:
            started = target_of(broker)
            with TargetCluster(started):
                ready = time.perf_counter() - began
            memory = started.resident_mb()
        found = {"ready_s": ready}
        if memory is not None:
            found["memory_mb"] = memory
        return found

    about = "a fresh broker in an empty folder, from its start to its first answer; its memory then"
    return Load("start", about, run, starts_broker=True)
