"""`odradek groups`: list, describe, delete groups of consumers, and move their offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import explain_code, fail
from ..common.show import JsonOutput, note, show_json, show_table
from ..declarations import Argument, CommandGroup, Option
from .reset import reset_offsets
from .shown import StateOfGroup, meaning_of, progress_of, show_group, state_legend

if TYPE_CHECKING:
    from ...client.admin.group_descriptions import GroupListing
    from ...client.client import KafkaClient
    from ...common.errors import ErrorCode

app = CommandGroup(
    help="List, describe and delete groups of consumers, and move their offsets.",
)

GroupNames = Annotated[list[str], Argument(metavar="GROUP", show_default=False)]
OptionalGroupNames = Annotated[list[str] | None, Argument(metavar="[GROUP]", show_default=False)]
GroupName = Annotated[str, Argument(metavar="GROUP", show_default=False)]
AllGroups = Annotated[bool, Option("--all-groups", help="Every group of the cluster.")]
Only = Annotated[
    list[str] | None, Option(metavar="NAME", help="Only these; repeat, or use commas.")
]

app.command("reset-offsets")(reset_offsets)


@app.command("list")
def list_groups(
    state: Only = None,
    type_: Annotated[
        list[str] | None,
        Option("--type", metavar="NAME", help="Only classic, consumer, share or streams groups."),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """List the groups, with their types and states.

    A *classic* group lets one of its consumers divide the partitions; in a *consumer* group
    (KIP-848, `group.protocol=consumer`) the broker does. The members of a *share* group (KIP-932)
    work on the same partitions, record by record; those of a *streams* group (KIP-1071) are the
    threads of a Kafka Streams application, and share its tasks.

    ```
    odradek groups list
    odradek groups list --state empty,dead
    odradek groups list --type consumer --json | jq -r .group
    ```
    """
    from ...client.admin.group_admin import GroupAdmin

    async def ask(client: KafkaClient) -> list[GroupListing]:
        return await GroupAdmin(client).list_groups(_split(state), _split(type_))

    rows = [
        {
            "group": each.group_id,
            "state": each.state,
            "type": each.type,
            "protocol": each.protocol_type,
            "coordinator": each.coordinator,
        }
        for each in with_client(bootstrap_server, ask, command_config)
    ]
    if json_output:
        show_json(rows)
        return
    show_table(
        ["group", "state", "type", "protocol", "coordinator"],
        [list(row.values()) for row in rows],
        legend=state_legend(str(row["state"]) for row in rows),
        empty="there are no such groups"
        if state or type_
        else "there are no groups; a consumer makes one: odradek consume TOPIC --group NAME",
    )


@app.command("describe")
def describe_groups(
    groups: OptionalGroupNames = None,
    all_groups: AllGroups = False,
    members: Annotated[
        bool, Option("--members", help="Only who is in it, and what each reads.")
    ] = False,
    offsets: Annotated[bool, Option("--offsets", help="Only how far it has read.")] = False,
    state: Annotated[bool, Option("--state", help="Only its state, assignor and epochs.")] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Show what groups are doing: state, members, what each reads, and how far behind they are.

    Of a share group it shows where each partition's first record is that is not done with; of a
    streams group what its active tasks read, topics for repartitioning included.
    With `--json`, one object for each partition; with `--members` for each member, with
    `--state` for each group.

    ```
    odradek groups describe my-group
    odradek groups describe my-group --members
    odradek groups describe --all-groups --state
    odradek groups describe my-group --json | jq -s 'map(.lag) | add'
    ```
    """
    if sum((members, offsets, state)) > 1:
        fail("give one of --members, --offsets and --state, or none of them to see all")

    async def ask(client: KafkaClient) -> list[StateOfGroup]:
        return await progress_of(client, await _names(client, groups, all_groups))

    for each in with_client(bootstrap_server, ask, command_config):
        if json_output:
            show_json(
                each.members_json()
                if members
                else [each.state_json()]
                if state
                else each.offsets_json()
            )
        else:
            show_group(each, members=not (offsets or state), offsets=not (members or state))
            if state:
                note(meaning_of(each.description.state))


@app.command("delete")
def delete_groups(
    groups: OptionalGroupNames = None,
    all_groups: AllGroups = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Delete groups without members, with their committed offsets.

    ```
    odradek groups delete my-group
    odradek groups delete --all-groups
    ```
    """
    from ...client.admin.group_admin import GroupAdmin

    async def ask(client: KafkaClient) -> dict[str, ErrorCode]:
        names = await _names(client, groups, all_groups)
        return await GroupAdmin(client).delete(names)

    refused = []
    for group, code in sorted(with_client(bootstrap_server, ask, command_config).items()):
        if code == 0:
            note(f"deleted group {group}")
        else:
            refused.append(explain_code(code, f"group {group}"))
    if refused:
        fail("; ".join(refused))


@app.command("delete-offsets")
def delete_offsets(
    group: GroupName,
    topic: Annotated[
        list[str],
        Option("--topic", "-t", metavar="TOPIC[:0,1]", help="May be repeated."),
    ],
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Forget what a group has committed for topics that it does not read any more.

    A share group, which must be without members, forgets whole topics.

    ```
    odradek groups delete-offsets my-group --topic old-events
    odradek groups delete-offsets my-group --topic events:0,1
    ```
    """

    from ...common.errors import ErrorCode

    async def ask(client: KafkaClient) -> dict[str, ErrorCode]:
        return await _forget(client, group, topic)

    refused = []
    for name, code in with_client(bootstrap_server, ask, command_config).items():
        if code == 0:
            note(f"group {group} has no offset of {name} now")
        elif code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            refused.append(f"{name}: the group has no offset of it")
        else:
            refused.append(explain_code(code, name))
    if refused:
        fail("; ".join(refused))


async def _forget(client: KafkaClient, group: str, names: list[str]) -> dict[str, ErrorCode]:
    """Forget offsets of partitions, or, of a share group, of topics; what became of each."""
    from ...client.admin.group_admin import GroupAdmin
    from ...common.errors import ErrorCode, KafkaError
    from ..topics.partition_names import existing_partitions, parse_partitions

    admin = GroupAdmin(client)
    partitions = await existing_partitions(client, names)
    try:
        forgotten = await admin.delete_offsets(group, partitions)
        return {f"{topic}:{index}": code for (topic, index), code in sorted(forgotten.items())}
    except KafkaError as refusal:
        if refusal.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        found = (await admin.describe([group]))[group]
        if found is None or not found.is_share:
            raise
    if any(parse_partitions(name)[1] is not None for name in names):
        fail(
            f"group {group} is a share group, which forgets whole topics: leave out the partitions"
        )
    return await admin.delete_share_offsets(group, {topic for topic, _ in partitions})


def _split(texts: list[str] | None) -> list[str]:
    return [word.strip() for text in texts or () for word in text.split(",") if word.strip()]


async def _names(client: KafkaClient, groups: list[str] | None, all_groups: bool) -> list[str]:
    """The groups that were named, or all. Raises CommandError for neither, or both."""
    from ...client.admin.group_admin import GroupAdmin

    if all_groups == bool(groups):
        fail("name the groups, or give --all-groups")
    if groups:
        return groups
    return [each.group_id for each in await GroupAdmin(client).list_groups()]
