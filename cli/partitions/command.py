"""`odradek partitions`: move partitions between brokers and directories, and elect leaders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.show import JsonOutput, note, show_json, show_table
from ..declarations import Argument, CommandGroup, Option
from ..topics.partition_names import TopicPartition, existing_partitions
from .following import Copy, copies_of, current_sizes, follow, remove_throttle
from .plan import (
    FOLLOWER_RATE,
    LEADER_RATE,
    Move,
    plan_text,
    read_plan,
    spread,
    throttled_replicas,
)

if TYPE_CHECKING:
    from ...client.admin.admin import Admin
    from ...client.admin.partition_admin import Reassignment
    from ...client.client import KafkaClient

app = CommandGroup(help="Move partitions between brokers and directories, and elect leaders.")

DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

Partitions = Annotated[
    list[str] | None,
    Argument(
        metavar="[TOPIC[:N,N]]", show_default=False, help="Whole topics, or partitions of them."
    ),
]
Throttle = Annotated[
    int | None,
    Option("--throttle", min=1, metavar="BYTES", help="A broker copies so many a second."),
]
Execute = Annotated[bool, Option("--execute", help="Do it, instead of showing the plan.")]
NoWait = Annotated[
    bool, Option("--no-wait", help="Begin, and do not wait; then see: partitions status.")
]


@app.command("reassign")
def reassign(
    partitions: Partitions = None,
    to: Annotated[
        str | None, Option("--to", metavar="ID,ID", help="The brokers that may have them.")
    ] = None,
    replication_factor: Annotated[
        int | None,
        Option("--replication-factor", "-r", min=1, help="Replicas; by default as now."),
    ] = None,
    plan: Annotated[
        Path | None,
        Option("--plan", help="Instead: a file as kafka-reassign-partitions takes it."),
    ] = None,
    throttle: Throttle = None,
    execute: Execute = False,
    no_wait: NoWait = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: Annotated[
        bool, Option("--json", help="The plan as JSON, for --plan or Kafka's own tool.")
    ] = False,
) -> None:
    """Move partitions to other brokers: evenly, and with as few copies as that allows.

    ```
    odradek partitions reassign events --to 1,2,3
    odradek partitions reassign events:0,1 --to 2,3 --throttle 10000000 --execute
    odradek partitions reassign events --to 1,2,3 --replication-factor 3 --execute
    odradek partitions reassign --plan plan.json --execute
    ```

    Without --execute the plan is shown, and how much is to be copied. If the command is
    interrupted the brokers go on: `odradek partitions status --wait` follows them, and takes the
    throttle away at the end; `odradek partitions cancel` goes back.
    """
    if (plan is None) == (to is None) or (plan is None) != bool(partitions):
        fail("name partitions and --to ID,ID; or a file with --plan")
    brokers = _broker_ids(to) if to is not None else []
    planned = None if plan is None else read_plan(plan.read_text("utf-8", "replace"), str(plan))

    async def work(client: KafkaClient) -> None:
        from ...client.admin.admin import Admin
        from ...client.admin.partition_admin import PartitionAdmin

        admin = Admin(client)
        names = partitions if planned is None else [f"{topic}:{n}" for topic, n in planned]
        chosen = await existing_partitions(client, names or ())
        busy = await PartitionAdmin(client).list_reassignments()
        for each in chosen:
            if each in busy:
                fail(f"{_name(each)} is being moved; see: odradek partitions status")
        current = await _replicas(admin, chosen)
        targets = planned
        if targets is None:
            targets = spread(current, brokers, replication_factor)
        unknown = {b for each in targets.values() for b in each} - client.cluster.nodes.keys()
        if unknown:
            fail(f"there is no broker {min(unknown)}; see: odradek cluster --once")
        if json_output:
            print(plan_text(targets))
        moves = await _moves(client, current, targets)
        if not json_output:
            _show_plan(moves)
        if not execute:
            note("nothing was changed; add --execute to move them")
            return
        if not moves:
            return
        if throttle is not None:
            await _set_throttle(admin, moves, throttle)
        await admin.reassign_partitions({move.partition: move.target for move in moves})
        note(f"{len(moves)} partitions are being moved")
        if not no_wait:
            await _follow(client, {move.partition for move in moves})

    with _goes_on():
        with_client(bootstrap_server, work, command_config)


@app.command("status")
def status(
    wait: Annotated[
        bool, Option("--wait", help="Until all is done; then a throttle is taken away.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Show the partitions that are being moved to other brokers, and how far they are.

    ```
    odradek partitions status
    odradek partitions status --wait
    ```
    """

    async def work(client: KafkaClient) -> None:
        from ...client.admin.partition_admin import PartitionAdmin

        admin = PartitionAdmin(client)
        moving = await admin.list_reassignments()
        _show_status(moving, await copies_of(client, admin, moving), json_output)
        if wait:
            await _follow(client, set(moving))

    with _goes_on():
        with_client(bootstrap_server, work, command_config)


