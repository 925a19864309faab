"""Decides by ACLs (Kafka's StandardAuthorizer).

A denial that applies counts first, then a permission. Where neither does: `super.users` may do all,
and `allow.everyone.if.no.acl.found` allows what no ACL's pattern is for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
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
from ...runtime.long_work import Steps

audit_log = logging.getLogger("kafka.authorizer.logger")
"""Kafka's name for it."""

DECISIONS_MAX: Final = 10_000
"""So many are remembered until ACLs change; clients do the same again and again."""

Entries = frozenset[AclEntry]


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
        self._literal: dict[tuple[ResourceType, str], Entries] = {}
        self._prefixed: dict[ResourceType, dict[str, Entries]] = {}
        self._decisions: dict[tuple[str, str, str, str, str], Decision] = {}

    @property
    def acls(self) -> Iterator[tuple[ResourcePattern, Entries]]:
        """All patterns that have entries. They may change between two of them."""
        for (resource_type, name), entries in list(self._literal.items()):
            yield ResourcePattern(resource_type, PatternType.LITERAL, name), entries
        for resource_type, by_name in list(self._prefixed.items()):
            for name, entries in list(by_name.items()):
                yield ResourcePattern(resource_type, PatternType.PREFIXED, name), entries

    def change(self, pattern: ResourcePattern, entries: Iterable[AclEntry]) -> None:
        """Put entries in place of all that a pattern had."""
        kept = frozenset(entries)
        resource_type, pattern_type, name = pattern
        self._decisions.clear()
        if pattern_type is PatternType.PREFIXED:
            by_name = self._prefixed.setdefault(resource_type, {})
            by_name.pop(name, None)
            if kept:
                by_name[name] = kept
            return
        self._literal.pop((resource_type, name), None)
        if kept:
            self._literal[resource_type, name] = kept

    def matching(self, requested: AclFilter) -> Steps[dict[ResourcePattern, set[AclEntry]]]:
        """By pattern, the entries that a filter is for, as work that yields after each."""
        found: dict[ResourcePattern, set[AclEntry]] = {}
        for pattern, entries in self.acls:
            yield
            if requested.takes_pattern(pattern):
                for entry in entries:
                    if requested.takes_entry(entry):
                        found.setdefault(pattern, set()).add(entry)
                    yield
        return found

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
        for pattern, entries in self._for(resource_type, name):
            has_acls = True
            for entry in entries:
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
    ) -> Iterator[tuple[ResourcePattern, Entries]]:
        """The patterns that are for a resource, with their entries."""
        for literal in dict.fromkeys((name, WILDCARD)):
            entries = self._literal.get((resource_type, literal))
            if entries:
                yield ResourcePattern(resource_type, PatternType.LITERAL, literal), entries
        by_name: Mapping[str, Entries] = self._prefixed.get(resource_type, {})
        if by_name:
            for end in range(1, len(name) + 1):
                entries = by_name.get(name[:end])
                if entries:
                    yield ResourcePattern(resource_type, PatternType.PREFIXED, name[:end]), entries

    def may_somewhere(self, principal: str, host: str, operation: str, resource_type: str) -> bool:
        """Whether there is any resource of a type with which a principal may do something.

        An idempotent producer may begin where it may write to some topic (KIP-679, Kafka's
        Authorizer.authorizeByResourceType).
        """
        if principal in self._super_users:
            return True
        kind, op = ResourceType[resource_type], Operation[operation]
        allowed: list[ResourcePattern] = []
        denied: list[ResourcePattern] = []
        for pattern, entries in self.acls:
            if pattern.resource_type is kind:
                for entry in entries:
                    if applies(entry, principal, host, op):
                        is_denial = entry.permission is Permission.DENY
                        (denied if is_denial else allowed).append(pattern)
        if any(_is_everything(each) for each in denied):
            return False
        if self._without_acl.is_allowed:
            return True
        return any(not any(_covers(deny, allow) for deny in denied) for allow in allowed)


def _is_everything(pattern: ResourcePattern) -> bool:
    return pattern.pattern_type is PatternType.LITERAL and pattern.name == WILDCARD


def _covers(deny: ResourcePattern, allow: ResourcePattern) -> bool:
    """Whether all that one pattern allows is denied by another."""
    if deny.pattern_type is PatternType.PREFIXED:
        return not _is_everything(allow) and allow.name.startswith(deny.name)
    return allow.pattern_type is PatternType.LITERAL and allow.name == deny.name


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
