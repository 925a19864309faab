"""Ports that tests may count on: nobody else gets them while they are held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from odradek.testing.process.held_port import HeldPort

TRIES_MAX = 1_000


@contextmanager
def nobody_listens() -> Iterator[str]:
    """host:port of an address that refuses connections for as long as this lasts."""
    with HeldPort() as held:
        yield held.address


@contextmanager
def ports_in_a_row(count: int) -> Iterator[int]:
    """The first of `count` neighbouring ports, on each of which a server may listen.

    Raises:
        AssertionError: there are none.
    """
    for _ in range(TRIES_MAX):
        with ExitStack() as stack:
            try:
                first = stack.enter_context(HeldPort()).port
                for port in range(first + 1, first + count):
                    stack.enter_context(HeldPort(port))
            except (OSError, OverflowError):
                continue  # a neighbour is taken, or past the last port
            yield first
            return
    raise AssertionError(f"there are no {count} free ports in a row")
