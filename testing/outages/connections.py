"""What happens to a broker's connections: to other brokers, and to the metadata store."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from ..control.framing import VerbError
from ..control.verbs import verb

if TYPE_CHECKING:
    from ..control.target import ControlTarget
    from .links import Links

logger = logging.getLogger(__name__)

BACK_SECONDS_MAX = 45.0
"""How long the broker may take to be registered again."""
LINK_POLL_INTERVAL_S = 0.005


async def _end(path: Path | str, session_id: int) -> None:
    """End a session as another process does, once no third one is writing."""
    import sqlite3

    import trio

    from ...metadata_store.embedded.store_file import StoreFile, is_busy
    from ...storage.io.files import REAL_FILES

    other = StoreFile(path, REAL_FILES)
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
                await trio.sleep(LINK_POLL_INTERVAL_S)
    finally:
        other.close()


@verb
async def expire_metadata_session(target: ControlTarget) -> int:
    """End the broker's session with the metadata store, as ZooKeeper does to a silent broker.

    It is gone from the cluster, and no controller any more, until it has begun another: then
    it registers again by itself, and follows who leads now. Connections of clients stay.

    Returns:
        The number of the session that ended.
    """
    from ...metadata_store.embedded.embedded_store import EmbeddedStore
    from ...metadata_store.store import SessionState

    broker = target.broker
    store = broker.metadata_store
    if not isinstance(store, EmbeddedStore):
        raise VerbError("sessions with ZooKeeper are ZooKeeper's to end: cut its connections")
    session_id, broker_epoch = store.session_id, broker.controller.broker_epoch
    logger.warning("outage: session %d with the metadata store expires", session_id)
    await _end(store.path, session_id)
    if not await target.wait_until(
        lambda: (
            broker.controller.broker_epoch != broker_epoch
            and store.session_state is SessionState.CONNECTED
        ),
        BACK_SECONDS_MAX,
    ):
        raise TimeoutError(f"the broker has no new session after {BACK_SECONDS_MAX:g} s")
    return session_id


@verb
def cut_link(target: ControlTarget, port: int, silent: bool = False) -> None:
    """Cut the link to the broker at a port; a cut that is there is changed into this one."""
    _links(target).link(port).cut(silent=silent)
    what = "nothing comes through" if silent else "connections break and are refused"
    logger.warning("outage: the link to the broker at port %d is cut: %s", port, what)


@verb
def heal_link(target: ControlTarget, port: int) -> None:
    """Heal the link to the broker at a port."""
    _links(target).link(port).heal()
    logger.warning("outage: the link to the broker at port %d is whole", port)


def _links(target: ControlTarget) -> Links:
    from .links import Links

    links = getattr(target.broker.links.connect, "__self__", None)
    if not isinstance(links, Links):
        raise VerbError("this broker's links to others are the system's, which nobody can cut")
    return links
