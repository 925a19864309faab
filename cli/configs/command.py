"""`odradek configs`: the settings of topics, brokers, groups and client metrics."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.known_settings import require_known
from ..common.show import JsonOutput, note, show_json, show_table
from ..declarations import Argument, CommandGroup, Option
from ..topics.command import parse_pairs

if TYPE_CHECKING:
    from ...client.admin.admin import Admin, ConfigEntry
    from ...client.client import KafkaClient

app = CommandGroup(help="Show and change the settings of topics, brokers, groups, client metrics.")

SOURCES = {
    1: "this topic",
    2: "this broker, while it runs",
    3: "all brokers, while they run",
    4: "this broker's file or command line",
    5: "Kafka's default",
    7: "these client metrics",
    8: "this group",
}
"""By Kafka's ConfigSource."""
DEFAULT_SOURCE = 5

CLIENT_METRICS_SETTINGS = ("interval.ms", "metrics", "match")
PREFIXED = re.compile(r"listener\.name\.[^.]+\.")
"""Of brokers, settings that begin so hold for one listener, and are in no list of them all."""

TopicOption = Annotated[
    str | None, Option("--topic", "-t", metavar="NAME", help="Settings of a topic.")
]
BrokerOption = Annotated[
    int | None, Option("--broker", min=0, metavar="ID", help="Settings of a broker.")
]
DefaultsOption = Annotated[
    bool,
    Option("--broker-defaults", help="Settings of all brokers that have none of their own."),
]
GroupOption = Annotated[
    str | None, Option("--group", "-g", metavar="NAME", help="Settings of a group.")
]
MetricsOption = Annotated[
    str | None,
    Option("--client-metrics", metavar="NAME", help="Settings of a subscription to metrics."),
]
DryRun = Annotated[
    bool, Option("--dry-run", "-n", help="Only let the broker say whether it may be done.")
]


Run = Callable[[Callable[["KafkaClient"], Awaitable[dict[str, str | None]]]], dict[str, str | None]]
"""Runs work with a client, as `with_client` with an address."""


class Owner(NamedTuple):
    """Whose settings, as requests name it."""

    type: int
    name: str
    noun: str


