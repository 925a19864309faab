"""ACLs in the metadata store, where Kafka's AclAuthorizer keeps them, and on every broker.

The entries of a pattern are one node, changed by compare-and-set together with a notification, as
Kafka's ZkAclStore has it; whoever changes them puts them in force here before it answers.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Set
from typing import Final
from urllib.parse import quote, unquote

from ...common import acl
from ...common.acl import AclEntry, AclFilter, PatternType, ResourcePattern
from ...common.errors import ErrorCode, KafkaError
from ...metadata_store import znodes
from ...metadata_store.errors import BadVersion, NodeExists, NoNode
from ...metadata_store.store import (
    Create,
    Delete,
    MetadataStore,
    Operation,
    SessionState,
    SetData,
    StoredNode,
    ensure_paths,
)
from ...runtime import waiting
from ...runtime.clock import Clock
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps
from ...security.authorizer.acl_authorizer import AclAuthorizer, PatternAcls, acls_of
from .change_notifications import ChangeNotifications

logger = logging.getLogger(__name__)

WRITE_ATTEMPTS_MAX: Final = 20
"""How often a write begins anew because another broker was faster."""

ENTRIES_MAX: Final = 5_000
"""Of one pattern: a node may hold 1 MB."""

FOLDERS: Final = {
    PatternType.LITERAL: (znodes.ACLS, znodes.ACL_CHANGES),
    PatternType.PREFIXED: (znodes.PREFIXED_ACLS, znodes.EXTENDED_ACL_CHANGES),
}
"""Where patterns' entries are, and where their changes are announced."""

_BY_CAMEL: Final = {
    kind: {acl.camel(member): member for member in kind}
    for kind in (acl.ResourceType, acl.Operation, acl.Permission)
}


