"""Changes in the metadata store that brokers tell each other by sequential nodes.

Who changes something creates a node that says where to look; every broker watches their folder,
acts on each that is new, in their order, and removes the old (Kafka's
ZkNodeChangeNotificationListener). A notification that comes twice or late does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from ...metadata_store.errors import MetadataStoreError, NoNode, StoreUnreachable
from ...metadata_store.store import (
    Change,
    MetadataStore,
    SessionState,
    Watch,
    WatchEvent,
    ensure_paths,
)
from ...runtime import waiting
from ...runtime.clock import Clock

logger = logging.getLogger(__name__)

CHANGE_EXPIRATION_MS: Final = 15 * 60 * 1000
"""How long a notification stays, as in Kafka."""

RETRY_SECONDS: Final = 0.5
"""After a store that did not answer, whose session may go on as if nothing had been."""

LISTED_PER_SECOND: Final = 10_000
"""So many notifications are looked through in a second of changes that follow each other. Each look
is for all that are there: looking after each change would cost the square of their number."""


class ChangeNotifications:
    """Follows one folder of notifications.

    Args:
        store: an open session on the metadata.
        clock: for how long notifications stay.
        keep_running: runs an async function beside the requests, again should it fail.
        folder: the path where notifications are created.
        act: does what the content of one says.
    """

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        keep_running: Callable[[Callable[[], Awaitable[None]]], None],
        folder: str,
        act: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._keep_running = keep_running
        self._folder = folder
        self._act = act
        self._following = waiting.new_lock()
        self._will_look = False
        self._seen: dict[str, int] = {}
        self._watch: Watch | None = None
        self._watch_anew = False

    async def start(self) -> None:
        """Follow from now on; what is there already is taken for known.

        Raises:
            MetadataStoreError: the store does not answer.
        """
        await ensure_paths(self._store, [self._folder])
        self._watch = await self._store.watch(self._folder, self._note)
        self._store.add_session_listener(self._note_session)
        now_ms = self._clock.monotonic_ms()
        self._seen = dict.fromkeys(await self._store.children(self._folder), now_ms)

    def stop(self) -> None:
        """Follow no more."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def note_own(self, path: str) -> None:
        """A notification of this broker's own, on which it has acted or will."""
        self._seen[path.rpartition("/")[2]] = self._clock.monotonic_ms()

    def _note(self, event: WatchEvent) -> None:
        if event.change is Change.CHILDREN:
            self._look()

    def _note_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            # The store was out of reach, and so were its notifications; if the session is
            # another one, the watch has gone with the former.
            self._watch_anew = True
            self._look()

    def _look(self) -> None:
        if not self._will_look and self._watch is not None:
            self._will_look = True
            self._keep_running(self._follow)

    async def _follow(self) -> None:
        """Act on the notifications that are new, in their order, and remove the old.

        Raises:
            ExceptionGroup: some could not be acted on, and are new still.
        """
        failures: list[Exception] = []
        is_left = False
        async with self._following:
            self._will_look = False
            try:
                await self._keep_watching()
                names = await self._store.children(self._folder)
                for name in names:
                    if name not in self._seen:
                        try:
                            await self._act_on(name)
                        except MetadataStoreError:
                            raise
                        except Exception as failure:
                            failures.append(failure)
                            continue
                        self._seen[name] = self._clock.monotonic_ms()
                await self._remove_old([name for name in names if name in self._seen])
                # The next look waits for the lock.
                await waiting.sleep(len(names) / LISTED_PER_SECOND)
            except MetadataStoreError as error:
                logger.warning("%s cannot be followed now: %s", self._folder, error)
                is_left = isinstance(error, StoreUnreachable)
        if is_left:
            await waiting.sleep(RETRY_SECONDS)
            self._look()
        if failures:
            raise ExceptionGroup(f"{self._folder}: changes could not be put in force", failures)

    async def _keep_watching(self) -> None:
        if self._watch_anew and self._watch is not None:
            former = self._watch
            self._watch = await self._store.watch(self._folder, self._note)
            self._watch_anew = False
            former.cancel()

    async def _act_on(self, notification: str) -> None:
        try:
            node = await self._store.get(f"{self._folder}/{notification}")
        except NoNode:
            return  # another broker found it old
        await self._act(node.data)

    async def _remove_old(self, names: list[str]) -> None:
        self._seen = {name: self._seen[name] for name in names}
        old_ms = self._clock.monotonic_ms() - CHANGE_EXPIRATION_MS
        for name in names:
            if self._seen[name] < old_ms:
                del self._seen[name]
                try:
                    await self._store.delete(f"{self._folder}/{name}")
                except NoNode:
                    continue
