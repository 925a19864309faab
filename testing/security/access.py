"""Users and ACLs of a broker, changed from a test without a client.

What a test is told to be so is in force on the broker when the call returns, and on all brokers of
a cluster.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...common.acl import (
    CLUSTER_NAME,
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    parse_operation,
    parse_principal,
)
from ...runtime.long_work import run_in_steps
from ..client_settings import HasClientSettings, User
from ..control.framing import VerbError
from ..control.verbs import verb

if TYPE_CHECKING:
    from ...broker.dynamic_config.acl_manager import AclManager
    from ..control.client import ControlClient
    from ..control.target import ControlTarget

PLAIN = "PLAIN"
DEFAULT = "<default>"
"""As a user, client id or address of a quota: all that have none of their own."""
FOLLOW_SECONDS = 40.0
NO_ACLS = (
    "this broker has no ACLs, so everybody may do everything: make it with acls=True, or mark the "
    "test kafka(acls=True)"
)
WireAcl = tuple[int, int, str, str, str, int, int]
"""Type and kind of pattern, name, principal, host, operation, permission."""


# -- in the broker's process ----------------------------------------------------------------------


@verb
async def set_user(
    target: ControlTarget, mechanism: str, key: str, name: str, password: str, is_new: bool
) -> None:
    """Have a user log in with a password from now on.

    Args:
        mechanism: of SASL.
        key: the setting that holds the users of PLAIN.
        name: of the user.
        password: of the user.
        is_new: whether there may be none of this name yet.
    """
    if mechanism == PLAIN:
        _alter_plain_users(target, key, name, password, is_new)
        return
    from ...broker.dynamic_config.config_manager import USERS
    from ...broker.dynamic_config.stored_users import StoredUsers
    from ...protocol.sasl.scram import ITERATIONS_MIN

    manager = target.broker.context.config_manager
    users = StoredUsers(manager)
    if is_new and name in await users.describe():
        raise _taken(name)
    await users.set_password(name, password, mechanism, ITERATIONS_MIN)
    await manager.apply_config_change(USERS, name)


@verb
async def follow_user(target: ControlTarget, name: str) -> None:
    """Take up what another broker has changed of a user."""
    from ...broker.dynamic_config.config_manager import USERS

    await target.broker.context.config_manager.apply_config_change(USERS, name)


@verb
async def drop_user(target: ControlTarget, mechanism: str, key: str, name: str) -> None:
    """Have a user log in no more; one that is gone already does not matter."""
    if mechanism == PLAIN:
        _alter_plain_users(target, key, name, None, False)
        return
    from ...broker.dynamic_config.stored_users import StoredUsers

    users = StoredUsers(target.broker.context.config_manager)
    if mechanism in (await users.describe()).get(name, {}):
        await users.remove(name, mechanism)


def _alter_plain_users(
    target: ControlTarget, key: str, name: str, password: str | None, is_new: bool
) -> None:
    from ...config.broker_config import BrokerConfig
    from .broker_security import with_plain_user

    config = target.broker.config
    if is_new and f'user_{name}="' in config.static[key]:
        raise _taken(name)
    texts = {**config.static, key: with_plain_user(config.static[key], name, password)}
    config.replace_startup(BrokerConfig.from_sources(texts))


def _taken(name: str) -> VerbError:
    return VerbError(
        f"user {name} is there already, and may be another test's: leave the name out to get one "
        "that nobody has"
    )


@verb
async def add_acls(target: ControlTarget, acls: list[WireAcl]) -> None:
    """Add ACLs."""
    manager = _acl_manager(target)
    for pattern, entry in map(_from_wire, acls):
        await manager.add(pattern, [entry])


@verb
async def remove_acls(target: ControlTarget, acls: list[WireAcl]) -> None:
    """Remove ACLs; those that are gone already do not matter."""
    manager = _acl_manager(target)
    for pattern, entry in map(_from_wire, acls):
        await manager.remove(pattern, {entry})


@verb
async def revoke_acls(
    target: ControlTarget, principal: str, patterns: list[tuple[int, int, str]], numbers: list[int]
) -> list[WireAcl]:
    """Remove the ACLs of a principal; returns those.

    Args:
        principal: such as User:alice.
        patterns: type, kind and name of each; none: all.
        numbers: of operations; none: all.
    """
    manager = _acl_manager(target)
    chosen = patterns or [(ResourceType.ANY, PatternType.ANY, "")]
    removed = []
    for kind, pattern_type, name in chosen:
        for number in numbers or [Operation.ANY]:
            requested = AclFilter(
                ResourceType(kind),
                PatternType(pattern_type),
                name or None,
                principal,
                None,
                Operation(number),
                Permission.ANY,
            )
            found = await run_in_steps(manager.matching(requested))
            for pattern, entries in found.items():
                await manager.remove(pattern, set(entries))
                removed += [_to_wire(AclBinding(pattern, entry)) for entry in entries]
    return removed


@verb
async def alter_quotas(
    target: ControlTarget, entity: dict[str, str | None], values: dict[str, float | None]
) -> None:
    """Set quotas of an entity, and remove those without a value."""
    from ...common.errors import KafkaError
    from ...security.quotas.alterations import QuotaAlteration
    from ...security.quotas.entity import ClientQuotaEntity

    alteration = QuotaAlteration(ClientQuotaEntity.of(entity), values)
    try:
        alteration.check(lambda host: True)
    except KafkaError as refusal:
        raise VerbError(f"quotas of {entity}: {refusal.message}") from None
    await target.broker.context.config_manager.alter_quotas(
        alteration.entity.path, alteration.apply
    )


@verb
async def wait_for_quotas(
    target: ControlTarget, entity: dict[str, str | None], values: dict[str, float | None]
) -> None:
    """Wait until this broker knows what another has set."""
    from ...security.quotas.entity import ClientQuotaEntity

    found = target.broker.context.quotas.by_entity
    key = ClientQuotaEntity.of(entity)

    def is_known() -> bool:
        quotas = found.get(key, {})
        return all(quotas.get(name) == value for name, value in values.items())

    if not await target.wait_until(is_known, FOLLOW_SECONDS):
        raise TimeoutError(f"this broker does not know the quotas of {entity} yet")


def _acl_manager(target: ControlTarget) -> AclManager:
    manager = target.broker.context.acls
    if manager is None:
        raise VerbError(NO_ACLS)
    return manager


def _to_wire(acl: AclBinding) -> WireAcl:
    (kind, pattern_type, name), (principal, host, operation, permission) = acl
    return kind, pattern_type, name, principal, host, operation, permission


def _from_wire(acl: WireAcl) -> AclBinding:
    kind, pattern_type, name, principal, host, operation, permission = acl
    return AclBinding(
        ResourcePattern(ResourceType(kind), PatternType(pattern_type), name),
        AclEntry(principal, host, Operation(operation), Permission(permission)),
    )


# -- in a test's process --------------------------------------------------------------------------


class HasAccess(HasClientSettings):
    """A broker or cluster that clients log in to, and that has ACLs."""

    @abstractmethod
    def controls(self) -> Sequence[ControlClient]:
        """The control channels of all its brokers that run."""

    def add_user(self, name: str | None = None, password: str | None = None) -> User:
        """Have a user who can log in, by the broker's mechanism.

        Args:
            name: of the user; a new one if left out. Who has it already gets another password.
            password: of the user; a new one if left out.

        Returns:
            The user, for `client_settings(..., user=...)`.

        Raises:
            ValueError: nobody logs in to this broker.
        """
        user = User(name or f"user-{secrets.token_hex(4)}", password or secrets.token_urlsafe())
        self._set_user(user, is_new=False)
        return user

    def _set_user(self, user: User, *, is_new: bool) -> None:
        mechanism, key = self._mechanism()
        first, *others = self.controls()
        set_user.on(first)(mechanism, key, *user, is_new)
        for each in others:
            if mechanism == PLAIN:
                set_user.on(each)(mechanism, key, *user, is_new)
            else:
                follow_user.on(each)(user.name)
        if mechanism == PLAIN:
            self.keep_plain_user(key, user.name, user.password)

    def keep_plain_user(self, key: str, name: str, password: str | None) -> None:
        """Have a user of PLAIN be there, or not, after a restart, too.

        Args:
            key: the setting that holds those users.
            name: of the user.
            password: of the user; None: there is none of that name.
        """

    def remove_user(self, user: User | str) -> None:
        """Have a user log in no more. Connections that are logged in go on."""
        mechanism, key = self._mechanism()
        name = user if isinstance(user, str) else user.name
        first, *others = self.controls()
        drop_user.on(first)(mechanism, key, name)
        for each in others:
            if mechanism == PLAIN:
                drop_user.on(each)(mechanism, key, name)
            else:
                follow_user.on(each)(name)
        if mechanism == PLAIN:
            self.keep_plain_user(key, name, None)

    def _mechanism(self) -> tuple[str, str]:
        from .broker_security import jaas_key

        mechanism = self.require_sasl().mechanism
        return mechanism, jaas_key(mechanism, tls=self.tls is not None)

    def allow(
        self,
        who: User | str,
        *operations: str,
        topic: str | Iterable[str] = (),
        group: str | Iterable[str] = (),
        transactional_id: str | Iterable[str] = (),
        cluster: bool = False,
        prefixed: bool = False,
        host: str = "*",
    ) -> None:
        """Add ACLs that allow something; in force with the next request.

        Args:
            who: a user, a name, or a principal such as "User:*".
            operations: Kafka's names, such as "Read" and "Write".
            topic: the names of topics; "*": all.
            group: of groups.
            transactional_id: of transactional ids.
            cluster: whether with the cluster itself.
            prefixed: whether the names are beginnings of names.
            host: the address that the client comes from.

        Raises:
            ValueError: there is no such operation, or nothing to do it with.
            ControlError: the broker has no ACLs.
        """
        patterns = _patterns(topic, group, transactional_id, cluster, prefixed)
        self._add(_acls(who, operations, patterns, host, Permission.ALLOW))

    def deny(
        self,
        who: User | str,
        *operations: str,
        topic: str | Iterable[str] = (),
        group: str | Iterable[str] = (),
        transactional_id: str | Iterable[str] = (),
        cluster: bool = False,
        prefixed: bool = False,
        host: str = "*",
    ) -> None:
        """Add ACLs that refuse something, whatever else allows it; as `allow`."""
        patterns = _patterns(topic, group, transactional_id, cluster, prefixed)
        self._add(_acls(who, operations, patterns, host, Permission.DENY))

    def revoke(
        self,
        who: User | str,
        *operations: str,
        topic: str | Iterable[str] = (),
        group: str | Iterable[str] = (),
        transactional_id: str | Iterable[str] = (),
        cluster: bool = False,
        prefixed: bool = False,
    ) -> None:
        """Remove ACLs of somebody, permissions and denials; what is left out may be anything."""
        patterns = _patterns(topic, group, transactional_id, cluster, prefixed, least=0)
        numbers = [int(parse_operation(each)) for each in operations]
        wire = [(int(each.resource_type), int(each.pattern_type), each.name) for each in patterns]
        first, *others = self.controls()
        removed = revoke_acls.on(first)(_principal(who), wire, numbers)
        for each in others:
            remove_acls.on(each)(removed)

    def set_quota(
        self,
        user: User | str | None = None,
        client_id: str | None = None,
        ip: str | None = None,
        **quotas: float | None,
    ) -> None:
        """Set quotas of a user, a client id, both together, or an address.

        Args:
            user: who, by name; "<default>": all who have no quota of their own.
            client_id: which client; likewise.
            ip: from which address; likewise.
            quotas: by Kafka's names, such as producer_byte_rate=1024; None: remove it.

        Raises:
            ControlError: there is no such quota, or not of these.
        """
        name = user.name if isinstance(user, User) else user
        named = {"user": name, "client-id": client_id, "ip": ip}
        entity = {
            kind: None if each == DEFAULT else each
            for kind, each in named.items()
            if each is not None
        }
        self._set_quota(entity, quotas)

    def _set_quota(self, entity: dict[str, str | None], quotas: Mapping[str, float | None]) -> None:
        first, *others = self.controls()
        alter_quotas.on(first)(entity, dict(quotas))
        for each in others:
            wait_for_quotas.on(each)(entity, dict(quotas))

    def _add(self, acls: list[AclBinding]) -> None:
        wire = [_to_wire(each) for each in acls]
        for control in self.controls():
            add_acls.on(control)(wire)

    def _remove(self, acls: list[AclBinding]) -> None:
        wire = [_to_wire(each) for each in acls]
        for control in self.controls():
            remove_acls.on(control)(wire)


def _principal(who: User | str) -> str:
    return parse_principal(who if isinstance(who, str) else who.name)


def _patterns(
    topic: str | Iterable[str],
    group: str | Iterable[str],
    transactional_id: str | Iterable[str],
    cluster: bool,
    prefixed: bool,
    least: int = 1,
) -> list[ResourcePattern]:
    named = {
        ResourceType.TOPIC: topic,
        ResourceType.GROUP: group,
        ResourceType.TRANSACTIONAL_ID: transactional_id,
    }
    kind = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    patterns = [
        ResourcePattern(resource_type, kind, name)
        for resource_type, names in named.items()
        for name in ([names] if isinstance(names, str) else names)
    ]
    if cluster:
        patterns.append(ResourcePattern(ResourceType.CLUSTER, PatternType.LITERAL, CLUSTER_NAME))
    if len(patterns) < least:
        raise ValueError("with what? name a topic, group or transactional_id, or cluster=True")
    return patterns


def _acls(
    who: User | str,
    operations: Sequence[str],
    patterns: list[ResourcePattern],
    host: str,
    permission: Permission,
) -> list[AclBinding]:
    if not operations:
        raise ValueError("what? name operations, such as 'Read' or 'All'")
    parsed = [parse_operation(each) for each in operations]
    return [
        AclBinding(pattern, AclEntry(_principal(who), host, operation, permission))
        for pattern in patterns
        for operation in parsed
    ]
