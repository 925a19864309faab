"""The watches of one ZooKeeper store, which stay; ZooKeeper's own are gone after one event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kazoo.protocol.states import EventType, WatchedEvent

from ..store import Change, SessionState, WatchCallback, WatchEvent
from .zookeeper_session import RAN_OUT, ZooKeeperSession

CHANGES = {
    EventType.CREATED: Change.NODE,
    EventType.DELETED: Change.NODE,
    EventType.CHANGED: Change.NODE,
    EventType.CHILD: Change.CHILDREN,
}


class ZooKeeperWatch:
    """One callback on one path."""

    def __init__(self, watches: ZooKeeperWatches, path: str, callback: WatchCallback) -> None:
        self._watches = watches
        self.path = path
        self.callback = callback
        self.told: Callable[[WatchedEvent], None] | None = None
        self.untold: list[Change] = []

    def cancel(self) -> None:
        """Call the callback no more; may be done twice."""
        self._watches.forget(self)


class ZooKeeperWatches:
    """All watches of a session."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session
        self._watches: set[ZooKeeperWatch] = set()
        session.add_listener(self._session_changed)

    async def add(self, path: str, callback: WatchCallback) -> ZooKeeperWatch:
        """Watch a path from now on."""
        watch = ZooKeeperWatch(self, path, callback)
        self._watches.add(watch)
        await self._session.wait_for(self._arm(watch))
        return watch

    def forget(self, watch: ZooKeeperWatch) -> None:
        """Call a watch back no more."""
        self._watches.discard(watch)

    def clear(self) -> None:
        """Forget all: they went with their session."""
        self._watches.clear()

    def _session_changed(self, state: SessionState) -> None:
        if state in RAN_OUT:
            self.clear()
        elif state is SessionState.CONNECTED:
            # ZooKeeper's went with the connection, and so did what they might have told.
            for watch in list(self._watches):
                self._fired(watch, Change.NODE)

    def _arm(self, watch: ZooKeeperWatch) -> Any:
        """Have ZooKeeper tell of the next change; returns the last result to wait for."""

        def told(event: WatchedEvent) -> None:
            change = CHANGES.get(event.type)
            if change is not None:
                self._session.on_loop(self._fired, watch, change)

        watch.told = watch.told or told
        client = self._session.client
        client.exists_async(watch.path, watch=watch.told)
        return client.get_children_async(watch.path, watch=watch.told)

    def _fired(self, watch: ZooKeeperWatch, change: Change) -> None:
        """Watch again, then call back: what is read then misses nothing that follows.

        What else happens until then comes as one; ZooKeeper tells a deletion twice.
        """
        if watch not in self._watches or self._session.state in RAN_OUT:
            return
        if change in watch.untold:
            return
        watch.untold.append(change)
        self._arm(watch).rawlink(lambda _: self._session.on_loop(self._tell, watch))

    def _tell(self, watch: ZooKeeperWatch) -> None:
        untold, watch.untold = watch.untold, []
        for change in untold:
            if watch in self._watches:
                watch.callback(WatchEvent(watch.path, change))
