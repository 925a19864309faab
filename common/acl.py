"""ACLs as Kafka has them: a pattern of resources, and who may or may not do what with those.

The numbers are those of requests, the names those of Kafka's tools and of its nodes in ZooKeeper
(`org.apache.kafka.common.acl`, `org.apache.kafka.common.resource`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

WILDCARD: Final = "*"
ANY_USER: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"


class ResourceType(IntEnum):
    """What kind of thing an ACL is for."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a name stands for resources; the first two are only for filters."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What is done with a resource."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether it may be done."""

    ANY = 1
    DENY = 2
    ALLOW = 3


OPERATIONS_BY_LETTERS: Final = {
    each.name.replace("_", ""): each for each in Operation if each is not Operation.ANY
}


def parse_operation(text: str) -> Operation:
    """An operation by Kafka's name, in any spelling: DescribeConfigs, describe-configs.

    Raises:
        ValueError: there is none; the sentence names all.
    """
    found = OPERATIONS_BY_LETTERS.get("".join(filter(str.isalpha, text)).upper())
    if found is None:
        names = ", ".join(map(camel, OPERATIONS_BY_LETTERS.values()))
        raise ValueError(f"there is no operation {text!r}; it is one of {names}")
    return found


def parse_principal(text: str) -> str:
    """A principal as ACLs have it: "alice" is User:alice, and so is a certificate's subject.

    Raises:
        ValueError: it is none.
    """
    kind, colon, name = text.partition(":")
    is_kind = colon and "=" not in kind
    if is_kind and kind and name:
        return text
    if is_kind or not text:
        raise ValueError(f"{text!r} is no principal; write User:NAME, or the name alone")
    return f"User:{text}"


def camel(member: IntEnum) -> str:
    """Its name as Kafka's nodes and tools write it: TransactionalId, DescribeConfigs."""
    return "".join(word.capitalize() for word in member.name.split("_"))


class ResourcePattern(NamedTuple):
    """Resources of one type, by their name or its beginning."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str


class AclEntry(NamedTuple):
    """Who may, or may not, do what, and from where.

    Attributes:
        principal: such as "User:alice"; "User:*" is everybody.
        host: an address, or "*".
    """

    principal: str
    host: str
    operation: Operation
    permission: Permission


class AclBinding(NamedTuple):
    """One ACL: an entry, and the resources that it is for."""

    pattern: ResourcePattern
    entry: AclEntry


class AclFilter(NamedTuple):
    """Which ACLs to describe or delete (AclBindingFilter).

    Attributes:
        resource_type: `ANY` is all; so with the other numbers.
        pattern_type: `MATCH` takes all patterns that match the name.
        name: None is all; so with the other texts.
    """

    resource_type: ResourceType
    pattern_type: PatternType
    name: str | None
    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def takes_pattern(self, pattern: ResourcePattern) -> bool:
        """Whether it is for a pattern (ResourcePatternFilter)."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name in (self.name, WILDCARD)

    def takes_entry(self, entry: AclEntry) -> bool:
        """Whether it is for an entry (AccessControlEntryFilter)."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )
