"""Checks what a topic holds against what its producer was promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple


class Delivery(NamedTuple):
    """How many records were acknowledged and read, and what is wrong with them."""

    acknowledged: int
    read: int
    doubled: int
    lost: int
    misordered: int
    """Records that follow one with a higher number in their partition."""

    @property
    def is_exactly_once(self) -> bool:
        """Whether everything acknowledged is there, once, in order."""
        return not (self.doubled or self.lost or self.misordered)

    def __str__(self) -> str:
        return ", ".join(f"{field} {value:,}" for field, value in self._asdict().items())


def check_delivery(acknowledged: Collection[int], read: Mapping[int, Sequence[int]]) -> Delivery:
    """Compare what was acknowledged with what was read.

    Args:
        acknowledged: the numbers of the records whose future was resolved. Records were sent
            in the order of their numbers.
        read: the numbers read, by partition, in the order of their offsets.
    """
    counts = Counter(number for numbers in read.values() for number in numbers)
    return Delivery(
        acknowledged=len(acknowledged),
        read=counts.total(),
        doubled=sum(count - 1 for count in counts.values()),
        lost=len(set(acknowledged) - counts.keys()),
        misordered=sum(
            later < earlier for numbers in read.values() for earlier, later in pairwise(numbers)
        ),
    )
