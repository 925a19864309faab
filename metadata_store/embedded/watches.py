"""The watches of one embedded store, and what each has seen last.

A change is found by comparing stamps, whoever made it: this session, another store of
this process, or another process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ..store import WatchCallback
from .node_table import NodeStamp, event_between

logger = logging.getLogger(__name__)


class EmbeddedWatch:
    """One callback on one path."""

    __slots__ = ("_watches", "callback", "path")

    def __init__(self, watches: Watches, path: str, callback: WatchCallback) -> None:
        self._watches = watches
        self.path = path
        self.callback = callback

    def cancel(self) -> None:
        """Never call the callback again; may be called twice."""
        self._watches.remove(self)


class Watches:
    """All watches of a store, by path.

    Args:
        read_stamp: the present stamp of a node, None where there is none.
    """

    def __init__(self, read_stamp: Callable[[str], NodeStamp | None]) -> None:
        self._read_stamp = read_stamp
        self._by_path: dict[str, list[EmbeddedWatch]] = {}
        self._seen: dict[str, NodeStamp | None] = {}

    def __len__(self) -> int:
        """How many paths are watched."""
        return len(self._by_path)

    def add(self, path: str, callback: WatchCallback) -> EmbeddedWatch:
        """Watch a path from now on."""
        watch = EmbeddedWatch(self, path, callback)
        if path not in self._by_path:
            self._seen[path] = self._read_stamp(path)
            self._by_path[path] = []
        self._by_path[path].append(watch)
        return watch

    def remove(self, watch: EmbeddedWatch) -> None:
        """Forget a watch, if it is there."""
        watches = self._by_path.get(watch.path)
        if watches is not None and watch in watches:
            watches.remove(watch)
            if not watches:
                del self._by_path[watch.path]
                del self._seen[watch.path]

    def check(self, paths: Iterable[str] | None = None) -> None:
        """Call back the watchers of those nodes that have changed.

        Args:
            paths: where to look; None for every watched path.
        """
        if not self._by_path:
            return
        for path in list(self._by_path) if paths is None else paths:
            if path not in self._by_path:
                continue
            stamp = self._read_stamp(path)
            event = event_between(path, self._seen[path], stamp)
            self._seen[path] = stamp
            if event is not None:
                for watch in list(self._by_path[path]):
                    try:
                        watch.callback(event)
                    except Exception:  # one watcher's, which must not keep others from the event
                        logger.exception("a watch of %s failed", path)
