"""A broker keeps to what its cluster has finalized: it watches `/feature` (KIP-584).

After Kafka's FinalizedFeatureChangeListener. Without the node the defaults hold; one that is
disabled or cannot be read means that nothing is finalized. One with a level that this broker
does not support ends it, since it could not read what the others write.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from ...metadata.features import (
    DEFAULT_LEVELS,
    DEFAULTS_EPOCH,
    EPOCH_UNKNOWN,
    Features,
    incompatible,
)
from ...metadata_store.errors import MetadataStoreError, StoreUnreachable
from ...metadata_store.store import MetadataStore, SessionState, Watch, WatchEvent
from ...metadata_store.znodes import FEATURE, CorruptNode, decode_feature
from ...runtime import waiting

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.5
"""After a store that did not answer."""


class FeaturesNotSupported(Exception):
    """The cluster has finalized what this release does not support; the text names it."""


class FeatureFollower:
    """Puts what the store says of features in force on this broker.

    Args:
        store: an open session on the metadata.
        features: what it keeps current.
        keep_running: runs an async function beside the requests, again should it fail.
        on_unsupported: called with why this broker cannot be of this cluster any more.
    """

    def __init__(
        self,
        store: MetadataStore,
        features: Features,
        keep_running: Callable[[Callable[[], Awaitable[None]]], None],
        on_unsupported: Callable[[FeaturesNotSupported], None],
    ) -> None:
        self._store = store
        self._features = features
        self._keep_running = keep_running
        self._on_unsupported = on_unsupported
        self._watch: Watch | None = None
        self._reading = waiting.new_lock()
        self._is_following = False
        self._will_read = False

    async def start(self) -> None:
        """Take up what the store holds, and follow its changes from now on.

        Raises:
            FeaturesNotSupported: this broker cannot be of this cluster.
            MetadataStoreError: the store does not answer.
        """
        self._is_following = True
        self._store.add_session_listener(self._session_changed)
        await self._watch_node()
        await self.read()

    def stop(self) -> None:
        """Follow no more."""
        self._is_following = False
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def read(self) -> None:
        """Read the node and go by it: what this raises, and when, is as with `start`."""
        async with self._reading:  # what is read later is taken up later
            (node,) = await self._store.get_many([FEATURE])
            levels: Mapping[str, int] = {}
            epoch = EPOCH_UNKNOWN
            if node is None:
                levels, epoch = DEFAULT_LEVELS, DEFAULTS_EPOCH
            else:
                try:
                    said = decode_feature(node.data)
                except CorruptNode as error:
                    logger.error("%s cannot be read, so no feature is in use: %s", FEATURE, error)
                else:
                    if said.is_enabled:
                        levels, epoch = said.levels, DEFAULTS_EPOCH + 1 + node.version
            refused = incompatible(levels)
            if refused:
                raise FeaturesNotSupported(
                    "this release cannot be part of the cluster: "
                    + "; ".join(map(str, refused))
                    + ". Start a newer release, or lower the level with kafka-features first."
                )
            self._features.take_up(levels, epoch)

    async def _watch_node(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = await self._store.watch(FEATURE, self._changed)

    def _changed(self, _: WatchEvent) -> None:
        self._read_soon()

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._read_soon()  # the store was out of reach; a watch goes with its session

    def _read_soon(self) -> None:
        if self._is_following and not self._will_read:
            self._will_read = True
            self._keep_running(self._follow)

    async def _follow(self) -> None:
        self._will_read = False
        try:
            await self._watch_node()
            await self.read()
        except FeaturesNotSupported as why:
            self._on_unsupported(why)
        except MetadataStoreError as error:
            logger.warning("the cluster's features cannot be followed now: %s", error)
            if isinstance(error, StoreUnreachable):  # whose session may go on all the same
                await waiting.sleep(RETRY_SECONDS)
                self._read_soon()

    async def catch_up(self) -> None:
        """Go by what the node says now; a store that does not answer leaves all as it is."""
        try:
            await self.read()
        except FeaturesNotSupported as why:
            self._on_unsupported(why)
        except MetadataStoreError as error:
            logger.warning("the cluster's features cannot be read now: %s", error)
