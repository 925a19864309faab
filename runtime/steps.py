"""Work that can be done in steps: a generator that yields after each item.

How it is shared out among all that waits is the business of `long_work.py`. Here is nothing of a
loop, so that state machines, and what reads log files without a broker, can be written so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from heapq import merge
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar


class Ordered(Protocol):
    """Something that can be put in order."""

    def __lt__(self, other: Any, /) -> bool: ...


ItemT = TypeVar("ItemT")
KeyT = TypeVar("KeyT", bound=Hashable)
OrderedT = TypeVar("OrderedT", bound=Ordered)
ResultT = TypeVar("ResultT")

Steps: TypeAlias = Generator[None, None, ResultT]
"""Work that yields after each of its items, of some microseconds, and returns its result."""

ITEMS_AT_LEAST: Final = 64
"""So many are done whatever the clock says: small work is one step on a busy machine, too."""

ITEMS_PER_PART: Final = 16_384
"""A dict that becomes larger takes half a millisecond to grow."""

SORTED_AT_ONCE: Final = 512
"""So many items are put in order, or in a set, in a fraction of a millisecond."""


class DictInParts(Generic[KeyT, ItemT]):
    """A dictionary for as many items as somebody likes to send.

    A dict of 200,000 grows in one go, which takes 8 ms. This one begins another dict instead, and
    looks in each of them.
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[dict[KeyT, ItemT]] = [{}]

    def __bool__(self) -> bool:
        return bool(self._parts[-1])

    def __setitem__(self, key: KeyT, item: ItemT) -> None:
        for part in self._parts:
            if key in part:
                part[key] = item
                return
        if len(part) >= ITEMS_PER_PART:
            part = {}
            self._parts.append(part)
        part[key] = item

    def popitem(self) -> tuple[KeyT, ItemT]:
        """Take an item out, the last that was put in. Raises KeyError: there is none."""
        found = self._parts[-1].popitem()
        if not self._parts[-1] and len(self._parts) > 1:
            del self._parts[-1]
        return found


def map_in_steps(
    function: Callable[[ItemT], ResultT], items: Iterable[ItemT]
) -> Steps[list[ResultT]]:
    """What a function makes of each item, as work that yields after each."""
    made = []
    for item in items:
        made.append(function(item))
        yield
    return made


def map_steps(
    work: Callable[[ItemT], Steps[ResultT]], items: Iterable[ItemT]
) -> Steps[list[ResultT]]:
    """The same where what is made of an item is work itself, which yields as often as it likes."""
    made = []
    for item in items:
        yield
        made.append((yield from work(item)))
    return made


def count_in_steps(items: Iterable[KeyT]) -> Steps[Counter[KeyT]]:
    """How often each item is there, as work that yields after each."""
    counts: Counter[KeyT] = Counter()
    for item in items:
        counts[item] += 1
        yield
    return counts


def set_in_steps(items: Sequence[KeyT]) -> Steps[frozenset[KeyT]]:
    """The items as a set, as work that yields as often as there are items."""
    found: set[KeyT] = set()
    for batch in in_batches(items, SORTED_AT_ONCE):
        found.update(batch)
        yield from count_items(len(batch))
    made = frozenset(found)
    yield from count_items(ITEMS_AT_LEAST)  # copying takes a millisecond or two
    return made


def sorted_in_steps(
    items: Sequence[OrderedT],
) -> Steps[list[OrderedT]]:
    """The items in order, as work that yields as often as there are items, or more."""
    runs = []
    for batch in in_batches(items, SORTED_AT_ONCE):
        runs.append(sorted(batch))
        yield from count_items(len(batch))
    if len(runs) == 1:
        return runs[0]
    made = []
    for item in merge(*runs):
        made.append(item)
        yield
    return made


def count_items(count: int) -> Steps[None]:
    """Have what was done in one go count as so many items of a step."""
    for _ in range(count):
        yield


def clear_in_steps(items: list[ItemT] | dict[KeyT, ItemT]) -> Steps[None]:
    """Let go of many items: to free ten thousand that are tuples takes some ten milliseconds."""
    if isinstance(items, dict):
        while items:
            items.popitem()
            yield
        return
    while items:
        del items[-ITEMS_AT_LEAST:]
        yield


def in_batches(items: Sequence[ItemT], size: int) -> Iterator[Sequence[ItemT]]:
    """The items in their order, so many at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def run_at_once(work: Steps[ResultT]) -> ResultT:
    """Run some work to its end without a pause, where nobody waits."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: ResultT = done.value
            return result
