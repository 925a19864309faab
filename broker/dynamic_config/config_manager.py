"""Settings that change while brokers run: kept in the metadata store, in force on every broker.

A change is written with a compare-and-set, together with a notification under
`/config/changes`, as Kafka's AdminZkClient does. Every broker watches those
(ZkNodeChangeNotificationListener) and calls `apply_config_change`, which reads the entity's
node and puts what it says in force; the broker that wrote does so before it answers its
client. So a notification only says where to look, and one that comes twice or late does no
harm.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import quote, unquote

import trio

from ...common.errors import ErrorCode, KafkaError
from ...config.dynamic.dynamic_config import DynamicConfig
from ...metadata_store import znodes
from ...metadata_store.errors import BadVersion, MetadataStoreError, NodeExists, NoNode
from ...metadata_store.store import (
    Change,
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    SessionState,
    SetData,
    StoredNode,
    Watch,
    WatchEvent,
    ensure_paths,
)
from ...runtime.clock import Clock

logger = logging.getLogger(__name__)

TOPICS: Final = "topics"
BROKERS: Final = "brokers"
GROUPS: Final = "groups"
CLIENT_METRICS: Final = "client-metrics"
"""Kinds of entities that have settings (Kafka's ConfigType)."""

CLUSTER_DEFAULT: Final = "<default>"
"""The entity whose settings all brokers follow (Kafka's ZooKeeperInternals)."""

DROPPED_WHEN_EMPTY: Final = frozenset({GROUPS, CLIENT_METRICS})
"""A node of these says only that there are settings; of the others, that there is the entity."""

PLAINLY_NAMED: Final = frozenset({TOPICS, BROKERS})
"""Entities whose names are always good as a node's name."""

CHANGE_NODE: Final = f"{znodes.CONFIG_CHANGES}/config_change_"
CHANGE_EXPIRATION_MS: Final = 15 * 60 * 1000
"""How long a notification stays, as in Kafka."""

CONFIG_BYTES_MAX: Final = 1_000_000
"""The settings of one entity; ZooKeeper takes no more in one node."""

WRITE_ATTEMPTS_MAX: Final = 20
"""How often a write begins anew because another broker was faster."""

Overrides = Mapping[str, str]
Apply = Callable[[str, Overrides], None]
"""Puts an entity's settings, all of them, in force on this broker."""


class ConfigManager:
    """One broker's hand on the settings in the store.

    Args:
        store: an open session on the metadata.
        clock: for how long notifications stay.
        start_task: runs an async function beside the requests.
    """

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        start_task: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._start_task = start_task
        self._appliers: dict[str, Apply] = {}
        self._applying = trio.Lock()
        self._following = trio.Lock()
        self._will_look = False
        self._seen: dict[str, int] = {}
        self._watch: Watch | None = None
        self._watch_anew = False

    def on_change(self, entity_type: str, apply: Apply) -> None:
        """Have `apply` called with an entity's name and settings when these change."""
        self._appliers[entity_type] = apply

    # -- following ----------------------------------------------------------------------

    async def start(self, broker_id: int) -> None:
        """Take up what the store holds, and follow its changes from now on.

        Topics are left out: their settings come with their partitions.
        """
        await ensure_paths(self._store, [znodes.CONFIG_CHANGES])
        self._watch = await self._store.watch(znodes.CONFIG_CHANGES, self._note)
        self._store.add_session_listener(self._note_session)
        now_ms = self._clock.monotonic_ms()
        self._seen = dict.fromkeys(await self._store.children(znodes.CONFIG_CHANGES), now_ms)
        for name in (CLUSTER_DEFAULT, str(broker_id)):
            await self.apply_config_change(BROKERS, name)
        for entity_type in (GROUPS, CLIENT_METRICS):
            for name in await self.entity_names(entity_type):
                await self.apply_config_change(entity_type, name)

    def stop(self) -> None:
        """Follow no more."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

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
            self._start_task(self._follow)

    async def _follow(self) -> None:
        """Act on the notifications that are new, in their order, and remove the old."""
        async with self._following:
            self._will_look = False
            try:
                await self._keep_watching()
                names = await self._store.children(znodes.CONFIG_CHANGES)
                for name in names:
                    if name not in self._seen:
                        self._seen[name] = self._clock.monotonic_ms()
                        await self._act_on(name)
                await self._remove_old(names)
            except MetadataStoreError as error:
                logger.warning("changes of settings cannot be followed now: %s", error)

    async def _keep_watching(self) -> None:
        if self._watch_anew and self._watch is not None:
            former = self._watch
            self._watch = await self._store.watch(znodes.CONFIG_CHANGES, self._note)
            self._watch_anew = False
            former.cancel()

    async def _act_on(self, notification: str) -> None:
        try:
            node = await self._store.get(f"{znodes.CONFIG_CHANGES}/{notification}")
            path = znodes.decode_config_change(node.data)
        except NoNode:
            return  # another broker found it old
        except znodes.CorruptNode as error:
            logger.error("the notification %s cannot be read: %s", notification, error)
            return
        entity_type, _, encoded = path.partition("/")
        if not encoded or "/" in encoded:
            return  # quotas of a user's client, which lie a level deeper, or nonsense
        await self.apply_config_change(entity_type, _decode_name(entity_type, encoded))

    async def _remove_old(self, names: list[str]) -> None:
        self._seen = {name: self._seen[name] for name in names}
        old_ms = self._clock.monotonic_ms() - CHANGE_EXPIRATION_MS
        for name in names:
            if self._seen[name] < old_ms:
                del self._seen[name]
                try:
                    await self._store.delete(f"{znodes.CONFIG_CHANGES}/{name}")
                except NoNode:
                    continue

    async def apply_config_change(self, entity_type: str, entity_name: str) -> None:
        """Read an entity's settings and put them in force on this broker.

        A node that cannot be read leaves what is in force; one that is gone means none.

        Raises:
            MetadataStoreError: the store does not answer.
        """
        apply = self._appliers.get(entity_type)
        if apply is None:
            return
        async with self._applying:  # what is read later is applied later
            try:
                _node, overrides = await self._read(entity_path(entity_type, entity_name))
            except znodes.CorruptNode as error:
                logger.error("the settings of %s/%s: %s", entity_type, entity_name, error)
                return
            apply(entity_name, overrides)

    # -- reading and changing -------------------------------------------------------------

    async def entity_names(self, entity_type: str) -> list[str]:
        """The names of the entities of a kind that have a node, sorted."""
        try:
            names = await self._store.children(f"{znodes.CONFIG}/{entity_type}")
        except NoNode:
            return []
        return sorted(_decode_name(entity_type, name) for name in names)

    async def _read(self, path: str) -> tuple[StoredNode | None, dict[str, str]]:
        """An entity's node and settings. Raises: CorruptNode."""
        (node,) = await self._store.get_many([znodes.config_path(path)])
        return node, {} if node is None else znodes.decode_config(node.data)

    async def alter(
        self,
        entity_type: str,
        entity_name: str,
        change: Callable[[Overrides], Overrides],
        *,
        needs: str | None = None,
        validate_only: bool = False,
    ) -> None:
        """Change an entity's settings; they are in force on this broker when this returns.

        Args:
            change: makes the new settings of the present ones, or raises KafkaError. It is
                called again when another broker wrote meanwhile.
            needs: a node that must be there for the change to make sense.
            validate_only: call `change`, and write nothing.

        Raises:
            KafkaError: what `change` raised; UNKNOWN_TOPIC_OR_PARTITION where the node that
                is needed is gone; INVALID_REQUEST where the settings are too long.
            MetadataStoreError: the store refused.
        """
        path = entity_path(entity_type, entity_name)
        for _ in range(WRITE_ATTEMPTS_MAX):
            try:
                node, present = await self._read(path)
            except znodes.CorruptNode as error:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"In the store: {error}") from None
            altered = change(present)
            if validate_only:
                return
            if altered == present and entity_type != BROKERS:
                return  # of a broker, also files that a setting only names are looked at anew
            if await self._write(entity_type, path, node, altered, needs):
                await self.apply_config_change(entity_type, entity_name)
                return
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "Others kept changing the same settings.")

    async def _write(
        self,
        entity_type: str,
        path: str,
        node: StoredNode | None,
        overrides: Overrides,
        needs: str | None,
    ) -> bool:
        """Write and notify in one step; False where the node is not as it was read."""
        operations: list[Operation] = [] if needs is None else [Check(needs)]
        operations.append(_write_operation(entity_type, path, node, overrides))
        operations.append(Create(CHANGE_NODE, znodes.encode_config_change(path), sequential=True))
        try:
            *_, notification = await self._store.multi(operations)
        except (BadVersion, NodeExists):
            return False
        except NoNode:
            if needs is not None and (await self._store.get_many([needs]))[0] is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None
            await ensure_paths(self._store, [f"{znodes.CONFIG}/{entity_type}"])
            return False
        assert isinstance(notification, str)
        self._seen[notification.rpartition("/")[2]] = self._clock.monotonic_ms()
        return True


