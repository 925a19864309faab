"""`odradek topics`: list, create, describe, change and delete topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, admin_client
from ..common.errors import explain_kafka_error, fail
from ..common.show import JsonOutput, note, show_json, show_table

BROKER_DEFAULT = -1
"""In CreateTopics: as many as the broker's settings say."""

app = typer.Typer(
    help="List, create, describe, change and delete topics.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

TopicNames = Annotated[list[str], typer.Argument(metavar="TOPIC", show_default=False)]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]
Configs = Annotated[
    list[str] | None,
    typer.Option(
        "--config", "-c", metavar="KEY=VALUE", help="A topic setting; may be given repeatedly."
    ),
]


@app.command("list")
def list_topics(
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    internal: Annotated[bool, typer.Option("--internal", help="Also internal topics.")] = False,
    json_output: JsonOutput = False,
) -> None:
    """List the topics, with their partitions and how many records they hold.

    ```
    odradek topics list
    odradek topics list --json | jq -r .topic
    ```
    """
    with admin_client(bootstrap_server, command_config) as admin:
        topics = [
            topic
            for topic in admin.describe_topics()
            if topic["error_code"] == 0 and (internal or not topic["is_internal"])
        ]
        ranges = _offset_ranges(admin, topics)
    rows = [
        {
            "topic": topic["name"],
            "partitions": len(topic["partitions"]),
            "replicas": max((len(p["replica_nodes"]) for p in topic["partitions"]), default=0),
            "records": sum(
                end - start for (name, _), (start, end) in ranges.items() if name == topic["name"]
            ),
        }
        for topic in sorted(topics, key=lambda topic: str(topic["name"]))
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
        int | None, typer.Option("--partitions", "-p", min=1, show_default="the broker's")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", "-r", min=1, show_default="the broker's"),
    ] = None,
    config: Configs = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="A topic that exists is left as it is.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Create topics.

    ```
    odradek topics create events --partitions 3
    odradek topics create history -c retention.ms=-1 -c cleanup.policy=compact
    ```
    """
    from kafka.errors import TopicAlreadyExistsError

    settings = parse_pairs(config)
    requested = {
        topic: {
            "num_partitions": partitions or BROKER_DEFAULT,
            "replication_factor": replication_factor or BROKER_DEFAULT,
            "configs": settings,
        }
        for topic in topics
    }
    with admin_client(bootstrap_server, command_config) as admin:
        answer = admin.create_topics(requested, raise_errors=False)
        created = []
        for result in answer["topics"]:
            if if_not_exists and result["error_code"] == TopicAlreadyExistsError.errno:
                note(f"topic {result['name']} exists already")
                continue
            _check_result(result)
            created.append(result["name"])
        admin.wait_for_topics(created)
    for topic in created:
        note(f"created topic {topic}")


@app.command("describe")
def describe_topics(
    topics: TopicNames,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    all_configs: Annotated[
        bool, typer.Option("--all-configs", help="Also the settings that are defaults.")
    ] = False,
    json_output: JsonOutput = False,
) -> None:
    """Show the partitions of topics, where they are, and the topics' settings.

    ```
    odradek topics describe events
    ```
    """
    with admin_client(bootstrap_server, command_config) as admin:
        found = _existing(admin, topics)
        ranges = _offset_ranges(admin, found)
        settings = _topic_configs(admin, topics, all_configs)
    for topic in found:
        name = topic["name"]
        rows = [
            {
                "partition": partition["partition_index"],
                "leader": partition["leader_id"],
                "replicas": partition["replica_nodes"],
                "isr": partition["isr_nodes"],
                "start": ranges.get((name, partition["partition_index"]), (None, None))[0],
                "end": ranges.get((name, partition["partition_index"]), (None, None))[1],
            }
            for partition in sorted(topic["partitions"], key=lambda p: int(p["partition_index"]))
        ]
        if json_output:
            show_json(
                [
                    {
                        "topic": name,
                        "id": topic["topic_id"],
                        "partitions": rows,
                        "configs": settings[name],
                    }
                ]
            )
            continue
        columns = ["partition", "leader", "replicas", "isr", "start", "end"]
        cells = [
            [",".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row.values()]
            for row in rows
        ]
        show_table(columns, cells, title=f"{name}  (id {topic['topic_id']})")
        show_table(
            ["setting", "value"],
            sorted(settings[name].items()),
            empty=f"{name}: every setting is the broker's default",
        )


@app.command("delete")
def delete_topics(
    topics: TopicNames,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="A topic that does not exist is no error.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Delete topics and their records, without asking.

    ```
    odradek topics delete events old-events
    ```
    """
    from kafka.errors import UnknownTopicOrPartitionError

    with admin_client(bootstrap_server, command_config) as admin:
        answer = admin.delete_topics(topics, raise_errors=False)
    for result in answer["topics"]:
        if if_exists and result["error_code"] == UnknownTopicOrPartitionError.errno:
            note(f"topic {result['name']} does not exist")
            continue
        _check_result(result)
        note(f"deleted topic {result['name']}")


