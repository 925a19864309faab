"""Apache Kafka in a process of its own, with the face of `BrokerProcess`.

The tests that kill, break and refill a broker can so be proved against the original: set
`ODRADEK_TEST_KAFKA_LIBS` to a folder with the jars of `kafka_2.13` and its dependencies.
"""

from __future__ import annotations

from pathlib import Path

from odradek.testing.waiting import wait_until
from odradek.tools.conformance.apache_kafka import KafkaProcess

__all__ = ["KafkaProcess", "wait_for_text"]


def wait_for_text(path: Path, text: str, seconds_max: float = 60.0) -> None:
    """Wait until a file that another process writes holds some text."""
    wait_until(
        lambda: path.exists() and text in path.read_text(),
        seconds_max,
        f"{path} does not hold {text!r}",
    )
