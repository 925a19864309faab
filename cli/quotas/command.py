"""`odradek quotas`: list, set and remove quotas of users, client ids and addresses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.show import JsonOutput, note, show_json, show_table
from ..declarations import Argument, CommandGroup, Option

if TYPE_CHECKING:
    from ...client.admin.admin import EntityQuotas
    from ...client.client import KafkaClient

app = CommandGroup(
    help="List, set and remove quotas of users, client ids and addresses.",
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
Entity = dict[str, str | None]

User = Annotated[str | None, Option("--user", metavar="NAME", help="A user.")]
ClientId = Annotated[str | None, Option("--client-id", metavar="ID", help="A client id.")]
Ip = Annotated[
    str | None, Option("--ip", metavar="ADDRESS", help="An address that clients come from.")
]
UserDefaults = Annotated[
    bool, Option("--user-defaults", help="All users that have no quota of their own.")
]
ClientDefaults = Annotated[
    bool, Option("--client-defaults", help="All client ids that have none of their own.")
]
IpDefaults = Annotated[
    bool, Option("--ip-defaults", help="All addresses that have none of their own.")
]


@app.command("list")
def list_quotas(
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    user_defaults: UserDefaults = False,
    client_defaults: ClientDefaults = False,
    ip_defaults: IpDefaults = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """List quotas: all, or those of a user, a client id or an address.

    ```
    odradek quotas list
    odradek quotas list --user alice --json
    ```
    """
    from ...client.admin.admin import CLIENT_QUOTAS, Admin

    entity = _entity(user, client_id, ip, user_defaults, client_defaults, ip_defaults)

    async def ask(client: KafkaClient) -> list[EntityQuotas]:
        return await Admin(client).describe_client_quotas(entity)

    found = with_client(bootstrap_server, ask, command_config)
    rows = sorted(
        (*_shown_names(each.entity), key, value)
        for each in found
        for key, value in each.quotas.items()
    )
    if json_output:
        show_json({"entity": dict(each.entity), "quotas": dict(each.quotas)} for each in found)
        return
    show_table(
        ["user", "client id", "ip", "quota", "value", ""],
        [[*row, CLIENT_QUOTAS.get(row[3], "")] for row in rows],
        empty="there are no such quotas; set one with: odradek quotas set --help",
    )


@app.command("set")
def set_quotas(
    quotas: Annotated[list[str], Argument(metavar="QUOTA=NUMBER...", show_default=False)],
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    user_defaults: UserDefaults = False,
    client_defaults: ClientDefaults = False,
    ip_defaults: IpDefaults = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Set quotas of a user, a client id, both together, or an address; its others stay.

    They are producer_byte_rate and consumer_byte_rate (bytes a second), request_percentage (of one
    thread's time), controller_mutation_rate (partitions a second), and connection_creation_rate
    (connections a second, of an address). They count for each broker. Of several that are for a
    client the nearest counts: of user and client id before the user's, and that before the client
    id's.

    ```
    odradek quotas set --user alice producer_byte_rate=1048576 consumer_byte_rate=2097152
    odradek quotas set --user-defaults --client-id reports request_percentage=50
    odradek quotas set --ip 10.0.0.7 connection_creation_rate=5
    ```
    """
    from ...client.admin.admin import Admin

    entity = _entity(user, client_id, ip, user_defaults, client_defaults, ip_defaults)
    _require_entity(entity)
    values = dict(map(_quota, quotas))

    async def change(client: KafkaClient) -> None:
        await Admin(client).alter_client_quotas(entity, values)

    with_client(bootstrap_server, change, command_config)
    texts = ", ".join(f"{key}={value:g}" for key, value in values.items())
    note(f"{_in_words(entity)} has {texts}")


@app.command("remove")
def remove_quotas(
    quotas: Annotated[list[str] | None, Argument(metavar="[QUOTA]...", show_default=False)] = None,
    user: User = None,
    client_id: ClientId = None,
    ip: Ip = None,
    user_defaults: UserDefaults = False,
    client_defaults: ClientDefaults = False,
    ip_defaults: IpDefaults = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Remove quotas of a user, a client id, both together, or an address: those named, or all.

    ```
    odradek quotas remove --user alice producer_byte_rate
    odradek quotas remove --ip 10.0.0.7
    ```
    """
    from ...client.admin.admin import Admin

    entity = _entity(user, client_id, ip, user_defaults, client_defaults, ip_defaults)
    _require_entity(entity)
    named = [_known(each) for each in quotas or ()]

    async def change(client: KafkaClient) -> list[str]:
        admin = Admin(client)
        present = [
            key
            for each in await admin.describe_client_quotas(entity, strict=True)
            for key in each.quotas
        ]
        missing = [key for key in named if key not in present]
        if missing or not present:
            what = f" {missing[0]}" if missing else ""
            fail(f"{_in_words(entity)} has no quota{what}; see: odradek quotas list")
        removed = named or present
        await admin.alter_client_quotas(entity, dict.fromkeys(removed))
        return removed

    removed = with_client(bootstrap_server, change, command_config)
    note(f"{_in_words(entity)} has {', '.join(removed)} no more")


def _entity(
    user: str | None,
    client_id: str | None,
    ip: str | None,
    user_defaults: bool,
    client_defaults: bool,
    ip_defaults: bool,
) -> Entity:
    """Names by the type of entity; None as a name: the default. CommandError for both at once."""
    entity: Entity = {}
    for kind, name, is_default, option in (
        (USER, user, user_defaults, "--user-defaults"),
        (CLIENT_ID, client_id, client_defaults, "--client-defaults"),
        (IP, ip, ip_defaults, "--ip-defaults"),
    ):
        if name is not None and is_default:
            fail(f"--{kind} and {option} exclude each other: give one")
        if name is not None or is_default:
            entity[kind] = name
    return entity


def _require_entity(entity: Entity) -> None:
    if not entity:
        fail("say whose: --user, --client-id or --ip, or their defaults")
    if IP in entity and len(entity) > 1:
        fail("--ip has quotas of its own: leave out the user and the client id")


def _quota(text: str) -> tuple[str, float]:
    key, equals, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not (equals and math.isfinite(value)):
        fail(f"{text!r} is no quota; write QUOTA=NUMBER, as in producer_byte_rate=1048576")
    return _known(key), value


def _known(key: str) -> str:
    from ...client.admin.admin import CLIENT_QUOTAS

    if key not in CLIENT_QUOTAS:
        fail(f"there is no quota {key!r}; it is one of {', '.join(CLIENT_QUOTAS)}")
    return key


def _shown_names(entity: Mapping[str, str | None]) -> tuple[str, str, str]:
    """User, client id and address of an entity; empty for what it has not."""
    user, client_id, ip = (
        ("(default)" if entity[kind] is None else str(entity[kind])) if kind in entity else ""
        for kind in (USER, CLIENT_ID, IP)
    )
    return user, client_id, ip


def _in_words(entity: Entity) -> str:
    """An entity, in a sentence."""
    words = [
        f"the default {kind}" if name is None else f"{kind} {name}" for kind, name in entity.items()
    ]
    return " with ".join(words).replace("client-id", "client id")