@app.command("add-partitions")
def add_partitions(
    topic: TopicName,
    to: Annotated[int, typer.Option("--to", min=1, help="How many it shall have in all.")],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Give a topic more partitions. Records stay where they are; keys may move.

    ```
    odradek topics add-partitions events --to 6
    ```
    """
    with admin_client(bootstrap_server, command_config) as admin:
        answer = admin.create_partitions({topic: to}, raise_errors=False).to_dict()
    for result in answer["results"]:
        _check_result(result)
    note(f"topic {topic} has {to} partitions")


@app.command("alter")
def alter_topic(
    topic: TopicName,
    config: Configs = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="KEY", help="Back to the broker's default; repeatable."),
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
    from kafka.admin import ConfigResource, ConfigResourceType

    changes: dict[str, tuple[str, str | None]] = {
        key: ("SET", value) for key, value in parse_pairs(config).items()
    }
    changes |= dict.fromkeys(unset or (), ("DELETE", None))
    if not changes:
        fail("nothing to change; give --config KEY=VALUE or --unset KEY")
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, changes)
    with admin_client(bootstrap_server, command_config) as admin:
        _existing(admin, [topic])
        # The broker knows its settings; kafka-python's own check would ask for all of them.
        answer = admin.alter_configs([resource], raise_on_unknown=False)
    outcome = answer["topic"][topic]
    if outcome != "OK":
        # kafka-python's text is "[Error 40] InvalidConfigurationError: " and the broker's words.
        fail(f"topic {topic}: {outcome.partition(': ')[2] or outcome}")
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


def _check_result(result: dict[str, Any]) -> None:
    """CommandError when the broker's answer about one topic is an error."""
    if result["error_code"] != 0:
        from kafka.errors import UnknownTopicOrPartitionError, for_code

        what = f"topic {result['name']}"
        if result["error_message"] and result["error_code"] != UnknownTopicOrPartitionError.errno:
            fail(f"{what}: {result['error_message']}")
        fail(explain_kafka_error(for_code(result["error_code"])(), what))


def _existing(admin: Any, names: list[str]) -> list[dict[str, Any]]:
    """The descriptions of topics, all of which must exist."""
    topics: list[dict[str, Any]] = admin.describe_topics(names)
    for topic in topics:
        _check_result(topic | {"error_message": None})
    return topics


def _topic_configs(admin: Any, names: list[str], with_defaults: bool) -> dict[str, dict[str, str]]:
    from kafka.admin import ConfigResource, ConfigResourceType

    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    answer = admin.describe_configs(resources, config_filter="all" if with_defaults else "modified")
    return {
        name: {key: entry["value"] for key, entry in answer["topic"][name].items()}
        for name in names
    }


def _offset_ranges(
    admin: Any, topics: Iterable[dict[str, Any]]
) -> dict[tuple[str, int], tuple[int, int]]:
    """First and next offset of every partition that has a leader to ask."""
    from kafka import TopicPartition
    from kafka.admin import OffsetSpec

    partitions = [
        TopicPartition(topic["name"], partition["partition_index"])
        for topic in topics
        for partition in topic["partitions"]
        if partition["leader_id"] >= 0
    ]
    if not partitions:
        return {}
    starts = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    ends = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return {tuple(p): (starts[p].offset, ends[p].offset) for p in partitions}
