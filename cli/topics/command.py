"""`odradek topics`: list, create, describe, change and delete topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from ...common.sentinels import (
    EARLIEST_TIMESTAMP,
    INT16_MAX,
    INT32_MAX,
    LATEST_TIMESTAMP,
    NO_LEADER,
)
from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.known_settings import require_known
from ..common.show import JsonOutput, note, show_json, show_table
from ..declarations import Argument, CommandGroup, Option
from .partition_names import require_topic

if TYPE_CHECKING:
    from ...client.admin.admin import Admin
    from ...client.client import KafkaClient
    from ...client.metadata.cluster import TopicInfo

app = CommandGroup(
    help="List, create, describe, change and delete topics.",
)

TopicNames = Annotated[list[str], Argument(metavar="TOPIC", show_default=False)]
TopicName = Annotated[str, Argument(metavar="TOPIC", show_default=False)]
Configs = Annotated[
    list[str] | None,
    Option("--config", "-c", metavar="KEY=VALUE", help="A topic setting; may be given repeatedly."),
]


KNOWN_MS_MAX = 10_000
"""How long brokers may take to know a new topic before a user is told."""


class TopicState(NamedTuple):
    """A topic, and the first and next offset of each partition that has a leader."""

    topic: TopicInfo
    offsets: dict[int, tuple[int, int]]


@app.command("list")
def list_topics(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    internal: Annotated[bool, Option("--internal", help="Also internal topics.")] = False,
    json_output: JsonOutput = False,
) -> None:
    """List the topics, with their partitions and how many records they hold.

    ```
    odradek topics list
    odradek topics list --json | jq -r .topic
    ```
    """
    from ...client.admin.admin import Admin

    async def ask(client: KafkaClient) -> list[TopicState]:
        return await _with_offsets(client, (await Admin(client).describe_topics()).values())

    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replicas": max((len(each.replicas) for each in topic.partitions.values()), default=0),
            "records": sum(end - start for start, end in offsets.values()),
        }
        for topic, offsets in with_client(bootstrap_server, ask, command_config)
        if topic.error_code == 0 and (internal or not topic.is_internal)
    ]
    if json_output:
        show_json(rows)
        return
    show_table(
        ["topic", "partitions", "replicas", "records"],
        [list(row.values()) for row in rows],
        empty="there are no topics yet; create one with: odradek topics create NAME",
    )


@app.command("create")
def create_topics(
    topics: TopicNames,
    partitions: Annotated[
        int | None,
        Option("--partitions", "-p", min=1, max=INT32_MAX, show_default="the broker's"),
    ] = None,
    replication_factor: Annotated[
        int | None,
        Option("--replication-factor", "-r", min=1, max=INT16_MAX, show_default="the broker's"),
    ] = None,
    config: Configs = None,
    if_not_exists: Annotated[
        bool, Option("--if-not-exists", help="A topic that exists is left as it is.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Create topics, and wait until every broker serves them.

    ```
    odradek topics create events --partitions 3
    odradek topics create history -c retention.ms=-1 -c cleanup.policy=compact
    ```
    """
    from ...client.admin.admin import DEFAULT, Admin, NewTopic
    from ...common.errors import ErrorCode, KafkaError

    configs = parse_pairs(config)

    async def create(client: KafkaClient) -> None:
        admin = Admin(client)
        created = []
        for name in topics:
            new = NewTopic(
                name, partitions or DEFAULT, replication_factor or DEFAULT, configs=configs
            )
            try:
                await admin.create_topics([new])
            except KafkaError as error:
                if not (if_not_exists and error.code == ErrorCode.TOPIC_ALREADY_EXISTS):
                    raise
                note(f"topic {name} exists already")
            else:
                created.append(name)
                note(f"created topic {name}")
        await _wait_until_served(admin, created)

    with_client(bootstrap_server, create, command_config)


async def _wait_until_served(admin: Admin, topics: Sequence[str], partitions_min: int = 1) -> None:
    """Wait until every broker serves topics that were changed, or say that it takes long."""
    from ...client.errors import MetadataTimeoutError
    from ...common.errors import ErrorCode, KafkaError

    try:
        await admin.wait_for_topics(topics, KNOWN_MS_MAX, partitions_min=partitions_min)
    except KafkaError as error:  # it may be changed, and not be described
        if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
    except MetadataTimeoutError as error:
        note(f"not all brokers serve it yet: {error}")


