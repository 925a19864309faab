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
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final
from urllib.parse import quote, unquote

from ...common.errors import ErrorCode, KafkaError
from ...config.dynamic.dynamic_config import DynamicConfig
from ...metadata_store import znodes
from ...metadata_store.errors import BadVersion, NodeExists, NoNode
from ...metadata_store.store import (
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    SetData,
    StoredNode,
    ensure_paths,
)
from ...runtime import waiting
from ...runtime.clock import Clock
from ...runtime.long_work import Pace
from .change_notifications import ChangeNotifications
from .stored_passwords import NO_PASSWORDS, StoredPasswords

logger = logging.getLogger(__name__)

TOPICS: Final = "topics"
BROKERS: Final = "brokers"
GROUPS: Final = "groups"
CLIENT_METRICS: Final = "client-metrics"
USERS: Final = "users"
"""Kinds of entities that have settings (Kafka's ConfigType)."""

CLUSTER_DEFAULT: Final = "<default>"
"""The entity whose settings all brokers follow (Kafka's ZooKeeperInternals)."""

DROPPED_WHEN_EMPTY: Final = frozenset({GROUPS, CLIENT_METRICS})
"""A node of these says only that there are settings; of the others, that there is the entity."""

PLAINLY_NAMED: Final = frozenset({TOPICS, BROKERS})
"""Entities whose names are always good as a node's name."""

CHANGE_NODE: Final = f"{znodes.CONFIG_CHANGES}/config_change_"
CONFIG_BYTES_MAX: Final = 1_000_000
"""The settings of one entity; ZooKeeper takes no more in one node."""

WRITE_ATTEMPTS_MAX: Final = 20
"""How often a write begins anew because another broker was faster."""

Overrides = Mapping[str, str]
Apply = Callable[[str, Overrides], None]
"""Puts an entity's settings, all of them, in force on this broker."""

QUOTA_FOLDERS: Final = (USERS, "clients", "ips")
"""Below `/config`: where quotas are; those of a user's clients a level deeper."""
USER_CLIENTS: Final = "clients"


