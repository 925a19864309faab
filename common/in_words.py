"""Lists in sentences for people: of log lines and of errors."""

from __future__ import annotations

from collections.abc import Sequence


def first_few(names: Sequence[object], count_max: int) -> str:
    """The first of some names with commas between, and how many more there are.

    Args:
        names: in the order in which they are to be named.
        count_max: so many are named.
    """
    named = ", ".join(map(str, names[:count_max]))
    more = len(names) - count_max
    return f"{named} and {more} more" if more > 0 else named
