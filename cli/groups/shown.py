"""A group as `odradek groups describe` shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.sentinels import LATEST_TIMESTAMP
from ..common.errors import fail
from ..common.show import note, show_table, without_empty_columns
from ..topics.partition_names import format_partitions

if TYPE_CHECKING:
    from ...client.admin.group_descriptions import GroupDescription, GroupMember
    from ...client.client import KafkaClient

TopicPartition = tuple[str, int]

STATE_MEANINGS = {
    "Empty": "no consumer is in it; its offsets stay until they expire",
    "Stable": "every member reads what it was given",
    "PreparingRebalance": "waiting for its members to join again",
    "CompletingRebalance": "waiting for its leader to divide the partitions",
    "Assigning": "the broker is dividing the partitions",
    "Reconciling": "members give partitions up and take others over",
    "NotReady": "its topics are not ready yet",
    "Dead": "it has gone",
}
"""What the states of groups mean, classic and of KIP-848."""


class Progress(NamedTuple):
    """How far a group has read in one partition.

    Attributes:
        committed: None where it has committed nothing.
        end: the next offset to be written; None without a leader to ask.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None
    reader: GroupMember | None

    @property
    def lag(self) -> int | None:
        """How many records it has yet to read; None where that is not known."""
        if self.committed is None or self.end is None:
            return None
        return max(self.end - self.committed, 0)


class StateOfGroup(NamedTuple):
    """A group, and how far it has read."""

    description: GroupDescription
    progress: list[Progress]

    @property
    def lag(self) -> int:
        """All records it has yet to read, as far as that is known."""
        return sum(each.lag or 0 for each in self.progress)

    def state_json(self) -> dict[str, Any]:
        """For `--state --json`."""
        group = self.description
        return {
            "group": group.group_id,
            "state": group.state,
            "type": group.type,
            "protocol": group.protocol_type,
            "assignor": group.assignor,
            "coordinator": group.coordinator,
            "group_epoch": group.group_epoch,
            "assignment_epoch": group.assignment_epoch,
            "members": len(group.members),
            "lag": self.lag,
        }

    def offsets_json(self) -> list[dict[str, Any]]:
        """For `--json`."""
        return [
            {
                "group": self.description.group_id,
                "state": self.description.state,
                "type": self.description.type,
                "topic": each.topic,
                "partition": each.partition,
                "committed": each.committed,
                "end": each.end,
                "lag": each.lag,
                "member": each.reader and each.reader.member_id,
                "client": each.reader and each.reader.client_id,
                "host": each.reader and each.reader.host,
            }
            for each in self.progress
        ]

    def members_json(self) -> list[dict[str, Any]]:
        """For `--members --json`."""
        return [
            {
                "group": self.description.group_id,
                "state": self.description.state,
                "member": each.member_id,
                "instance": each.instance_id,
                "client": each.client_id,
                "host": each.host,
                "rack": each.rack,
                "type": each.type,
                "epoch": each.epoch,
                "topics": list(each.topics),
                "regex": each.regex,
                "assignment": [f"{topic}:{index}" for topic, index in each.assignment],
                "target": [f"{topic}:{index}" for topic, index in each.target],
            }
            for each in self.description.members
        ]


async def progress_of(client: KafkaClient, names: Iterable[str]) -> list[StateOfGroup]:
    """Ask about groups, in their order. Raises CommandError for one that there is not."""
    from ...client.admin.group_admin import GroupAdmin

    admin = GroupAdmin(client)
    described = await admin.describe(names)
    committed = await admin.committed(described)
    requested = {each for offsets in committed.values() for each in offsets}
    for group in described.values():
        if group is not None:
            requested.update(each for member in group.members for each in member.assignment)
    ends = await _ends(client, requested)
    states = []
    for name, group in described.items():
        if group is None:
            fail(f"group {name}: there is no such group; see: odradek groups list")
        readers = {each: member for member in group.members for each in member.assignment}
        offsets = committed.get(name, {})
        states.append(
            StateOfGroup(
                group,
                [
                    Progress(*each, offsets.get(each), ends.get(each), readers.get(each))
                    for each in sorted({*offsets, *readers})
                ],
            )
        )
    return states


async def _ends(client: KafkaClient, requested: set[TopicPartition]) -> dict[TopicPartition, int]:
    """The ends of those partitions that are there and have a leader."""
    from ...client.admin.admin import Admin
    from ...client.consumer.offsets import list_offsets

    topics = await Admin(client).describe_topics(topic for topic, _ in requested)
    led = {
        (name, each.partition)
        for name, topic in topics.items()
        for each in topic.partitions.values()
        if each.leader_id is not None
    }
    reachable = sorted(requested & led)
    if not reachable:
        return {}
    found = await list_offsets(client, dict.fromkeys(reachable, LATEST_TIMESTAMP))
    return {each: answer.offset for each, answer in found.items()}


def meaning_of(state: str) -> str:
    """A state and what it means."""
    return f"{state}: {STATE_MEANINGS.get(state, 'a state this release does not know')}"


def state_legend(states: Iterable[str]) -> str:
    """What those states mean, for below a table."""
    return "\n".join(meaning_of(state) for state in sorted(set(states)) if state)


def show_group(group: StateOfGroup, *, members: bool, offsets: bool) -> None:
    """Its tables on standard output."""
    description = group.description
    count = len(description.members)
    title = (
        f"{description.group_id}: {description.state}, "
        f"{count or 'no'} member{'' if count == 1 else 's'}, lag {group.lag:,}"
    )
    show_table(
        *without_empty_columns(
            ["type", "protocol", "assignor", "group epoch", "assignment epoch", "coordinator"],
            [
                [
                    description.type,
                    description.protocol_type or None,
                    description.assignor or None,
                    description.group_epoch,
                    description.assignment_epoch,
                    description.coordinator,
                ]
            ],
        ),
        title=title,
    )
    if members and count:
        _show_members(description)
    if offsets:
        show_table(
            ["topic", "partition", "committed", "end", "lag", "member", "client", "host"],
            [
                [
                    each.topic,
                    each.partition,
                    each.committed,
                    each.end,
                    each.lag,
                    each.reader and each.reader.member_id,
                    each.reader and each.reader.client_id,
                    each.reader and each.reader.host,
                ]
                for each in group.progress
            ],
            legend=_offsets_legend(group),
            empty=f"group {description.group_id} has committed nothing, and reads nothing now",
        )
    elif members and not count:
        note(f"group {description.group_id} has no members")


def _show_members(group: GroupDescription) -> None:
    moving = any(each.assignment != each.target for each in group.members)
    columns = ["member", "instance", "client", "host", "rack", "type", "epoch", "reads"]
    rows: list[list[object]] = [
        [
            each.member_id,
            each.instance_id,
            each.client_id,
            each.host,
            each.rack,
            each.type,
            each.epoch,
            format_partitions(each.assignment) or None,
        ]
        for each in group.members
    ]
    if moving:
        columns.append("shall read")
        for row, each in zip(rows, group.members, strict=True):
            row.append(format_partitions(each.target) or None)
    show_table(*without_empty_columns(columns, rows), legend=meaning_of(group.state))


def _offsets_legend(group: StateOfGroup) -> str | None:
    """What is worth a remark about the offsets shown."""
    remarks = []
    if any(each.committed is None for each in group.progress):
        remarks.append("committed -: nothing yet; auto.offset.reset says where it begins")
    if any(each.end is None for each in group.progress):
        remarks.append("end -: the partition has no leader, or is gone")
    if group.description.members and any(each.reader is None for each in group.progress):
        remarks.append("member -: nobody reads it now")
    return "\n".join(remarks) or None
