"""What was done to a test broker, as a test in Python that does it again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

STEPS_MAX = 200
INTERNAL_PREFIX = "__"


class Transcript:
    """The last steps, each as lines of Python for `odradek.testing`."""

    def __init__(self) -> None:
        self._steps: deque[str] = deque(maxlen=STEPS_MAX)
        self._topics: dict[str, str] = {}

    def note(self, line: str) -> None:
        """A step was done."""
        self._steps.append(line)

    def need_topic(self, name: str, partitions: int, replication_factor: int) -> None:
        """A step is about a topic, which the test has to make: its cluster has none yet."""
        if not name.startswith(INTERNAL_PREFIX):
            creation = call("kafka_cluster.create_topic", [name, partitions, replication_factor])
            self._topics.setdefault(name, creation)

    def clear(self) -> None:
        """Begin anew."""
        self._steps.clear()
        self._topics.clear()

    def recipe(self, brokers: int) -> str:
        """A test for pytest, with the fixtures of `odradek.testing`.

        Args:
            brokers: how many the cluster has.
        """
        if not self._steps:
            return ""
        body = "\n".join(f"    {step}" for step in (*self._topics.values(), *self._steps))
        imported = "from odradek.testing import faults\n\n\n" if "faults." in body else "\n"
        return (
            f"import pytest\n\n{imported}"
            f"@pytest.mark.kafka(brokers={brokers})\n"
            "def test_what_happened_in_the_console(kafka_cluster):\n"
            f"{body}\n"
        )


def call(function: str, arguments: Sequence[object] = (), **named: object) -> str:
    """A call as Python; arguments that are None are left out."""
    given = [repr(each) for each in arguments]
    given += [f"{name}={value!r}" for name, value in named.items() if value is not None]
    return f"{function}({', '.join(given)})"
