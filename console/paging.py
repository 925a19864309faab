"""One page of a long list: cut on the server, with addresses of its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

ItemT = TypeVar("ItemT")

ITEMS_PER_PAGE = 50
AT_ONCE_PARTITIONS_MAX = 1_000
"""What has to be asked for more partitions than these comes after its page."""


class Page(NamedTuple, Generic[ItemT]):
    """Some of a list's items.

    Attributes:
        number: of the page, from 1.
        pages: how many there are; at least 1.
        total: how many items there are on all of them.
        first: the number of the first item shown, from 1; 0 where there are none.
    """

    items: Sequence[ItemT]
    number: int
    pages: int
    total: int
    first: int

    @property
    def last(self) -> int:
        """The number of the last item shown."""
        return max(self.first - 1, 0) + len(self.items)


def page_of(items: Sequence[ItemT], number: int, per_page: int = ITEMS_PER_PAGE) -> Page[ItemT]:
    """A page by its number; the nearest where there is no such page."""
    pages = max(-(-len(items) // per_page), 1)
    number = min(max(number, 1), pages)
    begin = (number - 1) * per_page
    shown = items[begin : begin + per_page]
    return Page(shown, number, pages, len(items), begin + 1 if shown else 0)
