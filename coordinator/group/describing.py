"""What is told of a group to those who ask about it: DescribeGroups and ListGroups."""

from __future__ import annotations

from collections.abc import Iterable

from ...common.errors import ErrorCode
from .answers import DescribedMember, GroupDescription, GroupListing
from .classic.group import Group
from .classic.states import GroupState
from .consumer.group import ConsumerGroup
from .subscription import CONSUMER_PROTOCOL_TYPE

CLASSIC = "classic"
CONSUMER = "consumer"
"""The types of groups, as ListGroups names them (KIP-848)."""


def describe(group: Group) -> GroupDescription:
    """All that DescribeGroups tells; protocol and metadata only while the group is stable."""
    protocol_name = group.protocol_name if group.state is GroupState.STABLE else None
    return GroupDescription(
        group.group_id,
        ErrorCode.NONE,
        group.state.value,
        group.protocol_type or "",
        protocol_name or "",
        [
            DescribedMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                b"" if protocol_name is None else member.metadata(protocol_name),
                member.assignment,
            )
            for member in group.members.values()
        ],
    )


def list_groups(
    groups: Iterable[Group | ConsumerGroup], states: Iterable[str], types: Iterable[str]
) -> list[GroupListing]:
    """The groups in any of the states and of any of the types; no filter means all.

    Filters ignore case, as Kafka's do (KIP-518).
    """
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {kind.strip().lower() for kind in types}
    return [
        listing
        for listing in map(_listing, groups)
        if (not wanted_types or listing.group_type in wanted_types)
        and (not wanted_states or listing.state.lower() in wanted_states)
    ]


def _listing(group: Group | ConsumerGroup) -> GroupListing:
    if isinstance(group, ConsumerGroup):
        state = group.replicated_state.value
        return GroupListing(group.group_id, CONSUMER_PROTOCOL_TYPE, state, CONSUMER)
    return GroupListing(group.group_id, group.protocol_type or "", group.state.value, CLASSIC)