def _write_operation(
    entity_type: str, path: str, node: StoredNode | None, overrides: Overrides
) -> Operation:
    data = znodes.encode_config(overrides)
    if len(data) + len(path) > CONFIG_BYTES_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"These settings take {len(data)} bytes: they may take {CONFIG_BYTES_MAX} with their "
            f"name.",
        )
    if node is None:
        return Create(znodes.config_path(path), data)
    if not overrides and entity_type in DROPPED_WHEN_EMPTY:
        return Delete(znodes.config_path(path), node.version)
    return SetData(znodes.config_path(path), data, node.version)


def entity_path(entity_type: str, entity_name: str) -> str:
    """Where below `/config` an entity's settings are.

    A name that could not be a node's is percent-encoded, as by Kafka's Sanitizer.
    """
    if entity_type in PLAINLY_NAMED:
        return f"{entity_type}/{entity_name}"
    encoded = quote(entity_name, safe="").replace("~", "%7E")
    if not encoded.strip("."):
        encoded = encoded.replace(".", "%2E")  # "." and ".." are no names in ZooKeeper
    return f"{entity_type}/{encoded}"


def _decode_name(entity_type: str, encoded: str) -> str:
    return encoded if entity_type in PLAINLY_NAMED else unquote(encoded)


async def load_broker_overrides(
    store: MetadataStore, config: DynamicConfig, broker_id: int
) -> None:
    """Put what was changed for a broker, and for all, in force before it starts.

    Raises:
        MetadataStoreError: the store does not answer.
    """
    names = (CLUSTER_DEFAULT, str(broker_id))
    nodes = await store.get_many([znodes.config_path(entity_path(BROKERS, name)) for name in names])
    for name, node in zip(names, nodes, strict=True):
        if node is not None:
            try:
                overrides = znodes.decode_config(node.data)
            except znodes.CorruptNode as error:
                logger.error("the changed settings of broker %s are not used: %s", name, error)
            else:
                config.change(overrides, per_broker=name != CLUSTER_DEFAULT)
