"""What there is on the broker that is attacked, for requests to name."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ....protocol.api_keys import ApiKey


class GroupKind(enum.Enum):
    """Protocols by which members join a group."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


KINDS: Final[Mapping[ApiKey, GroupKind]] = {
    ApiKey.SYNC_GROUP: GroupKind.CLASSIC,
    ApiKey.HEARTBEAT: GroupKind.CLASSIC,
    ApiKey.LEAVE_GROUP: GroupKind.CLASSIC,
    ApiKey.DESCRIBE_GROUPS: GroupKind.CLASSIC,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: GroupKind.CONSUMER,
    ApiKey.CONSUMER_GROUP_DESCRIBE: GroupKind.CONSUMER,
    ApiKey.SHARE_GROUP_HEARTBEAT: GroupKind.SHARE,
    ApiKey.SHARE_GROUP_DESCRIBE: GroupKind.SHARE,
    ApiKey.SHARE_FETCH: GroupKind.SHARE,
    ApiKey.SHARE_ACKNOWLEDGE: GroupKind.SHARE,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: GroupKind.SHARE,
    ApiKey.READ_SHARE_GROUP_STATE: GroupKind.SHARE,
    ApiKey.WRITE_SHARE_GROUP_STATE: GroupKind.SHARE,
    ApiKey.DELETE_SHARE_GROUP_STATE: GroupKind.SHARE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: GroupKind.SHARE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: GroupKind.SHARE,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: GroupKind.SHARE,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: GroupKind.SHARE,
    ApiKey.STREAMS_GROUP_HEARTBEAT: GroupKind.STREAMS,
    ApiKey.STREAMS_GROUP_DESCRIBE: GroupKind.STREAMS,
}
"""APIs that are only for groups of one kind: the others' have committed offsets and no members."""

OF_GROUPS_WITHOUT_MEMBERS: Final = frozenset(
    {ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS}
)
OF_USERS: Final = frozenset(
    {ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS}
)
"""APIs in which what has a name is a user."""

OF_MANY_TOPICS: Final = frozenset(
    {
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DELETE_TOPICS,
    }
)
"""APIs that change each topic once, and refuse one that is named twice: many must be there."""


@dataclass(frozen=True)
class MadeGroup:
    """A group that has, or had, members.

    Attributes:
        member_ids: of those that are in it.
        epoch: of the first member; the generation of a classic group.
    """

    group_id: str
    member_ids: Sequence[str] = ()
    epoch: int = 0


@dataclass(frozen=True)
class Scene:
    """What requests can name.

    Attributes:
        topics: its names.
        partitions_each: of each topic.
        topic_ids: by name.
        groups: ids of those that have committed offsets.
        transactions: transactional ids.
        paths: its log directories.
        made_groups: with members, by their kind.
        empty_groups: that had members, by their kind.
        producers: id and epoch by transactional id.
        users: with a SCRAM credential.
        token_hmac: of a delegation token.
        member: the group whose first member sends what only members send.
        more_topics: names of topics of one partition, for APIs of many topics.
    """

    broker_id: int
    topics: list[str]
    partitions_each: int
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    transactions: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    made_groups: Mapping[GroupKind, Sequence[MadeGroup]] = field(default_factory=dict)
    empty_groups: Mapping[GroupKind, Sequence[MadeGroup]] = field(default_factory=dict)
    producers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    users: list[str] = field(default_factory=list)
    token_hmac: bytes = b""
    member: MadeGroup | None = None
    more_topics: list[str] = field(default_factory=list)

    def seen_by(self, api: ApiKey) -> Scene:
        """The same with the groups, and the names, that an API is for."""
        if api in OF_USERS and self.users:
            return replace(self, topics=self.users)
        if api in OF_MANY_TOPICS and self.more_topics:
            return replace(self, topics=self.more_topics, partitions_each=1)
        kind = KINDS.get(api)
        without_members = api in OF_GROUPS_WITHOUT_MEMBERS
        of_kind = (self.empty_groups if without_members else self.made_groups).get(
            kind or GroupKind.CLASSIC
        )
        if kind is None or not of_kind:
            return self
        return replace(self, groups=[each.group_id for each in of_kind], member=of_kind[0])
