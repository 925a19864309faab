"""A snapshot of a broker's topics, by the name under which the broker keeps it."""

from __future__ import annotations

from typing import NamedTuple


class Snapshot(NamedTuple):
    """What `broker.restore` is given; the broker keeps it until it is closed.

    Attributes:
        name: the broker's for it.
    """

    name: str
