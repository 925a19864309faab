"""What was done to a test broker, as a test in Python that does it again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

STEPS_MAX = 200


class Transcript:
    """The last steps, each as lines of Python for `odradek.testing`."""

    def __init__(self) -> None:
        self._steps: deque[str] = deque(maxlen=STEPS_MAX)

    def note(self, line: str) -> None:
        """A step was done."""
        self._steps.append(line)

    def clear(self) -> None:
        """Begin anew."""
        self._steps.clear()

    def recipe(self, brokers: int) -> str:
        """A test for pytest, with the fixtures of `odradek.testing`.

        Args:
            brokers: how many the cluster has.
        """
        if not self._steps:
            return ""
        body = "\n".join(f"    {step}" for step in self._steps)
        return (
            "import pytest\n\nfrom odradek.testing import faults\n\n\n"
            f"@pytest.mark.kafka(brokers={brokers})\n"
            "def test_what_happened_in_the_console(kafka_cluster):\n"
            f"{body}\n"
        )


def call(function: str, arguments: Sequence[object] = (), **named: object) -> str:
    """A call as Python; arguments that are None are left out."""
    given = [repr(each) for each in arguments]
    given += [f"{name}={value!r}" for name, value in named.items() if value is not None]
    return f"{function}({', '.join(given)})"
