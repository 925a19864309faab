"""A broker's session with the metadata store, ended by others as that of a silent broker is."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from ...metadata_store.embedded.embedded_store import EmbeddedStore
from ...metadata_store.embedded.store_file import StoreFile, is_busy
from ...metadata_store.store import SessionState
from ..control.verbs import VerbError

if TYPE_CHECKING:
    from ..control.verbs import Controlled

logger = logging.getLogger(__name__)

BACK_SECONDS_MAX = 45.0
"""How long the broker may take to be registered again."""
LOOK_SECONDS = 0.005


async def _end(path: Path | str, session_id: int) -> None:
    """End a session as another process does, once no third one is writing."""
    other = StoreFile(path)
    other.open()
    try:
        with trio.fail_after(BACK_SECONDS_MAX):
            while True:
                try:
                    other.in_transaction(lambda: other.table.end_session(session_id))
                    return
                except sqlite3.OperationalError as error:
                    if not is_busy(error):
                        raise
                await trio.sleep(LOOK_SECONDS)
    finally:
        other.close()


async def expire(target: Controlled) -> int:
    """End the session, over another connection to the store; answers when there is a new one."""
    broker = target.broker
    store = broker.metadata_store
    if not isinstance(store, EmbeddedStore):
        raise VerbError("sessions with ZooKeeper are ZooKeeper's to end: cut its connections")
    session_id, broker_epoch = store.session_id, broker.controller.broker_epoch
    logger.warning("outage: session %d with the metadata store expires", session_id)
    await _end(store.path, session_id)
    with trio.move_on_after(BACK_SECONDS_MAX):
        while (
            broker.controller.broker_epoch == broker_epoch
            or store.session_state is not SessionState.CONNECTED
        ):
            await trio.sleep(LOOK_SECONDS)
        return session_id
    raise TimeoutError(f"the broker has no new session after {BACK_SECONDS_MAX:g} s")
