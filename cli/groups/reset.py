"""`odradek groups reset-offsets`: where a group goes on reading, shown first, then committed."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import explain_code, fail
from ..common.show import JsonOutput, note, show_json, show_table
from ..common.times import parse_duration_ms, parse_time_ms
from ..declarations import Argument, Option
from ..topics.partition_names import existing_partitions

if TYPE_CHECKING:
    from ...client.admin.group_admin import GroupAdmin
    from ...client.client import KafkaClient
    from ...client.consumer.offset_reset import PlannedOffset, ResetRule

TopicPartition = tuple[str, int]
Plans = dict[str, dict[TopicPartition, "PlannedOffset"]]
"""What becomes of the partitions, by group."""


def reset_offsets(
    groups: Annotated[list[str] | None, Argument(metavar="[GROUP]", show_default=False)] = None,
    all_groups: Annotated[
        bool, Option("--all-groups", help="Every group without members.")
    ] = False,
    topic: Annotated[
        list[str] | None,
        Option(
            "--topic",
            "-t",
            metavar="TOPIC[:0,1]",
            help="A topic, or some of its partitions; may be repeated.",
        ),
    ] = None,
    all_topics: Annotated[
        bool,
        Option("--all-topics", help="All that it has committed to."),
    ] = False,
    to_earliest: Annotated[bool, Option("--to-earliest", help="Read all again.")] = False,
    to_latest: Annotated[bool, Option("--to-latest", help="Skip all there is.")] = False,
    to_current: Annotated[
        bool,
        Option(
            "--to-current",
            help="As it is; where nothing is committed, the end.",
        ),
    ] = False,
    to_offset: Annotated[int | None, Option("--to-offset", min=0, metavar="N")] = None,
    shift_by: Annotated[
        int | None,
        Option(
            "--shift-by",
            metavar="N",
            help="So many records on; back, if negative.",
        ),
    ] = None,
    to_datetime: Annotated[
        str | None,
        Option(
            "--to-datetime",
            metavar="TIME",
            help="The first record then or later, such as 2013-06-01T12:00:00Z.",
        ),
    ] = None,
    by_duration: Annotated[
        str | None,
        Option(
            "--by-duration",
            metavar="DURATION",
            help="The first record of the last PT1H30M, P7D, 90s or 15m.",
        ),
    ] = None,
    from_file: Annotated[
        Path | None,
        Option(
            "--from-file",
            metavar="FILE",
            help="Offsets in CSV, as --export writes them.",
        ),
    ] = None,
    execute: Annotated[
        bool, Option("--execute", help="Commit the offsets, after they were shown.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only show them; so it is without --execute, too.")
    ] = False,
    export: Annotated[bool, Option("--export", help="Show them in CSV, for --from-file.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Move where groups go on reading. Their consumers must be stopped.

    Nothing is changed without `--execute`. Offsets outside a partition are moved to its nearest
    end. Of a share group it is the start offset that is moved: what the group has acknowledged
    after it is forgotten, and delivery counts begin anew.

    ```
    odradek groups reset-offsets my-group --topic events --to-earliest
    odradek groups reset-offsets my-group --topic events --to-earliest --execute
    odradek groups reset-offsets my-group --topic events:0,1 --shift-by -100 --execute
    odradek groups reset-offsets my-group --all-topics --by-duration PT1H
    odradek groups reset-offsets my-group --all-topics --to-current --export > offsets.csv
    odradek groups reset-offsets my-group --from-file offsets.csv --execute
    ```
    """
    if all_groups == bool(groups):
        fail("name the groups, or give --all-groups")
    if execute and dry_run:
        fail("give --execute or --dry-run, not both")
    from_csv = None if from_file is None else _read_csv(from_file, groups)
    rule = _rule(
        to_earliest, to_latest, to_current, to_offset, shift_by, to_datetime, by_duration, from_csv
    )
    if from_csv is None and all_topics == bool(topic):
        fail("say which topics: --topic TOPIC, which may be repeated, or --all-topics")
    if from_csv is not None and (all_topics or topic):
        fail("the file of --from-file says which topics; leave out --topic and --all-topics")

    async def work(client: KafkaClient) -> tuple[Plans, list[str]]:
        from ...client.admin.group_admin import GroupAdmin

        admin = GroupAdmin(client)
        inactive, left = await _inactive(admin, groups)
        committed = await _standing(admin, inactive)
        plans: Plans = {}
        for name in inactive:
            if from_csv is None:
                partitions = await existing_partitions(client, topic or ())
                if all_topics:
                    partitions = sorted(committed[name])
                plan_rule = rule
            else:
                given = from_csv.get(name) or from_csv.get("")
                if not given:
                    fail(f"{from_file} has no offsets for group {name}")
                partitions = await existing_partitions(client, (f"{t}:{p}" for t, p in given))
                plan_rule = rule._replace(offsets=given)
            plans[name] = await _plan(client, name, partitions, committed[name], plan_rule)
        if execute:
            for name, plan in plans.items():
                await _commit(admin, name, plan, is_share=inactive[name])
        return plans, left

    plans, left = with_client(bootstrap_server, work, command_config)
    if export:
        _export(plans, with_group=len(groups or ()) != 1)
    else:
        _show(plans, execute, json_output)
    if left:
        fail(f"left as they are, for they have members: {', '.join(left)}")


