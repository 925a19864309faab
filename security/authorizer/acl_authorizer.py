"""Decides by ACLs (Kafka's StandardAuthorizer).

A denial that applies counts first, then a permission. Where neither does: `super.users` may do all,
and `allow.everyone.if.no.acl.found` allows what no ACL's pattern is for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, KeysView, Sequence
from itertools import chain
from typing import Final, NamedTuple

from ...common.acl import (
    ANY_USER,
    WILDCARD,
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    camel,
)
from ...protocol.api_keys import ApiKey
from ...runtime.steps import Steps, run_at_once

audit_log = logging.getLogger("kafka.authorizer.logger")
"""Kafka's name for it."""

DECISIONS_MAX: Final = 10_000
"""So many are remembered until ACLs change; clients do the same again and again."""

REMEMBERED_NAME_LENGTH_MAX: Final = 255
"""Names of resources are shorter, but what a request names may have 32 KB."""

Who = tuple[str, str]
"""A principal and a host, as an entry has them."""


class Decision(NamedTuple):
    """Whether something may be done, and why.

    Attributes:
        is_allowed: whether it may.
        rule: as Kafka's audit log names it.
        acl: that decides; None: no ACL does.
    """

    is_allowed: bool
    rule: str
    acl: AclBinding | None = None


SUPER_USER: Final = Decision(True, "SuperUser")


IMPLIES: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}
"""Operations whose permission is one for the key, too. Their denial is not (StandardAuthorizer)."""


def applies(entry: AclEntry, principal: str, host: str, operation: Operation) -> bool:
    """Whether an entry says something of what a principal does from a host."""
    if entry.principal not in (principal, ANY_USER) or entry.host not in (WILDCARD, host):
        return False
    if entry.operation in (Operation.ALL, operation):
        return True
    return entry.permission is Permission.ALLOW and entry.operation in IMPLIES.get(operation, ())


class PatternAcls:
    """The entries of one pattern, in the order in which they were made.

    Those for a principal and a host are found without looking at the others, of which there may be
    thousands. `acls_of` makes it; then it does not change.
    """

    __slots__ = ("_by_who", "_entries")

    def __init__(self) -> None:
        self._entries: dict[AclEntry, None] = {}
        self._by_who: dict[Who, list[AclEntry]] = {}

    @property
    def entries(self) -> KeysView[AclEntry]:
        """All of them."""
        return self._entries.keys()

    def add(self, entry: AclEntry) -> None:
        """One more, unless it is there."""
        if entry not in self._entries:
            self._entries[entry] = None
            self._by_who.setdefault((entry.principal, entry.host), []).append(entry)

    def of(self, who: Iterable[Who]) -> Iterator[AclEntry]:
        """Those that name one of these: as many as there are operations, at the most."""
        return chain.from_iterable(self._by_who.get(each, ()) for each in who)

    def candidates(self, requested: AclFilter) -> Iterable[AclEntry]:
        """All that a filter may be for, and others perhaps."""
        if requested.principal is None or requested.host is None:
            return self._entries
        return self._by_who.get((requested.principal, requested.host), ())


def acls_of(entries: Iterable[AclEntry]) -> Steps[PatternAcls]:
    """Put the entries of a pattern together, as work that yields after each."""
    acls = PatternAcls()
    for entry in entries:
        acls.add(entry)
        yield
    return acls


