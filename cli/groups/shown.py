"""A group as `odradek groups describe` shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...common.sentinels import LATEST_TIMESTAMP
from ..common.errors import fail
from ..common.show import note, show_table, without_empty_columns
from ..topics.partition_names import format_partitions

if TYPE_CHECKING:
    from ...client.admin.group_descriptions import GroupDescription, GroupMember, ShareOffset
    from ...client.client import KafkaClient

TopicPartition = tuple[str, int]

STATE_MEANINGS = {
    "Empty": "no consumer is in it; its offsets stay until they expire, of a share group for good",
    "Stable": "every member reads what it was given",
    "PreparingRebalance": "waiting for its members to join again",
    "CompletingRebalance": "waiting for its leader to divide the partitions",
    "Assigning": "the broker is dividing the partitions",
    "Reconciling": "members give partitions up and take others over",
    "NotReady": "topics that its topology needs are missing, or do not go together",
    "Dead": "it has gone",
}
"""What the states of groups mean: classic, of KIP-848, KIP-932 and KIP-1071."""


class Progress(NamedTuple):
    """How far a group has read in one partition.

    Attributes:
        offset: what it has committed; the start offset of a share group, the first record that is
            not done with. None: there is none.
        end: the next offset to be written; None without a leader to ask.
        lag: how many records it has yet to read; None where that is not known.
        readers: who reads it now; of a share group there may be several.
    """

    topic: str
    partition: int
    offset: int | None
    end: int | None
    lag: int | None
    readers: Sequence[GroupMember]


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
        rows = []
        for each in self.progress:
            row: dict[str, Any] = {
                "group": self.description.group_id,
                "state": self.description.state,
                "type": self.description.type,
                "topic": each.topic,
                "partition": each.partition,
                "start" if self.description.is_share else "committed": each.offset,
                "end": each.end,
                "lag": each.lag,
            }
            if self.description.is_share:
                row["members"] = [reader.member_id for reader in each.readers]
            else:
                row |= dict(zip(("member", "client", "host"), _reader(each), strict=True))
            rows.append(row)
        return rows

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
    groups = []
    for name, group in (await admin.describe(names)).items():
        if group is None:
            fail(f"group {name}: there is no such group; see: odradek groups list")
        groups.append(group)
    committed = await admin.committed(each.group_id for each in groups if not each.is_share)
    started = await admin.share_offsets(each.group_id for each in groups if each.is_share)
    offsets: dict[str, Mapping[TopicPartition, int | ShareOffset]] = {**committed, **started}
    requested = {each for found in offsets.values() for each in found}
    for group in groups:
        requested.update(each for member in group.members for each in member.assignment)
    ends = await _ends(client, requested)
    states = []
    for group in groups:
        readers: dict[TopicPartition, list[GroupMember]] = {}
        for member in group.members:
            for each in member.assignment:
                readers.setdefault(each, []).append(member)
        of_group = offsets.get(group.group_id, {})
        states.append(
            StateOfGroup(
                group,
                [
                    _progress(each, of_group, ends, readers.get(each, ()))
                    for each in sorted({*of_group, *readers})
                ],
            )
        )
    return states


def _progress(
    partition: TopicPartition,
    offsets: Mapping[TopicPartition, int | ShareOffset],
    ends: Mapping[TopicPartition, int],
    readers: Sequence[GroupMember],
) -> Progress:
    found, end = offsets.get(partition), ends.get(partition)
    if found is None or isinstance(found, int):
        lag = None if found is None or end is None else max(end - found, 0)
        return Progress(*partition, found, end, lag, readers)
    # What of a share group's records after the start is done with only the broker knows.
    return Progress(*partition, found.start, end, found.lag, readers)


def _reader(progress: Progress) -> tuple[str | None, str | None, str | None]:
    """Member id, client id and host of who reads a partition, if anybody does."""
    for each in progress.readers:
        return each.member_id, each.client_id, each.host
    return None, None, None


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
        columns, rows = _offsets_table(group)
        show_table(
            columns,
            rows,
            legend=_offsets_legend(group),
            empty=f"group {description.group_id} has committed nothing, and reads nothing now",
        )
    elif members and not count:
        note(f"group {description.group_id} has no members")


def _offsets_table(group: StateOfGroup) -> tuple[list[str], list[list[object]]]:
    """Columns and rows of how far a group has read."""
    if group.description.is_share:
        return ["topic", "partition", "start", "end", "lag", "members"], [
            [*each[:5], len(each.readers)] for each in group.progress
        ]
    return ["topic", "partition", "committed", "end", "lag", "member", "client", "host"], [
        [*each[:5], *_reader(each)] for each in group.progress
    ]


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
    if any(each.offset is None for each in group.progress):
        remarks.append(
            "start -: nobody has read it yet; share.auto.offset.reset says where it begins"
            if group.description.is_share
            else "committed -: nothing yet; auto.offset.reset says where it begins"
        )
    if any(each.end is None for each in group.progress):
        remarks.append("end -: the partition has no leader, or is gone")
    if group.description.is_share:
        remarks.append("start: the first record that is not done with; lag: how many are not")
    elif group.description.members and not all(each.readers for each in group.progress):
        remarks.append("member -: nobody reads it now")
    return "\n".join(remarks) or None