def _rule(
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_csv: object,
) -> ResetRule:
    """What the options ask for. Raises CommandError for none, or several."""
    from ...client.consumer.offset_reset import ResetKind, ResetRule
    from ...runtime.clock import SystemClock

    rules = []
    for is_given, kind in (
        (to_earliest, ResetKind.EARLIEST),
        (to_latest, ResetKind.LATEST),
        (to_current, ResetKind.CURRENT),
        (from_csv is not None, ResetKind.OFFSETS),
    ):
        if is_given:
            rules.append(ResetRule(kind))
    if to_offset is not None:
        rules.append(ResetRule(ResetKind.OFFSETS, to_offset))
    if shift_by is not None:
        rules.append(ResetRule(ResetKind.SHIFT, shift_by))
    if to_datetime is not None:
        rules.append(ResetRule(ResetKind.TIME, parse_time_ms(to_datetime)))
    if by_duration is not None:
        now_ms = SystemClock().now_ms()
        rules.append(ResetRule(ResetKind.TIME, max(now_ms - parse_duration_ms(by_duration), 0)))
    if len(rules) != 1:
        fail(
            "say where to, once: --to-earliest, --to-latest, --to-current, --to-offset, "
            "--shift-by, --to-datetime, --by-duration or --from-file"
        )
    return rules[0]


async def _inactive(
    admin: GroupAdmin, groups: list[str] | None
) -> tuple[dict[str, bool], list[str]]:
    """The groups to move, and whether each is a share group; and, of all, those with members.

    Raises CommandError where one that was named has members.
    """
    from ...client.admin.group_descriptions import INACTIVE_STATES, SHARE

    if groups is None or not groups:
        listed = await admin.list_groups()
        return (
            {each.group_id: each.type == SHARE for each in listed if each.state in INACTIVE_STATES},
            [each.group_id for each in listed if each.state not in INACTIVE_STATES],
        )
    inactive = {}
    for name, group in (await admin.describe(groups)).items():
        if group is None:
            note(f"there is no group {name} yet; committing offsets makes it")
        elif group.state not in INACTIVE_STATES:
            fail(
                f"group {name} has members ({group.state}); stop its consumers before moving its"
                " offsets"
            )
        inactive[name] = group is not None and group.is_share
    return inactive, []


async def _standing(
    admin: GroupAdmin, groups: dict[str, bool]
) -> dict[str, dict[TopicPartition, int]]:
    """Committed offsets, and of share groups start offsets."""
    started = await admin.share_offsets(name for name, is_share in groups.items() if is_share)
    return await admin.committed(name for name, is_share in groups.items() if not is_share) | {
        name: {each: found.start for each, found in offsets.items() if found.start is not None}
        for name, offsets in started.items()
    }


