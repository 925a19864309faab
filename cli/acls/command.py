"""`odradek acls`: list, add and remove ACLs, and explain what they come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ...common.acl import AclBinding
from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.show import JsonOutput, note, show_json, show_table
from ..declarations import Argument, CommandGroup, Option
from .acl_options import (
    Allowed,
    Cluster,
    Consumer,
    DelegationTokens,
    Denied,
    Groups,
    Hosts,
    Idempotent,
    Operations,
    Prefixed,
    Producer,
    Roles,
    Topics,
    TransactionalIds,
    Users,
    acl_row,
    bindings_of,
    filters_of,
    matching_filter,
    operation_of,
    principal_of,
    resources_of,
)

if TYPE_CHECKING:
    from ...client.client import KafkaClient
    from .explanation import Explanation

app = CommandGroup(
    help="List, add and remove ACLs, and explain why something is allowed or refused.",
)


@app.command("list")
def list_acls(
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user: Users = None,
    cluster: Cluster = False,
    principal: Annotated[
        list[str] | None,
        Option("--principal", metavar="PRINCIPAL", help="Only of these; repeatable."),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """List ACLs: all, those of principals, or those that are for a resource.

    For a resource are also the ACLs of a prefix of its name, and of all resources of its type (*).

    ```
    odradek acls list
    odradek acls list --topic orders --group billing
    odradek acls list --principal alice --json
    ```
    """
    from ...client.admin.acl_admin import AclAdmin

    resources = resources_of(topic, group, transactional_id, delegation_token, user, cluster)
    principals = [principal_of(each) for each in principal or ()]
    filters = [
        matching_filter(resource, each)
        for resource in (resources or (None,))
        for each in (principals or (None,))
    ]

    async def ask(client: KafkaClient) -> list[AclBinding]:
        admin = AclAdmin(client)
        found: set[AclBinding] = set()
        for requested in filters:
            found.update(await admin.describe(requested))
        return sorted(found)

    _show(
        with_client(bootstrap_server, ask, command_config),
        json_output,
        empty="there are no such ACLs; add one with: odradek acls add --help",
    )


@app.command("add")
def add_acls(
    allow: Allowed = None,
    deny: Denied = None,
    operation: Operations = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user: Users = None,
    cluster: Cluster = False,
    prefixed: Prefixed = False,
    host: Hosts = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Add ACLs: one for each principal, operation, resource and host named.

    A denial counts before any permission. The name * of a resource is all of its type, and
    User:* is everybody.

    ```
    odradek acls add --allow alice --operation Read --topic orders --group billing
    odradek acls add --allow shop --producer --topic orders- --prefixed
    odradek acls add --allow billing --consumer --topic orders --group billing
    odradek acls add --deny mallory --operation All --topic '*' --host 10.0.0.7
    ```
    """
    from ...client.admin.acl_admin import AclAdmin

    resources = resources_of(topic, group, transactional_id, delegation_token, user, cluster)
    roles = Roles(producer, consumer, idempotent)
    acls = bindings_of(resources, prefixed, allow, deny, operation, host, roles)

    async def add(client: KafkaClient) -> None:
        await AclAdmin(client).create(acls)

    with_client(bootstrap_server, add, command_config)
    note(f"added {_count(acls)}")
    _show(acls, json_output)


