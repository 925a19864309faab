"""`odradek users`: list, add and remove the users who log in by SCRAM."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.running import run_async
from ..common.show import JsonOutput, note, show_json, show_table
from ..declarations import Argument, CommandGroup, Option

if TYPE_CHECKING:
    from ...client.client import KafkaClient

ResultT = TypeVar("ResultT")

DEFAULT_MECHANISM = "SCRAM-SHA-512"
MECHANISMS = ("SCRAM-SHA-256", DEFAULT_MECHANISM)
DEFAULT_ITERATIONS = 4096
ITERATIONS_MAX = 16_384

app = CommandGroup(
    help="List, add and remove the users who log in by SCRAM.",
)

UserName = Annotated[str, Argument(metavar="USER", show_default=False)]
DataDir = Annotated[
    Path | None,
    Option(
        "--data-dir",
        metavar="DIR",
        help="The users in this folder, in place of a broker's: its data folder, or what its "
        "--cluster-dir names. It may be a new one.",
    ),
]
Mechanisms = Annotated[
    list[str] | None,
    Option("--mechanism", metavar="NAME", help="SCRAM-SHA-256 or SCRAM-SHA-512; repeatable."),
]


class Users(Protocol):
    """Users that are a cluster's, or a folder's."""

    async def describe(self) -> dict[str, dict[str, int]]:
        """By user, the iterations of each mechanism's credential."""

    async def set_password(self, name: str, password: str, mechanism: str, iterations: int) -> None:
        """Make a credential, or put another in its place."""

    async def remove(self, name: str, mechanism: str) -> None:
        """Remove a credential."""


@app.command("list")
def list_users(
    data_dir: DataDir = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """List the users who can log in by SCRAM, and by which mechanisms.

    Users of PLAIN are not among them: they stand in the broker's settings.

    ```
    odradek users list
    odradek users list --command-config admin.properties --json
    ```
    """

    async def describe(users: Users) -> dict[str, dict[str, int]]:
        return await users.describe()

    if data_dir is not None:
        _require_metadata(data_dir)
    found = _with_users(data_dir, bootstrap_server, describe, command_config)
    rows = [
        {"user": user, "mechanism": mechanism, "iterations": iterations}
        for user, credentials in found.items()
        for mechanism, iterations in credentials.items()
    ]
    if json_output:
        show_json(rows)
        return
    show_table(
        ["user", "mechanism", "iterations"],
        [list(row.values()) for row in rows],
        empty="there are no users yet; add one with: odradek users add NAME",
    )


@app.command("add")
def add_user(
    user: UserName,
    mechanism: Mechanisms = None,
    iterations: Annotated[
        int,
        Option(
            min=DEFAULT_ITERATIONS,
            max=ITERATIONS_MAX,
            help="How often the password is hashed: what guessing it costs.",
        ),
    ] = DEFAULT_ITERATIONS,
    password: Annotated[
        str | None,
        Option(
            envvar="ODRADEK_USER_PASSWORD",
            metavar="TEXT",
            help="Others on the machine can read a command line: leave it out to type the "
            "password, or to have it read from standard input.",
        ),
    ] = None,
    data_dir: DataDir = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Add a user who logs in by SCRAM, or give one another password.

    It holds from the next login on, on every broker. The password is prompted for, or is the first
    line of standard input.

    ```
    odradek users add alice --command-config admin.properties
    cat alice.password | odradek users add alice
    ```

    **The first user of a cluster** is made in its folder, before the first start: brokers that log
    in to each other by SCRAM, and you, need one that is there. Then start
    `odradek serve --data-dir odradek-data` with the settings that docs/security.md shows.

    ```
    odradek users add admin --data-dir odradek-data
    ```
    """
    from ...protocol.sasl.scram import is_user_name

    mechanisms = _mechanisms(mechanism) or [DEFAULT_MECHANISM]
    if not is_user_name(user):
        fail(f"a user of SCRAM has a name of ASCII characters, not {user!r}")
    if data_dir is not None:
        _require_metadata(data_dir, or_new=True)
    secret = password if password is not None else _read_password(user)
    if not secret:
        fail("the password is empty; give one of some length")

    async def add(users: Users) -> None:
        for each in mechanisms:
            await users.set_password(user, secret, each, iterations)

    _with_users(data_dir, bootstrap_server, add, command_config)
    where = "" if data_dir is None else f" in {data_dir}"
    note(f"user {user} can log in by {' and '.join(mechanisms)}{where}")


@app.command("remove")
def remove_user(
    user: UserName,
    mechanism: Mechanisms = None,
    data_dir: DataDir = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Have a user log in no more, by any mechanism or by those named. ACLs of the user stay.

    Connections that are logged in go on until they have to log in again
    (connections.max.reauth.ms), or end.

    ```
    odradek users remove alice
    odradek users remove alice --mechanism SCRAM-SHA-256
    ```
    """
    named = _mechanisms(mechanism)
    if data_dir is not None:
        _require_metadata(data_dir)

    async def remove(users: Users) -> list[str]:
        present = (await users.describe()).get(user, {})
        for each in named or present:
            if each not in present:
                fail(f"user {user} has no {each} credential; see: odradek users list")
        if not present:
            fail(f"there is no user {user}; see: odradek users list")
        removed = list(named or present)
        for each in removed:
            await users.remove(user, each)
        return removed

    removed = _with_users(data_dir, bootstrap_server, remove, command_config)
    note(f"user {user} logs in by {' and '.join(removed)} no more")


def _mechanisms(named: list[str] | None) -> list[str]:
    """Kafka's names of mechanisms. CommandError for what is none."""
    mechanisms = list(dict.fromkeys(each.upper() for each in named or ()))
    for each in mechanisms:
        if each not in MECHANISMS:
            fail(f"--mechanism {each}: users are added for {' or '.join(MECHANISMS)}")
    return mechanisms


def _read_password(user: str) -> str:
    """A password that is typed twice without being shown, or the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    from getpass import getpass

    password = getpass(f"Password of {user}: ")
    if getpass("Once more: ") != password:
        fail("the two passwords are not the same")
    return password


def _require_metadata(folder: Path, *, or_new: bool = False) -> None:
    """Make sure that a folder is a cluster's. CommandError for another."""
    from ...metadata_store.choice import METADATA_FILE

    if (folder / METADATA_FILE).exists():
        return
    if or_new and not (folder.exists() and any(folder.iterdir())):
        return
    fail(
        f"--data-dir {folder} holds no cluster's metadata ({METADATA_FILE}); name the folder that "
        "'odradek serve' has as --cluster-dir, as metadata.log.dir, or else as its first data "
        "folder" + (", or one that is empty" if or_new else "")
    )


def _with_users(
    data_dir: Path | None,
    bootstrap_server: str,
    work: Callable[[Users], Awaitable[ResultT]],
    command_config: Path | None,
) -> ResultT:
    """What `work` makes of the users of a folder, or of a cluster that answers."""
    if data_dir is None:
        from ...client.admin.scram_admin import ScramAdmin

        async def ask(client: KafkaClient) -> ResultT:
            return await work(ScramAdmin(client))

        return with_client(bootstrap_server, ask, command_config)
    from ...broker.dynamic_config.stored_users import users_in_folder
    from ...metadata_store.errors import MetadataStoreError

    async def open_and_work(folder: Path) -> ResultT:
        async with users_in_folder(folder) as users:
            return await work(users)

    try:
        return run_async(open_and_work, data_dir)
    except MetadataStoreError as error:
        fail(f"--data-dir {data_dir}: {error}")
