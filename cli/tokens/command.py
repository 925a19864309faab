"""`odradek tokens`: make, list, renew and end delegation tokens (KIP-48)."""

from __future__ import annotations

import base64
import binascii
import sys
from typing import TYPE_CHECKING, Annotated, Any

from ...common.acl import parse_principal
from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.show import JsonOutput, note, show_json, show_table
from ..common.times import format_time, parse_duration_ms
from ..declarations import CommandGroup, Option

if TYPE_CHECKING:
    from ...client.admin.token_admin import SecretToken
    from ...client.client import KafkaClient
    from ...common.delegation_token import DelegationToken

app = CommandGroup(
    help="Make, list, renew and end delegation tokens, with which others log in as you.",
)

TokenHmac = Annotated[
    str | None,
    Option(
        "--hmac",
        envvar="ODRADEK_TOKEN_HMAC",
        metavar="TEXT",
        help="The token's HMAC. Others on the machine can read a command line: leave it out to "
        "have it read from standard input.",
    ),
]


@app.command("list")
def list_tokens(
    owner: Annotated[
        list[str] | None,
        Option("--owner", metavar="PRINCIPAL", help="Only of these; repeatable."),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """List the tokens that you own or may renew, and others that an ACL lets you see.

    What it takes to log in with them is not shown: `create` shows it once.

    ```
    odradek tokens list --command-config alice.properties
    odradek tokens list --owner alice --json
    ```
    """
    from ...client.admin.token_admin import TokenAdmin

    owners = None if owner is None else [_principal(each) for each in owner]

    async def ask(client: KafkaClient) -> list[SecretToken]:
        return await TokenAdmin(client).describe(owners)

    rows = [_row(each.token) for each in with_client(bootstrap_server, ask, command_config)]
    if json_output:
        show_json(rows)
        return
    show_table(
        ["id", "owner", "requester", "renewers", "issued", "expires", "not beyond"],
        [[",".join(c) if isinstance(c, list) else c for c in row.values()] for row in rows],
        empty="there are no tokens; make one with: odradek tokens create",
    )


@app.command("create")
def create_token(
    owner: Annotated[
        str | None,
        Option(metavar="PRINCIPAL", help="Whom it logs in; else you. Needs CreateTokens."),
    ] = None,
    renewer: Annotated[
        list[str] | None,
        Option("--renewer", metavar="PRINCIPAL", help="Who else may renew it; repeatable."),
    ] = None,
    max_lifetime: Annotated[
        str | None,
        Option(metavar="DURATION", help="Such as 7d; else the broker's."),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Make a token, and show what a client logs in with: it is a secret, and not shown again.

    ```
    odradek tokens create --command-config alice.properties
    odradek tokens create --renewer bob --max-lifetime 1d --json
    ```
    """
    from ...client.admin.token_admin import DEFAULT_PERIOD, TokenAdmin

    renewers = [_principal(each) for each in renewer or ()]
    lifetime_ms = DEFAULT_PERIOD if max_lifetime is None else parse_duration_ms(max_lifetime)
    whose = None if owner is None else _principal(owner)

    async def create(client: KafkaClient) -> SecretToken:
        return await TokenAdmin(client).create(renewers, lifetime_ms, whose)

    made = with_client(bootstrap_server, create, command_config)
    if json_output:
        show_json([{**_row(made.token), "hmac": made.password}])
        return
    print(f"sasl.username={made.token.token_id}")
    print(f"sasl.password={made.password}")
    note(
        f"the token logs in {made.token.owner} by SCRAM until {format_time(made.token.expiry_ms)}; "
        "Java's clients need tokenauth=true in sasl.jaas.config"
    )


@app.command("renew")
def renew_token(
    hmac: TokenHmac = None,
    period: Annotated[
        str | None, Option(metavar="DURATION", help="From now on, such as 1d.")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """Let a token live longer, by the broker's setting or a duration, but not beyond its maximum.

    ```
    odradek tokens renew --period 1d --command-config alice.properties
    ```
    """
    from ...client.admin.token_admin import DEFAULT_PERIOD, TokenAdmin

    period_ms = DEFAULT_PERIOD if period is None else parse_duration_ms(period)
    secret = _hmac(hmac)

    async def renew(client: KafkaClient) -> int:
        return await TokenAdmin(client).renew(secret, period_ms)

    ends_ms = with_client(bootstrap_server, renew, command_config)
    note(f"the token expires at {format_time(ends_ms)}")


@app.command("expire")
def expire_token(
    hmac: TokenHmac = None,
    after: Annotated[
        str | None, Option(metavar="DURATION", help="From now on, such as 10m; else at once.")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """End a token, at once or after some time.

    ```
    odradek tokens expire --after 10m --command-config alice.properties
    ```
    """
    from ...client.admin.token_admin import DEFAULT_PERIOD, TokenAdmin

    period_ms = DEFAULT_PERIOD if after is None else parse_duration_ms(after)
    secret = _hmac(hmac)

    async def expire(client: KafkaClient) -> int:
        return await TokenAdmin(client).expire(secret, period_ms)

    ends_ms = with_client(bootstrap_server, expire, command_config)
    note(
        "the token logs nobody in any more" if after is None else f"it ends {format_time(ends_ms)}"
    )


def _principal(text: str) -> str:
    try:
        return parse_principal(text)
    except ValueError as error:
        fail(str(error))


def _hmac(text: str | None) -> bytes:
    """The bytes of an HMAC in base64. CommandError for what is none; it is not repeated."""
    if text is None:
        if sys.stdin.isatty():
            from getpass import getpass

            text = getpass("HMAC of the token: ")
        else:
            text = sys.stdin.readline()
    try:
        decoded = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        fail("that is no token's HMAC; it is what 'odradek tokens create' shows as sasl.password")
    return decoded


def _row(token: DelegationToken) -> dict[str, Any]:
    return {
        "id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issued": format_time(token.issue_ms),
        "expires": format_time(token.expiry_ms),
        "not_beyond": format_time(token.max_ms),
    }