@app.command("cancel")
def cancel(
    partitions: Partitions = None,
    all_: Annotated[bool, Option("--all", help="All that are being moved.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Leave partitions that are being moved where they were, and take the throttle away.

    ```
    odradek partitions cancel events:0
    odradek partitions cancel --all
    ```
    """
    if all_ == bool(partitions):
        fail("name partitions, or give --all")

    async def work(client: KafkaClient) -> int:
        from ...client.admin.admin import Admin
        from ...client.admin.partition_admin import PartitionAdmin

        admin = Admin(client)
        moving = await PartitionAdmin(client).list_reassignments()
        chosen = list(moving) if all_ else await existing_partitions(client, partitions or ())
        for each in chosen:
            if each not in moving:
                fail(f"{_name(each)} is not being moved; see: odradek partitions status")
        if chosen:
            await admin.reassign_partitions(dict.fromkeys(chosen))
        if set(chosen) == set(moving):
            await remove_throttle(client, admin, {topic for topic, _ in chosen})
        return len(chosen)

    count = with_client(bootstrap_server, work, command_config)
    note(f"{count} partitions stay where they were")


@app.command("elect-leaders")
def elect_leaders(
    partitions: Partitions = None,
    unclean: Annotated[
        bool,
        Option("--unclean", help="Any replica of what has no leader; records may be lost."),
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Let the first replica of each partition lead it, where it is in sync; by default of all.

    ```
    odradek partitions elect-leaders
    odradek partitions elect-leaders events:0 --unclean
    ```
    """

    async def work(client: KafkaClient) -> int:
        from ...client.admin.admin import PREFERRED_ELECTION, UNCLEAN_ELECTION, Admin

        admin = Admin(client)
        chosen = await existing_partitions(client, partitions) if partitions else None
        await admin.elect_leaders(chosen, UNCLEAN_ELECTION if unclean else PREFERRED_ELECTION)
        topics = await admin.describe_topics({topic for topic, _ in chosen} if chosen else None)
        return sum(
            info.leader_id is not None and info.leader_id != info.replicas[0]
            for name, topic in topics.items()
            for index, info in topic.partitions.items()
            if chosen is None or (name, index) in chosen
        )

    others = with_client(bootstrap_server, work, command_config)
    note("every partition's first replica leads it" if not others else f"{others} have others")


@app.command("directories")
def directories(
    broker: Annotated[
        int | None, Option("--broker", min=0, metavar="ID", help="Only of this broker.")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Show the directories of brokers, how much lies in each, and what is being moved there.

    ```
    odradek partitions directories --broker 1
    ```
    """
    from ...client.error_kinds import error_name

    async def work(client: KafkaClient) -> list[dict[str, object]]:
        from ...client.admin.partition_admin import PartitionAdmin

        nodes = sorted(client.cluster.nodes) if broker is None else [broker]
        return [
            {
                "broker": node,
                "directory": each.path,
                "replicas": sum(not replica.is_future for replica in each.replicas.values()),
                "arriving": sum(replica.is_future for replica in each.replicas.values()),
                "bytes": sum(replica.size for replica in each.replicas.values()),
                "free": each.usable_bytes if each.usable_bytes >= 0 else None,
                "error": error_name(each.error_code) if each.error_code else None,
            }
            for node in nodes
            for each in await PartitionAdmin(client).describe_log_dirs(node)
        ]

    rows = with_client(bootstrap_server, work, command_config)
    if json_output:
        show_json(rows)
        return
    columns = ["broker", "directory", "replicas", "arriving", "bytes", "free", "error"]
    show_table(columns, [list(row.values()) for row in rows])


@app.command("move")
def move_between_directories(
    partitions: Annotated[
        list[str],
        Argument(metavar="TOPIC[:N,N]", show_default=False, help="Topics, or partitions."),
    ],
    broker: Annotated[int, Option("--broker", min=0, metavar="ID", help="Whose replicas.")],
    to: Annotated[str, Option("--to", metavar="DIR", help="As the broker calls it.")],
    throttle: Throttle = None,
    execute: Execute = False,
    no_wait: NoWait = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Move a broker's replicas to another of its directories (see: partitions directories).

    ```
    odradek partitions move events:0 --broker 1 --to /disk2/kafka
    odradek partitions move events --broker 1 --to /disk2/kafka --throttle 10000000 --execute
    ```
    """

    async def work(client: KafkaClient) -> None:
        from ...client.admin.admin import BROKER_RESOURCE, Admin
        from ...client.admin.partition_admin import PartitionAdmin

        admin, placing = Admin(client), PartitionAdmin(client)
        found = await placing.describe_log_dirs(broker)
        if to not in {each.path for each in found}:
            fail(
                f"broker {broker} has no directory {to}; it has"
                f" {', '.join(each.path for each in found)}"
            )
        here = {p for each in found if each.path == to for p in each.replicas}
        sizes = current_sizes(found)
        chosen = [
            each
            for each in await existing_partitions(client, partitions)
            if each in sizes and each not in here
        ]
        show_table(
            ["partition", "bytes", "to"],
            [[_name(each), sizes[each], to] for each in chosen],
            empty=f"broker {broker} has none of them in another directory",
        )
        if not execute:
            note("nothing was changed; add --execute to move them")
            return
        if throttle is not None:
            rate: dict[str, str | None] = {DIRECTORY_RATE: str(throttle)}
            await admin.alter_configs(str(broker), rate, BROKER_RESOURCE)
        await placing.alter_log_dirs(broker, to, chosen)
        if no_wait:
            return

        async def look() -> list[Copy] | None:
            described = await placing.describe_log_dirs(broker)
            now = current_sizes(described)
            copies = [
                Copy(partition, broker, replica.size, now.get(partition, 0))
                for each in described
                for partition, replica in each.replicas.items()
                if replica.is_future and partition in chosen
            ]
            return copies or None

        await follow(look, sum(sizes[each] for each in chosen))
        if throttle is not None:
            await admin.alter_configs(str(broker), {DIRECTORY_RATE: None}, BROKER_RESOURCE)
        note(f"{len(chosen)} replicas of broker {broker} are in {to}")

    with _goes_on():
        with_client(bootstrap_server, work, command_config)


# --- What they share ------------------------------------------------------------------------


def _broker_ids(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        fail(f"{text!r} names no brokers; write ids, as in 1,2,3")
    return list(dict.fromkeys(int(word) for word in words))


def _name(partition: TopicPartition) -> str:
    return f"{partition[0]}:{partition[1]}"


async def _replicas(
    admin: Admin, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, tuple[int, ...]]:
    topics = await admin.describe_topics({topic for topic, _ in partitions})
    return {each: topics[each[0]].partitions[each[1]].replicas for each in partitions}


async def _moves(
    client: KafkaClient,
    current: Mapping[TopicPartition, tuple[int, ...]],
    targets: Mapping[TopicPartition, tuple[int, ...]],
) -> list[Move]:
    """What changes, and how large it is."""
    from ...client.admin.partition_admin import PartitionAdmin

    changed = [each for each in sorted(targets) if targets[each] != current[each]]
    sizes: dict[TopicPartition, int] = {}
    brokers = {broker for each in changed for broker in current[each]}
    for broker in sorted(brokers & client.cluster.nodes.keys()):
        found = current_sizes(await PartitionAdmin(client).describe_log_dirs(broker))
        for each in changed:
            sizes[each] = max(sizes.get(each, 0), found.get(each, 0))
    return [Move(each, current[each], targets[each], sizes.get(each, 0)) for each in changed]


def _show_plan(moves: Sequence[Move]) -> None:
    show_table(
        ["partition", "from", "to", "bytes to copy"],
        [
            [
                _name(move.partition),
                ",".join(map(str, move.current)),
                ",".join(map(str, move.target)),
                move.size * len(move.adding),
            ]
            for move in moves
        ],
        legend=f"{sum(move.size * len(move.adding) for move in moves):,} bytes are to be copied",
        empty="they are where they should be already",
    )


def _show_status(
    moving: Mapping[TopicPartition, Reassignment], copies: Sequence[Copy], json_output: bool
) -> None:
    rows = [
        {
            "partition": _name(partition),
            "replicas": list(each.replicas),
            "adding": list(each.adding),
            "removing": list(each.removing),
            "copied": sum(copy.copied for copy in copies if copy.partition == partition),
            "bytes": sum(copy.size for copy in copies if copy.partition == partition),
        }
        for partition, each in sorted(moving.items())
    ]
    if json_output:
        show_json(rows)
        return
    show_table(
        ["partition", "replicas", "adding", "removing", "copied", "bytes"],
        [
            [",".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row.values()]
            for row in rows
        ],
        empty="no partition is being moved",
    )


async def _set_throttle(admin: Admin, moves: Sequence[Move], rate: int) -> None:
    """The rates first: what is copied before they are there is not throttled."""
    from ...client.admin.admin import BROKER_RESOURCE

    rates: dict[str, str | None] = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
    for broker in sorted({each for move in moves for each in (*move.current, *move.target)}):
        await admin.alter_configs(str(broker), rates, BROKER_RESOURCE)
    for topic, settings in throttled_replicas(moves).items():
        await admin.alter_configs(topic, {**settings})


async def _follow(client: KafkaClient, partitions: set[TopicPartition]) -> None:
    """Until they are moved; then the throttle goes, unless others are being moved."""
    from ...client.admin.admin import Admin
    from ...client.admin.partition_admin import PartitionAdmin

    admin = PartitionAdmin(client)
    total = 0

    async def look() -> list[Copy] | None:
        moving = await admin.list_reassignments()
        left = {each: moving[each] for each in partitions & moving.keys()}
        return await copies_of(client, admin, left) if left else None

    first = await look()
    total = sum(each.size for each in first or ())
    await follow(look, total)
    note(f"{len(partitions)} partitions were moved" if partitions else "nothing is being moved")
    if not await admin.list_reassignments() and await remove_throttle(client, Admin(client)):
        note("the throttle was taken away")


@contextmanager
def _goes_on() -> Iterator[None]:
    """Ctrl-C ends the command, and not what the brokers do."""
    try:
        yield
    except (KeyboardInterrupt, BaseExceptionGroup):
        note("the brokers go on; follow them with: odradek partitions status --wait")
        raise
