"""ACLs as a command line names them: resources, principals, operations, Kafka's conveniences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, NamedTuple

from ...common.acl import (
    CLUSTER_NAME,
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
    parse_operation,
    parse_principal,
)
from ..common.errors import fail
from ..declarations import Option

Names = list[str] | None

Topics = Annotated[Names, Option("--topic", metavar="NAME", help="A topic; repeatable.")]
Groups = Annotated[Names, Option("--group", metavar="NAME", help="A group; repeatable.")]
TransactionalIds = Annotated[
    Names, Option("--transactional-id", metavar="ID", help="A transactional id; repeatable.")
]
DelegationTokens = Annotated[
    Names, Option("--delegation-token", metavar="ID", help="A delegation token; repeatable.")
]
Users = Annotated[
    Names,
    Option("--user", metavar="PRINCIPAL", help="A user, for making tokens; repeatable."),
]
Cluster = Annotated[bool, Option("--cluster", help="The cluster itself.")]
Prefixed = Annotated[
    bool,
    Option("--prefixed", help="The names are beginnings of names; * is a plain word then."),
]
Allowed = Annotated[
    Names,
    Option("--allow", metavar="PRINCIPAL", help="Who may: alice, or User:alice; repeatable."),
]
Denied = Annotated[
    Names,
    Option("--deny", metavar="PRINCIPAL", help="Who may not, whatever else allows it."),
]
Operations = Annotated[
    Names,
    Option("--operation", metavar="NAME", help="Such as Read, Write or All; repeatable."),
]
Hosts = Annotated[
    Names, Option("--host", metavar="ADDRESS", help="Only from this address; repeatable.")
]
Producer = Annotated[
    bool,
    Option("--producer", help="What a producer does with the topics and transactional ids."),
]
Consumer = Annotated[
    bool, Option("--consumer", help="What a consumer does with the topics and groups.")
]
Idempotent = Annotated[
    bool, Option("--idempotent", help="With --producer: also IdempotentWrite on the cluster.")
]

PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}
"""What kafka-acls makes of --producer and --consumer."""


class Resource(NamedTuple):
    """A resource, or names that begin so, as the command line has it."""

    resource_type: ResourceType
    name: str

    def __str__(self) -> str:
        if self.resource_type is ResourceType.CLUSTER:
            return "the cluster"
        return f"{described(self.resource_type)} {self.name}"


class Roles(NamedTuple):
    """Kafka's conveniences."""

    producer: bool = False
    consumer: bool = False
    idempotent: bool = False


def described(kind: ResourceType) -> str:
    """A type of resource, in a sentence."""
    return kind.name.lower().replace("_", " ")


def resources_of(
    topics: Names,
    groups: Names,
    transactional_ids: Names,
    delegation_tokens: Names,
    users: Names,
    cluster: bool,
) -> list[Resource]:
    """The resources that the options name, in their order."""
    named = {
        ResourceType.TOPIC: topics,
        ResourceType.GROUP: groups,
        ResourceType.TRANSACTIONAL_ID: transactional_ids,
        ResourceType.DELEGATION_TOKEN: delegation_tokens,
        ResourceType.USER: [principal_of(each) for each in users or ()],
        ResourceType.CLUSTER: [CLUSTER_NAME] if cluster else (),
    }
    return [Resource(kind, name) for kind, names in named.items() for name in names or ()]


def principal_of(text: str) -> str:
    """A principal as ACLs have it: a name alone is a user's. CommandError for what is none."""
    try:
        return parse_principal(text)
    except ValueError as error:
        fail(str(error))


def operation_of(text: str) -> Operation:
    """An operation by Kafka's name, in any spelling. CommandError for what is none."""
    try:
        return parse_operation(text)
    except ValueError as error:
        fail(str(error))


def bindings_of(
    resources: Iterable[Resource],
    prefixed: bool,
    allowed: Names,
    denied: Names,
    operations: Names,
    hosts: Names,
    roles: Roles,
) -> list[AclBinding]:
    """The ACLs that the options describe, in their order.

    CommandError where they describe none.
    """
    patterns = [
        (ResourcePattern(each.resource_type, pattern_type(prefixed, each), each.name), done)
        for each, done in _what_is_done(list(resources), operations or (), roles)
    ]
    who = _who(allowed, denied)
    if not who:
        fail("say who: --allow USER, or --deny USER")
    return list(
        dict.fromkeys(
            AclBinding(pattern, AclEntry(principal, host, operation, permission))
            for pattern, done in patterns
            for principal, permission in who
            for host in hosts or [WILDCARD]
            for operation in done
        )
    )


def pattern_type(prefixed: bool, resource: Resource) -> PatternType:
    """How the name of a resource is meant; the cluster has just the one."""
    is_cluster = resource.resource_type is ResourceType.CLUSTER
    return PatternType.PREFIXED if prefixed and not is_cluster else PatternType.LITERAL


