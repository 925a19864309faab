"""Waiting until something is true of a broker or a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..conditions import Condition


class Waitable:
    """What conditions are about: a broker, or a cluster as a whole."""

    def wait_until(
        self, *conditions: Condition | Callable[[Any], object], timeout: float = 30.0
    ) -> None:
        """Wait until all conditions hold at once; see `odradek.testing.conditions`.

        Args:
            conditions: of those there, or functions that are given this broker or cluster and
                return whether they hold.
            timeout: in seconds.

        Raises:
            NotReached: they do not; the text says what was seen instead.
            RuntimeError: an event loop runs this code; see `wait_until_async`.
        """
        from ..conditions import wait_for_conditions

        wait_for_conditions(self, conditions, timeout)

    async def wait_until_async(
        self, *conditions: Condition | Callable[[Any], object], timeout: float = 30.0
    ) -> None:
        """The same in a coroutine, of asyncio or trio: `await kafka.wait_until_async(...)`."""
        from ..conditions import wait_for_conditions_async

        await wait_for_conditions_async(self, conditions, timeout)