@app.command("describe")
def describe_configs(
    names: Annotated[
        list[str] | None,
        Argument(metavar="[SETTING]", show_default=False, help="Only these."),
    ] = None,
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: DefaultsOption = False,
    group: GroupOption = None,
    client_metrics: MetricsOption = None,
    all_: Annotated[bool, Option("--all", "-a", help="Also Kafka's defaults.")] = False,
    docs: Annotated[bool, Option("--docs", help="What each setting is for, too.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Show settings, and where each was set.

    ```
    odradek configs describe --topic events
    odradek configs describe --broker 1 --all
    odradek configs describe --topic events retention.ms cleanup.policy --docs
    odradek configs describe --broker-defaults --json
    ```
    """
    owner = _owner(topic, broker, broker_defaults, group, client_metrics)

    async def ask(client: KafkaClient) -> list[ConfigEntry]:
        from ...client.admin.admin import Admin

        admin = Admin(client)
        entries = await admin.config_entries(owner.name, owner.type)
        if names:
            await _require_known(admin, owner, names, entries)
        return entries

    entries = [
        each
        for each in sorted(with_client(bootstrap_server, ask, command_config))
        if each.name in (names or ()) or (not names and (all_ or each.source != DEFAULT_SOURCE))
    ]
    rows = [
        {
            "setting": each.name,
            "value": each.value,
            "source": SOURCES.get(each.source, "unknown"),
            "read_only": each.is_read_only,
            "sensitive": each.is_sensitive,
            "documentation": each.documentation,
        }
        for each in entries
    ]
    if json_output:
        show_json(rows)
        return
    shown = [
        [row["setting"], "(secret)" if row["sensitive"] else row["value"], row["source"]]
        + ([row["documentation"] or ""] if docs else [])
        for row in rows
    ]
    show_table(
        ["setting", "value", "set for", *(["what it is for"] if docs else [])],
        shown,
        empty=f"{owner.noun}: every setting is a default; --all shows them",
    )


@app.command("alter")
def alter_configs(
    settings: Annotated[
        list[str],
        Argument(metavar="SETTING=VALUE", show_default=False, help="What is set."),
    ],
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: DefaultsOption = False,
    group: GroupOption = None,
    client_metrics: MetricsOption = None,
    dry_run: DryRun = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Set some settings, and leave the others as they are.

    ```
    odradek configs alter --topic events retention.ms=3600000
    odradek configs alter --broker 1 log.cleaner.threads=2 --dry-run
    odradek configs alter --broker-defaults message.max.bytes=8000000
    odradek configs alter --group billing consumer.session.timeout.ms=60000
    ```
    """
    owner = _owner(topic, broker, broker_defaults, group, client_metrics)
    changes: dict[str, str | None] = {**parse_pairs(settings)}
    _change(
        owner, changes, dry_run, lambda work: with_client(bootstrap_server, work, command_config)
    )


@app.command("unset")
def unset_configs(
    settings: Annotated[
        list[str],
        Argument(metavar="SETTING", show_default=False, help="What is a default again."),
    ],
    topic: TopicOption = None,
    broker: BrokerOption = None,
    broker_defaults: DefaultsOption = False,
    group: GroupOption = None,
    client_metrics: MetricsOption = None,
    dry_run: DryRun = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Let settings be defaults again.

    ```
    odradek configs unset --topic events retention.ms
    odradek configs unset --broker-defaults message.max.bytes --dry-run
    ```
    """
    owner = _owner(topic, broker, broker_defaults, group, client_metrics)
    changes: dict[str, str | None] = dict.fromkeys(settings)
    _change(
        owner, changes, dry_run, lambda work: with_client(bootstrap_server, work, command_config)
    )


def _owner(
    topic: str | None,
    broker: int | None,
    broker_defaults: bool,
    group: str | None,
    client_metrics: str | None,
) -> Owner:
    """The one that was named. CommandError for none, or several."""
    from ...client.admin.admin import (
        BROKER_RESOURCE,
        CLIENT_METRICS_RESOURCE,
        GROUP_RESOURCE,
        TOPIC_RESOURCE,
    )

    owners = [
        Owner(type_, str(name), f"{noun} {name}".strip())
        for type_, name, noun in (
            (TOPIC_RESOURCE, topic, "topic"),
            (BROKER_RESOURCE, broker, "broker"),
            (BROKER_RESOURCE, "" if broker_defaults else None, "the brokers' defaults"),
            (GROUP_RESOURCE, group, "group"),
            (CLIENT_METRICS_RESOURCE, client_metrics, "client metrics"),
        )
        if name is not None
    ]
    if len(owners) != 1:
        fail(
            "say whose settings: one of --topic, --broker, --broker-defaults, --group and"
            " --client-metrics"
        )
    return owners[0]


def _run(
    bootstrap_server: str,
    command_config: Path | None,
    work: Callable[[KafkaClient], Awaitable[dict[str, str | None]]],
) -> dict[str, str | None]:
    return with_client(bootstrap_server, work, command_config)


def _change(owner: Owner, changes: dict[str, str | None], dry_run: bool, run: Run) -> None:
    async def change(client: KafkaClient) -> dict[str, str | None]:
        from ...client.admin.admin import Admin

        admin = Admin(client)
        entries = await admin.config_entries(owner.name, owner.type)
        await _require_known(admin, owner, changes, entries)
        await admin.alter_configs(owner.name, changes, owner.type, validate_only=dry_run)
        return {each.name: "(secret)" if each.is_sensitive else each.value for each in entries}

    before = run(change)
    show_table(
        ["setting", "was", "is" if not dry_run else "would be"],
        [
            [name, before.get(name), "the default" if value is None else value]
            for name, value in changes.items()
        ],
    )
    note(f"{owner.noun}: nothing was changed" if dry_run else f"changed {owner.noun}")


async def _require_known(
    admin: Admin, owner: Owner, names: Iterable[str], entries: Sequence[ConfigEntry]
) -> None:
    """CommandError for a setting that the owner cannot have, with the nearest that it can."""
    from ...client.admin.admin import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE

    known = {each.name for each in entries}
    general = list(names)
    if owner.type == CLIENT_METRICS_RESOURCE:
        known |= set(CLIENT_METRICS_SETTINGS)
    elif owner.type == BROKER_RESOURCE:
        general = [name for name in general if not PREFIXED.match(name)]
        if not owner.name:  # of these only what is set is described: any broker has them all
            brokers = (await admin.describe_cluster()).nodes
            described = await admin.config_entries(str(brokers[0].id), BROKER_RESOURCE)
            known |= {each.name for each in described}
    require_known(general, known, owner.noun)