@app.command("describe")
def describe_topics(
    topics: TopicNames,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    all_configs: Annotated[
        bool, Option("--all-configs", help="Also the settings that are defaults.")
    ] = False,
    json_output: JsonOutput = False,
) -> None:
    """Show the partitions of topics, where they are, and the topics' settings.

    ```
    odradek topics describe events
    ```
    """
    from ...client.admin.admin import Admin
    from ...runtime.rng import uuid_to_text

    async def ask(client: KafkaClient) -> list[tuple[TopicState, dict[str, str | None]]]:
        admin = Admin(client)
        found = await _existing(admin, topics)
        return [
            (state, await admin.describe_configs(state.topic.name, own_only=not all_configs))
            for state in await _with_offsets(client, found)
        ]

    for (topic, offsets), settings in with_client(bootstrap_server, ask, command_config):
        name, topic_id = topic.name, uuid_to_text(topic.topic_id)
        rows = [
            {
                "partition": index,
                "leader": NO_LEADER if partition.leader_id is None else partition.leader_id,
                "replicas": list(partition.replicas),
                "isr": list(partition.isr),
                "start": offsets[index][0] if index in offsets else None,
                "end": offsets[index][1] if index in offsets else None,
            }
            for index, partition in sorted(topic.partitions.items())
        ]
        if json_output:
            show_json([{"topic": name, "id": topic_id, "partitions": rows, "configs": settings}])
            continue
        columns = ["partition", "leader", "replicas", "isr", "start", "end"]
        cells = [
            [",".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row.values()]
            for row in rows
        ]
        show_table(columns, cells, title=f"{name}  (id {topic_id})")
        show_table(
            ["setting", "value"],
            sorted(settings.items()),
            empty=f"{name}: every setting is the broker's default",
        )


@app.command("delete")
def delete_topics(
    topics: TopicNames,
    if_exists: Annotated[
        bool, Option("--if-exists", help="A topic that does not exist is no error.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Delete topics and their records, without asking.

    ```
    odradek topics delete events old-events
    ```
    """
    from ...client.admin.admin import Admin
    from ...common.errors import ErrorCode, KafkaError

    async def delete(client: KafkaClient) -> None:
        admin = Admin(client)
        for name in topics:
            try:
                await admin.delete_topics([name])
            except KafkaError as error:
                if not (if_exists and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    raise
                note(f"topic {name} does not exist")
            else:
                note(f"deleted topic {name}")

    with_client(bootstrap_server, delete, command_config)


@app.command("add-partitions")
def add_partitions(
    topic: TopicName,
    to: Annotated[int, Option("--to", min=1, max=INT32_MAX, help="How many it shall have in all.")],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Give a topic more partitions, and wait until every broker serves them. Records stay where
    they are; keys may move.

    ```
    odradek topics add-partitions events --to 6
    ```
    """
    from ...client.admin.admin import Admin

    async def add(client: KafkaClient) -> None:
        admin = Admin(client)
        await admin.create_partitions(topic, to)
        await _wait_until_served(admin, [topic], partitions_min=to)

    with_client(bootstrap_server, add, command_config)
    note(f"topic {topic} has {to} partitions")


@app.command("alter")
def alter_topic(
    topic: TopicName,
    config: Configs = None,
    unset: Annotated[
        list[str] | None,
        Option("--unset", metavar="KEY", help="Back to the broker's default; repeatable."),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Change settings of a topic; those not named stay as they are.

    ```
    odradek topics alter events -c retention.ms=3600000
    odradek topics alter events --unset retention.ms
    ```
    """
    from ...client.admin.admin import Admin

    changes: dict[str, str | None] = {**parse_pairs(config), **dict.fromkeys(unset or ())}
    if not changes:
        fail("nothing to change; give --config KEY=VALUE or --unset KEY")

    async def alter(client: KafkaClient) -> None:
        admin = Admin(client)
        await _existing(admin, [topic])
        require_known(changes, await admin.describe_configs(topic), f"topic {topic}")
        await admin.alter_configs(topic, changes)

    with_client(bootstrap_server, alter, command_config)
    note(f"changed topic {topic}")


def parse_pairs(pairs: Iterable[str] | None) -> dict[str, str]:
    """`KEY=VALUE` arguments as a dict; CommandError for one without an equals sign."""
    parsed = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not (key and equals):
            fail(f"{pair!r} is no setting; write KEY=VALUE, as in retention.ms=-1")
        parsed[key] = value
    return parsed


async def _existing(admin: Admin, names: Iterable[str]) -> list[TopicInfo]:
    """The descriptions of topics, in their order. CommandError for one that there is not."""
    found = await admin.describe_topics(names)
    for topic in found.values():
        require_topic(topic)
    return [found[name] for name in dict.fromkeys(names)]


async def _with_offsets(client: KafkaClient, topics: Iterable[TopicInfo]) -> list[TopicState]:
    """The topics, and the offsets of those partitions that have a leader to ask."""
    from ...client.consumer.offsets import list_offsets

    described = list(topics)
    partitions = [
        (topic.name, index)
        for topic in described
        for index, partition in topic.partitions.items()
        if partition.leader_id is not None
    ]
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST_TIMESTAMP))
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST_TIMESTAMP))
    states = {topic.name: TopicState(topic, {}) for topic in described}
    for name, index in partitions:
        offsets = starts[name, index].offset, ends[name, index].offset
        states[name].offsets[index] = offsets
    return list(states.values())
