"""The watches of one ZooKeeper store, which stay; ZooKeeper's own are gone after one event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kazoo.protocol.states import EventType, WatchedEvent

from ..store import SESSION_ENDED, Change, SessionState, WatchCallback, WatchEvent

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
        self.on_event: Callable[[WatchedEvent], None] | None = None
        self.unreported: list[Change] = []

    def cancel(self) -> None:
        """Never call the callback again; may be called twice."""
        self._watches.forget(self)


class ZooKeeperWatches:
    """All watches of a session.

    Args:
        client: kazoo's, of the session that is open.
        on_loop: called in kazoo's threads: has the loop call a function.
        session_state: how the session stands now.
    """

    def __init__(
        self,
        client: Callable[[], Any],
        on_loop: Callable[..., None],
        session_state: Callable[[], SessionState],
    ) -> None:
        self._client = client
        self._on_loop = on_loop
        self._session_state = session_state
        self._watches: set[ZooKeeperWatch] = set()

    def add(self, path: str, callback: WatchCallback) -> tuple[ZooKeeperWatch, Any]:
        """Watch a path; returns also kazoo's result, after which the watch is set."""
        watch = ZooKeeperWatch(self, path, callback)
        self._watches.add(watch)
        return watch, self._arm(watch)

    def forget(self, watch: ZooKeeperWatch) -> None:
        """Remove a watch."""
        self._watches.discard(watch)

    def clear(self) -> None:
        """Forget all: they went with their session."""
        self._watches.clear()

    def connected(self) -> None:
        """ZooKeeper's watches went with the connection, and so did the events of the gap."""
        for watch in list(self._watches):
            self._fired(watch, Change.NODE)

    def _arm(self, watch: ZooKeeperWatch) -> Any:
        """Have ZooKeeper report the next change; returns the last result to wait for."""

        def on_event(event: WatchedEvent) -> None:
            change = CHANGES.get(event.type)
            if change is not None:
                self._on_loop(self._fired, watch, change)

        watch.on_event = watch.on_event or on_event
        client = self._client()
        client.exists_async(watch.path, watch=watch.on_event)
        return client.get_children_async(watch.path, watch=watch.on_event)

    def _fired(self, watch: ZooKeeperWatch, change: Change) -> None:
        """Watch again, then call back: what is read then misses nothing that follows.

        Changes until then are reported as one; ZooKeeper reports a deletion twice.
        """
        if watch not in self._watches or self._session_state() in SESSION_ENDED:
            return
        if change in watch.unreported:
            return
        watch.unreported.append(change)
        self._arm(watch).rawlink(lambda _: self._on_loop(self._report, watch))

    def _report(self, watch: ZooKeeperWatch) -> None:
        unreported, watch.unreported = watch.unreported, []
        for change in unreported:
            if watch in self._watches:
                watch.callback(WatchEvent(watch.path, change))