class AclAuthorizer:
    """The ACLs of a cluster as this broker knows them.

    Args:
        super_users: principals that may do everything.
        allows_without_acl: `allow.everyone.if.no.acl.found`.
    """

    def __init__(self, super_users: Iterable[str], *, allows_without_acl: bool) -> None:
        self._super_users = frozenset(super_users)
        kind = "DefaultAllow" if allows_without_acl else "DefaultDeny"
        self._without_acl = Decision(allows_without_acl, kind)
        self._literal: dict[tuple[ResourceType, str], PatternAcls] = {}
        self._prefixed: dict[ResourceType, dict[int, dict[str, PatternAcls]]] = {}
        """By the length of the prefix: a name is looked for in as many as there are."""
        self._decisions: dict[tuple[str, str, str, str, str], Decision] = {}

    @property
    def acls(self) -> Iterator[tuple[ResourcePattern, KeysView[AclEntry]]]:
        """All patterns that have entries. They may change between two of them."""
        return ((pattern, acls.entries) for pattern, acls in self._all())

    def _all(self) -> Iterator[tuple[ResourcePattern, PatternAcls]]:
        for (resource_type, name), acls in list(self._literal.items()):
            yield ResourcePattern(resource_type, PatternType.LITERAL, name), acls
        for resource_type, by_length in list(self._prefixed.items()):
            for by_name in list(by_length.values()):
                for name, acls in list(by_name.items()):
                    yield ResourcePattern(resource_type, PatternType.PREFIXED, name), acls

    def change(self, pattern: ResourcePattern, entries: Iterable[AclEntry]) -> None:
        """Put entries in place of all that a pattern had."""
        self.replace(pattern, run_at_once(acls_of(entries)))

    def replace(self, pattern: ResourcePattern, acls: PatternAcls) -> None:
        """The same with entries that `acls_of` has put together."""
        resource_type, pattern_type, name = pattern
        self._decisions.clear()
        if pattern_type is PatternType.PREFIXED:
            by_length = self._prefixed.setdefault(resource_type, {})
            by_name = by_length.setdefault(len(name), {})
            by_name.pop(name, None)
            if acls.entries:
                by_name[name] = acls
            elif not by_name:
                del by_length[len(name)]
            return
        self._literal.pop((resource_type, name), None)
        if acls.entries:
            self._literal[resource_type, name] = acls

    def matching(self, requested: AclFilter) -> Steps[dict[ResourcePattern, list[AclEntry]]]:
        """By pattern, the entries that a filter is for, as work that yields after each.

        One with a name looks at the patterns of this name, and one with a principal and a host at
        their entries: many such filters cost what they find.
        """
        found: dict[ResourcePattern, list[AclEntry]] = {}
        for pattern, acls in self._candidates(requested):
            yield
            if requested.takes_pattern(pattern):
                for entry in acls.candidates(requested):
                    if requested.takes_entry(entry):
                        found.setdefault(pattern, []).append(entry)
                    yield
        return found

    def _candidates(self, requested: AclFilter) -> Iterable[tuple[ResourcePattern, PatternAcls]]:
        if requested.name is None:
            return self._all()
        kinds: Iterable[ResourceType] = ResourceType
        if requested.resource_type is not ResourceType.ANY:
            kinds = [requested.resource_type]
        return [found for kind in kinds for found in self._for(kind, requested.name)]

    def decide(
        self, principal: str, host: str, operation: str, resource_type: str, name: str
    ) -> Decision:
        """Whether a principal may do something.

        Args:
            principal: such as "User:alice".
            host: the address that it comes from.
            operation: the name of an `Operation`.
            resource_type: the name of a `ResourceType`.
            name: of the resource.
        """
        key = (principal, host, operation, resource_type, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decide(
                principal, host, Operation[operation], ResourceType[resource_type], name
            )
            if len(self._decisions) >= DECISIONS_MAX:
                self._decisions.clear()
            if len(name) <= REMEMBERED_NAME_LENGTH_MAX:
                self._decisions[key] = decision
        return decision

    def _decide(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> Decision:
        if principal in self._super_users:
            return SUPER_USER
        allowing: Decision | None = None
        has_acls = False
        who = _who(principal, host)
        for pattern, acls in self._for(resource_type, name):
            has_acls = True
            for entry in acls.of(who):
                if not applies(entry, principal, host, operation):
                    continue
                if entry.permission is Permission.DENY:
                    return _by_acl(pattern, entry)
                allowing = allowing or _by_acl(pattern, entry)
        if allowing is not None:
            return allowing
        return Decision(False, "DefaultDeny") if has_acls else self._without_acl

    def _for(
        self, resource_type: ResourceType, name: str
    ) -> Iterator[tuple[ResourcePattern, PatternAcls]]:
        """The patterns that are for a resource, with their entries."""
        for literal in dict.fromkeys((name, WILDCARD)):
            acls = self._literal.get((resource_type, literal))
            if acls is not None:
                yield ResourcePattern(resource_type, PatternType.LITERAL, literal), acls
        for length, by_name in self._prefixed.get(resource_type, {}).items():
            prefix = name[:length]
            acls = by_name.get(prefix)
            if acls is not None:
                yield ResourcePattern(resource_type, PatternType.PREFIXED, prefix), acls

    def may_somewhere(
        self, principal: str, host: str, operation: str, resource_type: str
    ) -> Steps[bool]:
        """Whether there is any resource of a type with which a principal may do something.

        An idempotent producer may begin where it may write to some topic (KIP-679, Kafka's
        Authorizer.authorizeByResourceType). It is work that yields after each pattern.
        """
        if principal in self._super_users:
            return True
        kind, op = ResourceType[resource_type], Operation[operation]
        who = _who(principal, host)
        allowed: list[ResourcePattern] = []
        denied: dict[PatternType, set[str]] = {each: set() for each in PatternType}
        for pattern, acls in self._all():
            yield
            if pattern.resource_type is kind:
                for entry in acls.of(who):
                    if not applies(entry, principal, host, op):
                        continue
                    if entry.permission is Permission.DENY:
                        denied[pattern.pattern_type].add(pattern.name)
                    else:
                        allowed.append(pattern)
        if WILDCARD in denied[PatternType.LITERAL]:
            return False
        if self._without_acl.is_allowed:
            return True
        lengths = set(map(len, denied[PatternType.PREFIXED]))
        for pattern_type, name in {each[1:]: None for each in allowed}:
            yield
            if pattern_type is PatternType.LITERAL and name == WILDCARD:
                return True
            if pattern_type is PatternType.LITERAL and name in denied[PatternType.LITERAL]:
                continue
            if not any(name[:length] in denied[PatternType.PREFIXED] for length in lengths):
                return True
        return False


def _who(principal: str, host: str) -> Sequence[Who]:
    """Whom the entries name that are for a principal that comes from a host."""
    return [(each, place) for each in (principal, ANY_USER) for place in (host, WILDCARD)]


def _by_acl(pattern: ResourcePattern, entry: AclEntry) -> Decision:
    rule = (
        f"MatchingAcl(acl=StandardAcl[resourceType={pattern.resource_type.name}, "
        f"resourceName={pattern.name}, patternType={pattern.pattern_type.name}, "
        f"principal={entry.principal}, host={entry.host}, operation={entry.operation.name}, "
        f"permissionType={entry.permission.name}])"
    )
    return Decision(entry.permission is Permission.ALLOW, rule, AclBinding(pattern, entry))


def audit(
    decision: Decision,
    who: tuple[str, str],
    operation: str,
    resource: tuple[str, str],
    api_name: str,
) -> None:
    """Log a decision as Kafka does: what was refused for operators to see, the rest for debugging.

    Args:
        decision: what was decided.
        who: principal and host.
        operation: the name of an `Operation`.
        resource: the name of a `ResourceType`, and the resource's.
        api_name: of the request, as `ApiKey` has it.
    """
    level = logging.DEBUG if decision.is_allowed else logging.INFO
    if audit_log.isEnabledFor(level):
        audit_log.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for "
            "request = %s with resourceRefCount = 1 based on rule %s",
            who[0],
            "Allowed" if decision.is_allowed else "Denied",
            operation,
            who[1],
            camel(ResourceType[resource[0]]),
            resource[1],
            camel(ApiKey[api_name]),
            decision.rule,
        )