class AclManager:
    """One broker's hand on the ACLs in the store.

    Args:
        store: an open session on the metadata.
        authorizer: gets all there are, and every change.
        clock: for how long notifications stay.
        keep_running: runs an async function beside the requests, again should it fail.
        on_change: called after the authorizer has changed.
    """

    def __init__(
        self,
        store: MetadataStore,
        authorizer: AclAuthorizer,
        clock: Clock,
        keep_running: Callable[[Callable[[], Awaitable[None]]], None],
        on_change: Callable[[], None],
    ) -> None:
        self.authorizer = authorizer
        self._store = store
        self._keep_running = keep_running
        self._on_change = on_change
        self._is_stopped = False
        self._changing = waiting.new_lock()
        """Held from reading entries until they are in force: they are put together in steps."""
        self._notifications = {
            PatternType.LITERAL: ChangeNotifications(
                store, clock, keep_running, znodes.ACL_CHANGES, self._literal_changed
            ),
            PatternType.PREFIXED: ChangeNotifications(
                store, clock, keep_running, znodes.EXTENDED_ACL_CHANGES, self._prefixed_changed
            ),
        }

    async def start(self) -> None:
        """Take up what the store holds, and follow its changes from now on.

        Raises:
            MetadataStoreError: the store does not answer.
        """
        for each in self._notifications.values():
            await each.start()
        await self._load()
        self._store.add_session_listener(self._note_session)

    def _note_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED and not self._is_stopped:
            # Notifications may have come and gone while the store was out of reach.
            self._keep_running(self._load)

    async def _load(self) -> None:
        gone = {pattern for pattern, _entries in self.authorizer.acls}
        kinds = [each for each in acl.ResourceType if each is not acl.ResourceType.ANY]
        for pattern_type, (folder, _changes) in FOLDERS.items():
            await ensure_paths(self._store, [f"{folder}/{acl.camel(each)}" for each in kinds])
            for kind in kinds:
                for name in await self._store.children(f"{folder}/{acl.camel(kind)}"):
                    pattern = ResourcePattern(kind, pattern_type, unquote(name))
                    gone.discard(pattern)
                    await self._apply(pattern)
        for pattern in gone:
            await self._apply(pattern)

    def stop(self) -> None:
        """Follow no more."""
        self._is_stopped = True
        for each in self._notifications.values():
            each.stop()

    async def _literal_changed(self, notification: bytes) -> None:
        await self._changed(PatternType.LITERAL, znodes.decode_acl_change, notification)

    async def _prefixed_changed(self, notification: bytes) -> None:
        await self._changed(PatternType.PREFIXED, znodes.decode_extended_acl_change, notification)

    async def _changed(
        self,
        pattern_type: PatternType,
        decode: Callable[[bytes], tuple[str, str]],
        notification: bytes,
    ) -> None:
        try:
            type_name, name = decode(notification)
            kind = acl.ResourceType[type_name.upper()]
        except (znodes.CorruptNode, KeyError) as error:
            logger.error("a notification of changed ACLs cannot be read: %s", error)
            return
        await self._apply(ResourcePattern(kind, pattern_type, name))

    async def _apply(self, pattern: ResourcePattern) -> None:
        """Put what the store has of a pattern in force."""
        async with self._changing:
            _node, acls = await self._read(pattern)
            self._put(pattern, acls)

    def _put(self, pattern: ResourcePattern, acls: PatternAcls) -> None:
        self.authorizer.replace(pattern, acls)
        self._on_change()

    async def _read(self, pattern: ResourcePattern) -> tuple[StoredNode | None, PatternAcls]:
        (node,) = await self._store.get_many([_path(pattern)])
        if node is None:
            return None, PatternAcls()
        try:
            nodes = await run_in_steps(znodes.decode_acls(node.data))
            return node, await run_in_steps(acls_of(map(_entry, nodes)))
        except (znodes.CorruptNode, KeyError) as error:
            # Nobody may do with these resources what a lost denial would have refused.
            logger.error("the ACLs of %s cannot be read, so all is denied: %s", pattern, error)
            everybody = (acl.ANY_USER, acl.WILDCARD, acl.Operation.ALL, acl.Permission.DENY)
            return node, await run_in_steps(acls_of([AclEntry(*everybody)]))

    # -- changing -------------------------------------------------------------------------

    async def add(self, pattern: ResourcePattern, entries: Iterable[AclEntry]) -> None:
        """Add entries; they are in force on this broker when this returns.

        Raises:
            KafkaError: there are too many, or others keep changing them.
            MetadataStoreError: the store refused.
        """
        added = tuple(entries)
        await self._alter(pattern, lambda present: (*present, *added))

    async def remove(self, pattern: ResourcePattern, entries: Set[AclEntry]) -> None:
        """Remove entries; those that are gone already do not matter.

        Raises:
            KafkaError: others keep changing them.
            MetadataStoreError: the store refused.
        """
        await self._alter(
            pattern, lambda present: (each for each in present if each not in entries)
        )

    def matching(self, requested: AclFilter) -> Steps[dict[ResourcePattern, list[AclEntry]]]:
        """By pattern, the entries that a filter is for, as this broker knows them.

        It yields after each that is looked at: see `run_in_steps`.
        """
        return self.authorizer.matching(requested)

    async def _alter(
        self,
        pattern: ResourcePattern,
        change: Callable[[Iterable[AclEntry]], Iterable[AclEntry]],
    ) -> None:
        async with self._changing:
            for _ in range(WRITE_ATTEMPTS_MAX):
                node, present = await self._read(pattern)
                altered = await run_in_steps(acls_of(change(present.entries)))
                count = len(altered.entries)
                if count > ENTRIES_MAX:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST,
                        f"{pattern.name} would have {count} ACLs: it may have {ENTRIES_MAX}.",
                    )
                is_same = altered.entries == present.entries
                if is_same or await self._write(pattern, node, altered):
                    self._put(pattern, altered)
                    return
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "Others kept changing the same ACLs.")

    async def _write(
        self, pattern: ResourcePattern, node: StoredNode | None, acls: PatternAcls
    ) -> bool:
        """Write and notify in one step; False where the node is not as it was read."""
        path = _path(pattern)
        data = await run_in_steps(znodes.encode_acls(map(_node, acls.entries)))
        change: Operation
        if node is None:
            change = Create(path, data)
        elif acls.entries:
            change = SetData(path, data, node.version)
        else:
            change = Delete(path, node.version)
        folder = FOLDERS[pattern.pattern_type][1]
        encode = znodes.encode_acl_change
        if pattern.pattern_type is PatternType.PREFIXED:
            encode = znodes.encode_extended_acl_change
        notification = Create(
            f"{folder}/{znodes.ACL_CHANGE_PREFIX}",
            encode(pattern.resource_type.name, pattern.name),
            sequential=True,
        )
        try:
            *_, created = await self._store.multi([change, notification])
        except (BadVersion, NodeExists, NoNode):
            return False
        assert isinstance(created, str)
        self._notifications[pattern.pattern_type].note_own(created)
        return True


def _path(pattern: ResourcePattern) -> str:
    folder = FOLDERS[pattern.pattern_type][0]
    return f"{folder}/{acl.camel(pattern.resource_type)}/{_encode_name(pattern.name)}"


def _encode_name(name: str) -> str:
    """A name as that of a node. Kafka writes it as it is, and fails where that cannot be."""
    if "/" not in name and name.strip(".") and unquote(name) == name:
        return name
    return quote(name, safe="").replace(".", "%2E")


def _entry(node: znodes.AclNode) -> AclEntry:
    """Raises: KeyError."""
    return AclEntry(
        node.principal,
        node.host,
        acl.Operation(_BY_CAMEL[acl.Operation][node.operation]),
        acl.Permission(_BY_CAMEL[acl.Permission][node.permission]),
    )


def _node(entry: AclEntry) -> znodes.AclNode:
    return znodes.AclNode(
        entry.principal, acl.camel(entry.permission), acl.camel(entry.operation), entry.host
    )