async def _plan(
    client: KafkaClient,
    group: str,
    partitions: list[TopicPartition],
    committed: dict[TopicPartition, int],
    rule: ResetRule,
) -> dict[TopicPartition, PlannedOffset]:
    from ...client.consumer.offset_reset import NothingToShift, ResetKind, plan_reset

    if rule.kind is ResetKind.OFFSETS and not rule.offsets:
        rule = rule._replace(offsets=dict.fromkeys(partitions, rule.number))
    try:
        return await plan_reset(client, partitions, committed, rule)
    except NothingToShift as error:
        fail(f"group {group}: {error}; give --to-offset or --to-earliest for it")


async def _commit(
    admin: GroupAdmin, group: str, plan: dict[TopicPartition, PlannedOffset], *, is_share: bool
) -> None:
    if not plan:
        return
    set_offsets = admin.alter_share_offsets if is_share else admin.commit
    outcomes = await set_offsets(group, {each: planned.offset for each, planned in plan.items()})
    refused = {
        explain_code(code, f"group {group}, {topic}:{index}")
        for (topic, index), code in outcomes.items()
        if code != 0
    }
    if refused:
        fail("; ".join(sorted(refused)))


def _show(plans: Plans, execute: bool, json_output: bool) -> None:
    rows = [
        {
            "group": group,
            "topic": topic,
            "partition": index,
            "committed": planned.committed,
            "new": planned.offset,
        }
        for group, plan in plans.items()
        for (topic, index), planned in plan.items()
    ]
    if json_output:
        show_json(row | {"executed": execute} for row in rows)
        return
    for plan in plans.values():
        for (topic, index), planned in plan.items():
            if planned.target != planned.offset:
                note(
                    f"{topic}:{index} has no offset {planned.target}; its nearest is"
                    f" {planned.offset}"
                )
    show_table(
        ["group", "topic", "partition", "was", "is now" if execute else "would be", "so"],
        [[*row.values(), _effect(row["committed"], row["new"])] for row in rows],
        empty="there is nothing to move: no such offsets are committed",
    )
    if rows and not execute:
        note("nothing was changed; add --execute to commit these offsets")


def _effect(before: object, after: object) -> str:
    """What moving an offset means for who reads."""
    if not isinstance(before, int) or not isinstance(after, int):
        return "begins there"
    if after == before:
        return "as before"
    return f"{before - after:,} read again" if after < before else f"{after - before:,} skipped"


def _export(plans: Plans, *, with_group: bool) -> None:
    """CSV as kafka-consumer-groups writes it: no head, the group only where there are several."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for group, plan in plans.items():
        for (topic, index), planned in plan.items():
            row = (topic, index, planned.offset)
            writer.writerow((group, *row) if with_group else row)


def _read_csv(path: Path, groups: list[str] | None) -> dict[str, dict[TopicPartition, int]]:
    """Offsets by group; by "" where lines name none. Raises CommandError, naming the line."""
    found: dict[str, dict[TopicPartition, int]] = {}
    with path.open(newline="") as lines:
        for number, cells in enumerate(csv.reader(lines), start=1):
            if not cells:
                continue
            *group, topic, partition, offset = cells if len(cells) in (3, 4) else ("", "", "")
            if not (topic and partition.strip().isdecimal() and offset.strip().isdecimal()):
                fail(
                    f"{path}, line {number}: write TOPIC,PARTITION,OFFSET, with GROUP, before it"
                    " where there are several groups"
                )
            if not group and len(groups or ()) != 1:
                fail(f"{path}, line {number} names no group, and there are several")
            offsets = found.setdefault(group[0] if group else "", {})
            offsets[topic, int(partition)] = int(offset)
    if not found:
        fail(f"{path} has no offsets in it")
    return found
