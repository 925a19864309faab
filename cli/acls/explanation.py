"""Why a principal may, or may not, do something: the authorizer's decision, in words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from ...common.acl import (
    ANY_USER,
    WILDCARD,
    AclBinding,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    camel,
)
from ...security.authorizer.acl_authorizer import AclAuthorizer, Decision, applies
from ..common.show import show_table
from .acl_options import Resource, acl_row, options_for

NO_HOST = "(no address)"
"""An address that no ACL names, for who comes from no certain one."""

SUPER_USERS, ALLOW_EVERYONE = "super.users", "allow.everyone.if.no.acl.found"
RULES = {
    SUPER_USERS: "it is one of the broker's super.users, which no broker tells: name those by"
    " --super-user",
    ALLOW_EVERYONE: "the broker's allow.everyone.if.no.acl.found is true, which no broker tells:"
    " say so by --allow-everyone",
}
"""When a broker would allow what it seems to refuse, by settings whose value nobody is told."""


class Explanation(NamedTuple):
    """What became of a question.

    Attributes:
        principal: such as "User:alice".
        host: the address; None: no certain one.
        operation: what is done.
        resource: with what.
        decision: the authorizer's.
        acls: each ACL that is for the resource, and why it does not apply, or how it does.
        unless: settings of the broker, of a value not known, that may allow it all the same.
    """

    principal: str
    host: str | None
    operation: Operation
    resource: Resource
    decision: Decision
    acls: list[tuple[AclBinding, str]]
    unless: list[str]

    @property
    def reason(self) -> str:
        """The ACL or rule that decides, in words."""
        acl = self.decision.acl
        if acl is not None:
            word = "allows" if self.decision.is_allowed else "denies"
            return f"this ACL {word} it: {options_for(acl)}"
        if self.decision.rule == "SuperUser":
            return "it is a super user (super.users), who may do everything"
        if self.decision.is_allowed:
            return "no ACL is for it, and allow.everyone.if.no.acl.found is true"
        return (
            "no ACL that is for it allows this"
            if self.acls
            else "no ACL is for it, and what no ACL allows is refused"
        )

    @property
    def remedy(self) -> str | None:
        """The command that would have it allowed; None: it is."""
        if self.decision.is_allowed:
            return None
        acl = self.decision.acl
        if acl is not None:
            return f"odradek acls remove {options_for(acl)}"
        entry = AclEntry(self.principal, WILDCARD, self.operation, Permission.ALLOW)
        resource_type, name = self.resource
        pattern = ResourcePattern(resource_type, PatternType.LITERAL, name)
        return f"odradek acls add {options_for(AclBinding(pattern, entry))}"

    def show(self) -> None:
        """Print it for people."""
        may = "may" if self.decision.is_allowed else "may not"
        where = "" if self.host is None else f" from {self.host}"
        print(f"{self.principal} {may} {camel(self.operation)} {self.resource}{where}")
        print(f"  because {self.reason}")
        for setting in self.unless:
            print(f"  unless {RULES[setting]}")
        if self.remedy is not None:
            print(f"  to allow it: {self.remedy}")
        if not self.decision.is_allowed and self.operation is Operation.IDEMPOTENT_WRITE:
            print("  an idempotent producer may begin all the same if it may Write to some topic")
        if self.acls:
            rows = [[*acl_row(acl).values(), why] for acl, why in self.acls]
            show_table([*acl_row(self.acls[0][0]), "here"], rows)

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "principal": self.principal,
            "host": self.host,
            "operation": camel(self.operation),
            "resource": camel(self.resource.resource_type),
            "name": self.resource.name,
            "allowed": self.decision.is_allowed,
            "rule": "Acl" if self.decision.acl else self.decision.rule,
            "acl": None if self.decision.acl is None else acl_row(self.decision.acl),
            "reason": self.reason,
            "unless": self.unless,
            "remedy": self.remedy,
        }


def explain(
    who: tuple[str, str | None],
    operation: Operation,
    resource: Resource,
    acls: Iterable[AclBinding],
    *,
    super_users: Iterable[str] = (),
    allows_without_acl: bool = False,
    undisclosed: Iterable[str] = (),
) -> Explanation:
    """Decide as the broker's authorizer does, and say why.

    Args:
        who: the principal, and the address that it comes from; None: no certain one.
        operation: what it does.
        resource: with what.
        acls: all whose pattern is for the resource.
        super_users: principals that may do everything.
        allows_without_acl: `allow.everyone.if.no.acl.found`.
        undisclosed: which of these two the broker has, or may have, with a value not known.
    """
    principal, host = who
    ordered = sorted(acls)
    authorizer = AclAuthorizer(super_users, allows_without_acl=allows_without_acl)
    for pattern, group in groupby(ordered, key=lambda acl: acl.pattern):
        authorizer.change(pattern, (acl.entry for acl in group))
    kind: ResourceType = resource.resource_type
    decision = authorizer.decide(
        principal, host or NO_HOST, operation.name, kind.name, resource.name
    )
    told = [
        (acl, _what_it_says(acl.entry, principal, host or NO_HOST, operation)) for acl in ordered
    ]
    unless = [
        setting
        for setting in undisclosed
        if not decision.is_allowed and (setting == SUPER_USERS or not ordered)
    ]
    return Explanation(principal, host, operation, resource, decision, told, unless)


def _what_it_says(entry: AclEntry, principal: str, host: str, operation: Operation) -> str:
    """What an ACL has to do with the question, or why nothing."""
    if applies(entry, principal, host, operation):
        word = "allows" if entry.permission is Permission.ALLOW else "denies"
        if entry.operation in (operation, Operation.ALL):
            return f"{word} it"
        return f"{word} it: {camel(entry.operation)} includes {camel(operation)}"
    if entry.principal not in (principal, ANY_USER):
        return "another principal"
    if entry.host not in (host, WILDCARD):
        return "another address"
    return "another operation"
