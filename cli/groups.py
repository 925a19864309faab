"""`odradek groups`: list, describe, delete consumer groups, and move their offsets."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, admin_client
from .errors import explain_kafka_error, fail
from .show import JsonOutput, note, show_json, show_table
from .times import parse_time_ms

app = typer.Typer(
    help="List, describe and delete consumer groups, and move their offsets.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

GroupNames = Annotated[list[str], typer.Argument(metavar="GROUP", show_default=False)]
GroupName = Annotated[str, typer.Argument(metavar="GROUP", show_default=False)]


@app.command("list")
def list_groups(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER, json_output: JsonOutput = False
) -> None:
    """List the consumer groups and their states.

    ```
    odradek groups list
    ```
    """
    with admin_client(bootstrap_server) as admin:
        groups = sorted(admin.list_groups(), key=lambda group: str(group["group_id"]))
    rows = [
        {
            "group": group["group_id"],
            "state": group.get("group_state", ""),
            "type": group.get("group_type", ""),
            "protocol": group["protocol_type"],
        }
        for group in groups
    ]
    if json_output:
        show_json(rows)
        return
    show_table(
        ["group", "state", "type", "protocol"],
        [list(row.values()) for row in rows],
        empty="there are no groups; a consumer makes one: odradek consume TOPIC --group NAME",
    )


@app.command("describe")
def describe_groups(
    groups: GroupNames,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    json_output: JsonOutput = False,
) -> None:
    """Show how far groups have read: committed offsets, ends of the partitions, and the lag.

    ```
    odradek groups describe my-group
    ```
    """
    with admin_client(bootstrap_server) as admin:
        for group in groups:
            state, rows = _group_progress(admin, group)
            if json_output:
                show_json({"group": group, "state": state} | row for row in rows)
                continue
            lag = sum(row["lag"] or 0 for row in rows)
            show_table(
                ["topic", "partition", "committed", "end", "lag", "client", "host"],
                [list(row.values()) for row in rows],
                title=f"{group}: {state}, lag {lag:,}",
                empty=f"group {group} ({state}) has no members and has committed nothing",
            )


@app.command("delete")
def delete_groups(
    groups: GroupNames, bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER
) -> None:
    """Delete groups without members, with their committed offsets.

    ```
    odradek groups delete my-group
    ```
    """
    from kafka import errors

    with admin_client(bootstrap_server) as admin:
        outcomes = admin.delete_groups(groups)
    for group, outcome in outcomes.items():
        if outcome != "OK":
            error_class = getattr(errors, outcome, errors.UnknownError)
            fail(explain_kafka_error(error_class(), f"group {group}"))
        note(f"deleted group {group}")


@app.command("reset-offsets")
def reset_offsets(
    group: GroupName,
    topic: Annotated[
        list[str],
        typer.Option("--topic", "-t", metavar="TOPIC[:PARTITION]", help="May be repeated."),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="WHERE",
            help="earliest, latest, an offset, or a time such as 2013-06-01T12:00:00Z.",
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be committed.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
) -> None:
    """Move where a group goes on reading. Its consumers must be stopped.

    Offsets outside a partition are moved to its nearest end.

    ```
    odradek groups reset-offsets my-group --topic events --to earliest
    odradek groups reset-offsets my-group --topic events:0 --to 1200
    odradek groups reset-offsets my-group --topic events --to 2013-06-01T12:00:00Z
    ```
    """
    with admin_client(bootstrap_server) as admin:
        partitions = _partitions(admin, topic)
        targets = _target_offsets(admin, partitions, to)
        if not dry_run:
            _commit(admin, group, targets)
    show_table(
        ["topic", "partition", "would commit" if dry_run else "committed"],
        [[p.topic, p.partition, offset] for p, offset in sorted(targets.items())],
    )


def _group_progress(admin: Any, group: str) -> tuple[str, list[dict[str, Any]]]:
    """A group's state, and a row for each partition it has committed to or is assigned."""
    from kafka import TopicPartition
    from kafka.admin import OffsetSpec

    description = admin.describe_groups([group])[group]
    committed = admin.list_group_offsets([group])[group]
    state = description["group_state"]
    if state == "Dead" and not committed:
        fail(f"group {group}: there is no such group; see: odradek groups list")
    readers: dict[Any, tuple[str, str]] = {}
    for member in description["members"]:
        for assigned in _assigned_partitions(member["member_assignment"]):
            readers[TopicPartition(*assigned)] = (member["client_id"], member["client_host"])
    partitions = sorted(set(committed) | set(readers))
    ends = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    rows = []
    for partition in partitions:
        offset = committed[partition].offset if partition in committed else -1
        end = ends[partition].offset
        client, host = readers.get(partition, (None, None))
        rows.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "committed": offset if offset >= 0 else None,
                "end": end,
                "lag": max(end - offset, 0) if offset >= 0 else None,
                "client": client,
                "host": host,
            }
        )
    return state, rows


def _assigned_partitions(assignment: Any) -> list[tuple[str, int]]:
    """What a member reads; nothing while its group is between two assignments."""
    if not isinstance(assignment, dict):
        return []
    return [
        (topic["topic"], partition)
        for topic in assignment["assigned_partitions"]
        for partition in topic["partitions"]
    ]


def _partitions(admin: Any, names: list[str]) -> list[Any]:
    """`TOPIC` and `TOPIC:PARTITION` arguments as partitions that exist."""
    from kafka import TopicPartition

    partitions = []
    for name in names:
        topic, colon, index = name.rpartition(":")
        if not colon:
            topic = name
        elif not index.isdecimal():
            fail(f"{name!r} is no partition; write TOPIC:NUMBER, as in events:0")
        (found,) = admin.describe_topics([topic])
        existing = sorted(partition["partition_index"] for partition in found["partitions"])
        if found["error_code"] != 0:
            fail(f"topic {topic}: there is no such topic; see: odradek topics list")
        if colon and int(index) not in existing:
            fail(f"topic {topic} has no partition {index}; it has {len(existing)}, from 0")
        wanted = [int(index)] if colon else existing
        partitions += [TopicPartition(topic, partition) for partition in wanted]
    return partitions


def _target_offsets(admin: Any, partitions: list[Any], to: str) -> dict[Any, int]:
    """Where `to` is in each partition, within its first and its next offset."""
    from kafka.admin import OffsetSpec

    starts = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    if to == "earliest":
        return {p: starts[p].offset for p in partitions}
    if to == "latest":
        return {p: ends[p].offset for p in partitions}
    if to.isdecimal():
        return {p: min(max(int(to), starts[p].offset), ends[p].offset) for p in partitions}
    found = admin.list_partition_offsets(dict.fromkeys(partitions, parse_time_ms(to)))
    # No record is that late: the end is where such a one would come.
    return {p: found[p].offset if found[p].offset >= 0 else ends[p].offset for p in partitions}


def _commit(admin: Any, group: str, offsets: dict[Any, int]) -> None:
    from kafka.errors import NoError, UnknownMemberIdError
    from kafka.structs import OffsetAndMetadata

    outcomes = admin.alter_group_offsets(
        group, {p: OffsetAndMetadata(offset, "", None) for p, offset in offsets.items()}
    )
    for partition, error_class in outcomes.items():
        if error_class is UnknownMemberIdError:
            fail(f"group {group} has members; stop its consumers before moving its offsets")
        if error_class is not NoError:
            what = f"{partition.topic}:{partition.partition}"
            fail(explain_kafka_error(error_class(), what))
