"""Waiting for what a running transaction coordinator stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from odradek.broker.broker import Broker
from odradek.common.errors import ErrorCode
from odradek.coordinator.transaction.state_manager import AppendedCallback, TransactionStateManager
from odradek.coordinator.transaction.transaction import Transaction, TransactionMetadata

SECONDS_MAX = 60


class KeptChanges:
    """Is told of every change that a coordinator of this process has stored.

    Args:
        patch: undoes it when the test is over.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._kept = trio.Event()
        append = TransactionStateManager.append

        def append_and_notify(
            manager: TransactionStateManager,
            known: TransactionMetadata,
            after: Transaction,
            on_complete: AppendedCallback,
            **options: Any,
        ) -> None:
            def appended(error: ErrorCode) -> None:
                on_complete(error)
                self._kept.set()

            append(manager, known, after, appended, **options)

        patch.setattr(TransactionStateManager, "append", append_and_notify)

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
