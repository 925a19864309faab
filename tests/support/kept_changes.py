"""Waiting for what a running transaction coordinator stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from odradek.broker.broker import Broker
from odradek.common.errors import ErrorCode
from odradek.coordinator.transaction.keeping import Keeping, Kept
from odradek.coordinator.transaction.state.transaction import Transaction, TransactionalId

SECONDS_MAX = 60


class KeptChanges:
    """Is told of every change that a coordinator of this process has stored.

    Args:
        patch: undoes it when the test is over.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._kept = trio.Event()
        keep = Keeping.keep

        def keep_and_tell(
            keeping: Keeping,
            known: TransactionalId,
            after: Transaction,
            on_kept: Kept,
            **options: Any,
        ) -> None:
            def kept(error: ErrorCode) -> None:
                on_kept(error)
                self._kept.set()

            keep(keeping, known, after, kept, **options)

        patch.setattr(Keeping, "keep", keep_and_tell)

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return once the condition holds; it is looked at after each change."""
        with trio.fail_after(SECONDS_MAX):
            while not condition():
                self._kept = trio.Event()
                await self._kept.wait()

    async def completed(self, broker: Broker, transactional_id: str) -> str:
        """The state of a transactional id once none of its markers is under way."""

        def is_complete() -> bool:
            found = broker.coordinators.transaction.describe(transactional_id)
            return found.error is ErrorCode.NONE and not found.state.startswith("Prepare")

        await self.wait_until(is_complete)
        return broker.coordinators.transaction.describe(transactional_id).state
