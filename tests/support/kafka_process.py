"""Apache Kafka in a process of its own, with the face of `BrokerProcess`.

The tests that kill, break and refill a broker can so be proved against the original: set
`ODRADEK_TEST_KAFKA_LIBS` to a folder with the jars of `kafka_2.13` and its dependencies.
"""

from __future__ import annotations

import time
from pathlib import Path

from odradek.tools.conformance.apache_kafka import CLUSTER_ID, KafkaProcess

__all__ = ["CLUSTER_ID", "KafkaProcess", "wait_for_text"]


def wait_for_text(path: Path, text: str, seconds_max: float = 60.0) -> None:
    """Wait until a file that another process writes holds some text."""
    deadline = time.monotonic() + seconds_max
    while not (path.exists() and text in path.read_text()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{path} does not hold {text!r}")
        time.sleep(0.05)