def _what_is_done(
    resources: list[Resource], operations: Iterable[str], roles: Roles
) -> list[tuple[Resource, list[Operation]]]:
    """The operations on each resource."""
    _require_resources(resources, roles)
    named = [operation_of(each) for each in operations]
    if not (named or roles.producer or roles.consumer):
        fail("say what: --operation NAME, such as Read or All, or --producer or --consumer")
    done = []
    for resource in resources:
        chosen = dict.fromkeys(named)
        if roles.producer:
            chosen |= dict.fromkeys(PRODUCER.get(resource.resource_type, ()))
        if roles.consumer:
            chosen |= dict.fromkeys(CONSUMER.get(resource.resource_type, ()))
        if not chosen:
            role = "--producer" if roles.producer else "--consumer"
            fail(f"{role} says nothing of {resource}; name an --operation for it")
        done.append((resource, list(chosen)))
    if roles.idempotent:
        cluster = Resource(ResourceType.CLUSTER, CLUSTER_NAME)
        done.append((cluster, [Operation.IDEMPOTENT_WRITE]))
    return done


def _require_resources(resources: list[Resource], roles: Roles) -> None:
    kinds = {each.resource_type for each in resources}
    if roles.idempotent and not roles.producer:
        fail("--idempotent goes with --producer")
    if roles.producer and ResourceType.TOPIC not in kinds:
        fail("--producer needs a --topic")
    if roles.consumer and not kinds >= {ResourceType.TOPIC, ResourceType.GROUP}:
        fail("--consumer needs a --topic and a --group")
    if not resources:
        fail(
            "say with what: --topic, --group, --transactional-id, --delegation-token, --user or"
            " --cluster"
        )


def filters_of(
    resources: Iterable[Resource],
    prefixed: bool,
    allowed: Names,
    denied: Names,
    operations: Names,
    hosts: Names,
    roles: Roles,
) -> list[AclFilter]:
    """Filters for the ACLs that the options describe; what they leave out may be anything.

    CommandError where they leave out all that would choose.
    """
    who = _who(allowed, denied)
    chosen = list(resources)
    if not (who or chosen):
        fail("say which: --allow USER or --deny USER, or a resource such as --topic NAME")
    if operations or roles.producer or roles.consumer:
        done = _what_is_done(chosen, operations or (), roles)
    else:
        done = [(each, [Operation.ANY]) for each in chosen]
    patterns: list[tuple[ResourceType, PatternType, str | None, list[Operation]]] = [
        (each.resource_type, pattern_type(prefixed, each), each.name, operation)
        for each, operation in done
    ] or [(ResourceType.ANY, PatternType.ANY, None, [Operation.ANY])]
    principals: list[tuple[str | None, Permission]] = [*who] or [(None, Permission.ANY)]
    addresses: list[str | None] = [*(hosts or ())] or [None]
    return [
        AclFilter(kind, pattern, name, principal, host, operation, permission)
        for kind, pattern, name, named in patterns
        for principal, permission in principals
        for host in addresses
        for operation in named
    ]


def _who(allowed: Names, denied: Names) -> list[tuple[str, Permission]]:
    return [
        (principal_of(each), permission)
        for permission, named in ((Permission.ALLOW, allowed), (Permission.DENY, denied))
        for each in named or ()
    ]


def matching_filter(resource: Resource | None, principal: str | None = None) -> AclFilter:
    """A filter for all ACLs whose pattern is for a resource, or for any."""
    kind, pattern_type, name = ResourceType.ANY, PatternType.ANY, None
    if resource is not None:
        kind, pattern_type, name = resource.resource_type, PatternType.MATCH, resource.name
    return AclFilter(kind, pattern_type, name, principal, None, Operation.ANY, Permission.ANY)


def options_for(acl: AclBinding) -> str:
    """The options of `odradek acls add` or `remove` that name an ACL."""
    import shlex

    pattern, entry = acl
    word = "allow" if entry.permission is Permission.ALLOW else "deny"
    options = [f"--{word}", entry.principal, "--operation", camel(entry.operation)]
    options.append(f"--{pattern.resource_type.name.lower().replace('_', '-')}")
    if pattern.resource_type is not ResourceType.CLUSTER:
        options.append(pattern.name)
    if pattern.pattern_type is PatternType.PREFIXED:
        options.append("--prefixed")
    if entry.host != WILDCARD:
        options += ["--host", entry.host]
    return shlex.join(options)


def acl_row(acl: AclBinding) -> dict[str, str]:
    """An ACL by Kafka's names, for tables and JSON."""
    pattern, entry = acl
    return {
        "resource": camel(pattern.resource_type),
        "name": pattern.name,
        "pattern": camel(pattern.pattern_type),
        "principal": entry.principal,
        "host": entry.host,
        "operation": camel(entry.operation),
        "permission": camel(entry.permission),
    }
