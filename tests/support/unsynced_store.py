"""An embedded store whose verbs wait for no disk."""

from __future__ import annotations

from odradek.metadata_store.embedded.embedded_store import EmbeddedStore


class UnsyncedStore(EmbeddedStore):
    """For tests that set trio's clock, or go on when all tasks are blocked.

    A sync is done in a thread, and neither of the two waits for a thread.
    """

    async def _sync(self) -> None:
        pass