class ConfigManager:
    """One broker's hand on the settings in the store.

    Args:
        store: an open session on the metadata.
        clock: for how long notifications stay.
        keep_running: runs an async function beside the requests, again should it fail.
        passwords: how secrets of brokers are kept in the store.
    """

    def __init__(
        self,
        store: MetadataStore,
        clock: Clock,
        keep_running: Callable[[Callable[[], Awaitable[None]]], None],
        passwords: StoredPasswords = NO_PASSWORDS,
    ) -> None:
        self._store = store
        self._passwords = passwords
        self._appliers: dict[str, Apply] = {}
        self._apply_quotas: Apply | None = None
        self.applying: Final = waiting.new_lock()
        """Held while settings are read and put in force: what is read later, is applied later."""
        self._notifications = ChangeNotifications(
            store, clock, keep_running, znodes.CONFIG_CHANGES, self._act_on
        )

    def on_change(self, entity_type: str, apply: Apply) -> None:
        """Have `apply` called with an entity's name and settings when these change."""
        self._appliers[entity_type] = apply

    def on_quota_change(self, apply: Apply) -> None:
        """Have `apply` called with a path below `/config` and its settings when quotas change."""
        self._apply_quotas = apply

    # -- following ----------------------------------------------------------------------

    async def start(self, broker_id: int) -> None:
        """Take up what the store holds, and follow its changes from now on.

        Topics are left out: their settings come with their partitions.
        """
        await self._notifications.start()
        for name in (CLUSTER_DEFAULT, str(broker_id)):
            await self.apply_config_change(BROKERS, name)
        for entity_type in self._appliers.keys() - {TOPICS, BROKERS}:
            for name in await self.entity_names(entity_type):
                await self.apply_config_change(entity_type, name)
        if self._apply_quotas is not None:
            for path in await self._quota_paths():
                await self._read_and_apply(path, path, self._apply_quotas)

    async def _quota_paths(self) -> list[str]:
        """Below `/config`, the nodes that may have quotas."""
        paths: list[str] = []
        for folder in QUOTA_FOLDERS:
            paths += [f"{folder}/{name}" for name in await self._children(folder)]
        for user in [path for path in paths if path.startswith(f"{USERS}/")]:
            folder = f"{user}/{USER_CLIENTS}"
            paths += [f"{folder}/{name}" for name in await self._children(folder)]
        return paths

    async def _children(self, folder: str) -> list[str]:
        try:
            return sorted(await self._store.children(f"{znodes.CONFIG}/{folder}"))
        except NoNode:
            return []

    def stop(self) -> None:
        """Follow no more."""
        self._notifications.stop()

    async def _act_on(self, notification: bytes) -> None:
        try:
            path = znodes.decode_config_change(notification)
        except znodes.CorruptNode as error:
            logger.error("a notification of changed settings cannot be read: %s", error)
            return
        await self._apply_path(path)

    async def _apply_path(self, path: str) -> None:
        """Read the settings at a path below `/config` and put them in force on this broker."""
        entity_type, _, encoded = path.partition("/")
        if encoded and "/" not in encoded:
            await self.apply_config_change(entity_type, _decode_name(entity_type, encoded))
        if self._apply_quotas is not None and entity_type in QUOTA_FOLDERS:
            await self._read_and_apply(path, path, self._apply_quotas)

    async def apply_config_change(self, entity_type: str, entity_name: str) -> None:
        """Read an entity's settings and put them in force on this broker.

        A node that cannot be read leaves what is in force; one that is gone means none.

        Raises:
            MetadataStoreError: the store does not answer.
        """
        apply = self._appliers.get(entity_type)
        if apply is not None:
            await self._read_and_apply(entity_path(entity_type, entity_name), entity_name, apply)

    async def _read_and_apply(self, path: str, name: str, apply: Apply) -> None:
        async with self.applying:
            try:
                _node, overrides = await self._read(path)
            except znodes.CorruptNode as error:
                logger.error("the settings of %s: %s", path, error)
                return
            apply(name, overrides)

    # -- reading and changing -------------------------------------------------------------

    async def entity_names(self, entity_type: str) -> list[str]:
        """The names of the entities of a kind that have a node, sorted."""
        names = await self._children(entity_type)
        return sorted(_decode_name(entity_type, name) for name in names)

    async def settings_of(
        self, entity_type: str, entity_names: Collection[str]
    ) -> dict[str, Overrides]:
        """What the store has of entities of a kind; nothing where there is none, or no sense in it.

        Raises:
            MetadataStoreError: the store does not answer.
        """
        paths = []
        found: dict[str, Overrides] = {}
        pace = Pace()
        for name in entity_names:
            await pace.keep()
            paths.append(znodes.config_path(entity_path(entity_type, name)))
        nodes = await self._store.get_many(paths)
        for name, node in zip(entity_names, nodes, strict=True):
            await pace.keep()
            try:
                found[name] = (
                    znodes.decode_config(node.data) if node is not None and node.data else {}
                )
            except znodes.CorruptNode as error:
                logger.error("the settings of %s/%s: %s", entity_type, name, error)
                found[name] = {}
        return found

    async def _read(self, path: str) -> tuple[StoredNode | None, dict[str, str]]:
        """An entity's node and settings. Raises: CorruptNode."""
        (node,) = await self._store.get_many([znodes.config_path(path)])
        # A user's node may be there for those of its clients only, and be empty.
        overrides = znodes.decode_config(node.data) if node is not None and node.data else {}
        if path.startswith(f"{BROKERS}/"):
            overrides = await self._passwords.from_persistent(overrides)
        return node, overrides

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
        if await self._alter(path, change, needs=needs, validate_only=validate_only):
            await self.apply_config_change(entity_type, entity_name)

    async def alter_quotas(
        self,
        path: str,
        change: Callable[[Overrides], Overrides],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change the settings at a path below `/config`, which may be a level deeper.

        Raises:
            KafkaError, MetadataStoreError: as `alter` does.
        """
        if await self._alter(path, change, validate_only=validate_only):
            await self._apply_path(path)

    async def _alter(
        self,
        path: str,
        change: Callable[[Overrides], Overrides],
        *,
        needs: str | None = None,
        validate_only: bool = False,
    ) -> bool:
        """Change the settings at a path below `/config`; returns whether anything was written."""
        entity_type = path.partition("/")[0]
        for _ in range(WRITE_ATTEMPTS_MAX):
            try:
                node, present = await self._read(path)
            except znodes.CorruptNode as error:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"In the store: {error}") from None
            altered = change(present)
            if validate_only:
                return False
            if altered == present and entity_type != BROKERS:
                return False  # of a broker, also files that a setting only names are read anew
            if await self._write(entity_type, path, node, altered, needs):
                return True
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
        if entity_type == BROKERS:
            name = path.rpartition("/")[2]
            broker = None if name == CLUSTER_DEFAULT else name
            overrides = await self._passwords.to_persistent(overrides, broker)
        operations.append(_write_operation(entity_type, path, node, overrides))
        operations.append(Create(CHANGE_NODE, znodes.encode_config_change(path), sequential=True))
        try:
            *_, notification = await self._store.multi(operations)
        except (BadVersion, NodeExists):
            return False
        except NoNode:
            if needs is not None and (await self._store.get_many([needs]))[0] is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None
            folder = znodes.config_path(path).rpartition("/")[0]
            await ensure_paths(self._store, [folder])
            return False
        assert isinstance(notification, str)
        self._notifications.note_own(notification)
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
    store: MetadataStore,
    config: DynamicConfig,
    broker_id: int,
    passwords: StoredPasswords = NO_PASSWORDS,
) -> None:
    """Put what was changed for a broker, and for all, in force before it starts.

    Its secrets in the store that are encoded under `password.encoder.old.secret` are encoded
    anew (Kafka's DynamicBrokerConfig.maybeReEncodePasswords).

    Raises:
        MetadataStoreError: the store does not answer.
    """
    names = (CLUSTER_DEFAULT, str(broker_id))
    paths = [znodes.config_path(entity_path(BROKERS, name)) for name in names]
    for name, path, node in zip(names, paths, await store.get_many(paths), strict=True):
        if node is None:
            continue
        try:
            persistent: Overrides = znodes.decode_config(node.data)
        except znodes.CorruptNode as error:
            logger.error("the changed settings of broker %s are not used: %s", name, error)
            continue
        if name != CLUSTER_DEFAULT:
            re_encoded = await passwords.re_encoded(persistent)
            if re_encoded != persistent:
                persistent = re_encoded
                data = znodes.encode_config(persistent)
                await store.multi([SetData(path, data, node.version)])
        overrides = await passwords.from_persistent(persistent)
        config.change(overrides, per_broker=name != CLUSTER_DEFAULT)
