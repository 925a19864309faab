"""Share fetches that wait for records (Kafka's DelayedShareFetch).

They wait in the purgatory of fetches, under their partitions: new records complete them as they
complete fetches, and so do records that came back.
"""

from __future__ import annotations

from collections.abc import Callable

from ...replication.purgatory.delayed_operation import DelayedOperation


class DelayedShareFetch(DelayedOperation):
    """A share fetch that waits until there is something to hand out.

    Args:
        has_records: whether it may be answered now.
        answer: reads, hands out and answers.
    """

    __slots__ = ("_answer", "_has_records")

    def __init__(self, has_records: Callable[[], bool], answer: Callable[[], None]) -> None:
        super().__init__()
        self._has_records = has_records
        self._answer = answer

    def is_satisfied(self) -> bool:
        """Whether there is something to hand out, or a partition is not led here any more."""
        return self._has_records()

    def on_complete(self) -> None:
        """Answer with whatever there is."""
        self._answer()
