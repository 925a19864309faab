"""A nursery that an object owns while it is used as `async with`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

import trio


class OwnedNursery:
    """Opened and closed by its owner's `__aenter__` and `__aexit__`.

    On leaving, its tasks are cancelled. What the body raised passes through as it is, not in
    an exception group: that there is a nursery is the owner's own affair.
    """

    def __init__(self) -> None:
        self._manager: AbstractAsyncContextManager[trio.Nursery] | None = None

    async def open(self) -> trio.Nursery:
        """Open it.

        Raises:
            RuntimeError: it has been opened before.
        """
        if self._manager is not None:
            raise RuntimeError("a client can be used in one `async with` only: make another")
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        return self._nursery

    async def close(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Cancel what runs in it, and wait until all has ended."""
        assert self._manager is not None
        self._nursery.cancel_scope.cancel()
        try:
            return await self._manager.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            if error is not None and group.exceptions == (error,):
                return False
            raise