@app.command("remove")
def remove_acls(
    allow: Allowed = None,
    deny: Denied = None,
    operation: Operations = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user: Users = None,
    cluster: Cluster = False,
    prefixed: Prefixed = False,
    host: Hosts = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Remove the ACLs that are as described, without asking; what is left out may be anything.

    ```
    odradek acls remove --allow alice --operation Read --topic orders
    odradek acls remove --allow alice --deny alice
    odradek acls remove --topic orders- --prefixed
    ```
    """
    from ...client.admin.acl_admin import AclAdmin

    resources = resources_of(topic, group, transactional_id, delegation_token, user, cluster)
    roles = Roles(producer, consumer, idempotent)
    filters = filters_of(resources, prefixed, allow, deny, operation, host, roles)

    async def remove(client: KafkaClient) -> list[AclBinding]:
        return await AclAdmin(client).delete(filters)

    removed = with_client(bootstrap_server, remove, command_config)
    if not removed:
        fail("there are no such ACLs; see: odradek acls list")
    note(f"removed {_count(removed)}")
    _show(removed, json_output)


@app.command("explain")
def explain_acls(
    principal: Annotated[str, Argument(metavar="PRINCIPAL", show_default=False)],
    operation: Annotated[str, Argument(metavar="OPERATION", show_default=False)],
    topic: Topics = None,
    group: Groups = None,
    transactional_id: TransactionalIds = None,
    delegation_token: DelegationTokens = None,
    user: Users = None,
    cluster: Cluster = False,
    host: Annotated[
        str | None,
        Option(metavar="ADDRESS", help="Where it comes from; else from no certain address."),
    ] = None,
    super_user: Annotated[
        list[str] | None,
        Option(
            metavar="PRINCIPAL", help="Of the broker's super.users, whose value it does not tell."
        ),
    ] = None,
    allow_everyone: Annotated[
        bool,
        Option("--allow-everyone", help="The broker has allow.everyone.if.no.acl.found=true."),
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Explain whether a principal may do something, and which ACL or rule decides it.

    The ACLs are the broker's, and the rules those that its authorizer goes by. A broker tells who
    may describe its settings whether it has super.users, but not whom: where that could change the
    answer, it says so, unless they are named.

    ```
    odradek acls explain alice Write --topic orders
    odradek acls explain User:CN=shop Read --group billing --host 10.0.0.7
    odradek acls explain admin Alter --cluster --super-user admin
    ```
    """
    from ...client.admin.acl_admin import AclAdmin
    from .explanation import ALLOW_EVERYONE, SUPER_USERS, explain

    resources = resources_of(topic, group, transactional_id, delegation_token, user, cluster)
    who, what = principal_of(principal), operation_of(operation)
    if not resources:
        fail("say with what, such as --topic NAME or --cluster")
    super_users = [principal_of(each) for each in super_user or ()]
    named = {SUPER_USERS: bool(super_users), ALLOW_EVERYONE: allow_everyone}

    async def ask(client: KafkaClient) -> list[Explanation]:
        admin = AclAdmin(client)
        undisclosed = [each for each in await _undisclosed(client) if not named[each]]
        return [
            explain(
                (who, host),
                what,
                resource,
                await admin.describe(matching_filter(resource)),
                super_users=super_users,
                allows_without_acl=allow_everyone,
                undisclosed=undisclosed,
            )
            for resource in resources
        ]

    for each in with_client(bootstrap_server, ask, command_config):
        if json_output:
            show_json([each.as_json()])
        else:
            each.show()


async def _undisclosed(client: KafkaClient) -> list[str]:
    """The authorizer's settings that the broker has, or may have where this user may not describe
    them: like Kafka a broker describes that they are set, and not to what."""
    from ...client.admin.admin import BROKER_RESOURCE, Admin
    from ...common.errors import KafkaError
    from .explanation import RULES

    admin = Admin(client)
    try:
        cluster = await admin.describe_cluster()
        broker = str(min(node.id for node in cluster.nodes))
        settings = await admin.describe_configs(broker, BROKER_RESOURCE)
    except KafkaError:
        return list(RULES)
    return [each for each in RULES if each in settings]


def _count(acls: list[AclBinding]) -> str:
    return "1 ACL" if len(acls) == 1 else f"{len(acls)} ACLs"


def _show(acls: list[AclBinding], json_output: bool, empty: str = "") -> None:
    rows = [acl_row(each) for each in acls]
    if json_output:
        show_json(rows)
        return
    show_table(
        ["resource", "name", "pattern", "principal", "host", "operation", "permission"],
        [list(row.values()) for row in rows],
        empty=empty,
    )
