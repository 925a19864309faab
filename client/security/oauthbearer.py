"""The client's half of SASL OAUTHBEARER (RFC 7628), and where its tokens come from.

A token is taken from a file, from a provider that gives one for a client's id and secret (RFC 6749,
4.4), from whatever function a program has, or made up, unsecured, for development.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from random import Random
from typing import Final
from urllib.parse import quote_plus, unquote, urlencode, urlsplit

import trio

from ...protocol.sasl.oauthbearer import FAILURE_NOTED, MECHANISM, OAuthBearerMessage
from ...runtime.offload import run_in_abandoned_thread
from ..errors import AuthenticationError
from ..network.connection import Authenticate, Connection
from .login_refresh import LoginRefresh
from .sasl_steps import handshake, send_token
from .tls_stores import ReadFile

logger = logging.getLogger(__name__)

GetToken = Callable[[], Awaitable[str]]
"""Gets the token for a login. Raises AuthenticationError where there is none."""

TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
SCOPE: Final = "sasl.oauthbearer.scope"
SETTINGS: Final = (TOKEN_URL, CLIENT_ID, CLIENT_SECRET, SCOPE)
"""What `token_source` reads."""

JAVA_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
LOGIN_HANDLERS: Final = tuple(
    f"{JAVA_PACKAGE}{name}"
    for name in (
        "OAuthBearerLoginCallbackHandler",
        "secured.OAuthBearerLoginCallbackHandler",
        "internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
    )
)
"""Kafka's own values of `sasl.login.callback.handler.class`: which of them does not matter here,
for the other settings say where tokens come from."""
TOKEN_CLASSES: Final = tuple(
    f"{JAVA_PACKAGE}{name}"
    for name in (
        "DefaultJwtRetriever",
        "ClientCredentialsJwtRetriever",
        "FileJwtRetriever",
        "DefaultJwtValidator",
        "ClientJwtValidator",
    )
)
"""Kafka's own values of `sasl.oauthbearer.jwt.*.class` (KIP-1139) that mean what is done here:
tokens come from where the other settings say, and are not looked at before they are sent, for
brokers judge them."""

UNSECURED: Final = "unsecuredLogin"
"""Options of a JAAS entry that begin so describe a token that nobody signs."""
_STRING, _NUMBER, _LIST = (f"{UNSECURED}{kind}Claim_" for kind in ("String", "Number", "List"))

LIFETIME_SECONDS: Final = 3600
RENEWED_AGAIN_S: Final = 10.0
"""After a failure, while the last token still holds; as in Kafka."""
FINAL_STATUSES: Final = frozenset({*range(400, 408), *range(409, 416), 501, 505})
"""Of HTTP: what Kafka's HttpJwtRetriever does not try again after."""
ANSWER_BYTES_MAX: Final = 1024 * 1024


def sasl_oauthbearer(
    get_token: GetToken, extensions: Mapping[str, str] | None = None
) -> Authenticate:
    """Authentication by a token, to be given as `authenticate` (KIP-255).

    The token crosses the network as it is: use it with TLS.

    Args:
        get_token: is awaited at each login.
        extensions: are sent along (KIP-342).
    """

    async def authenticate(connection: Connection) -> None:
        try:
            message = OAuthBearerMessage(await get_token(), extensions or {}).encode()
        except ValueError as error:
            raise AuthenticationError(f"no login to {connection.peer}: {error}") from error
        await handshake(connection, MECHANISM)
        failure = await send_token(connection, message)
        if failure:
            await send_token(connection, FAILURE_NOTED)  # refuses
            raise AuthenticationError(f"{connection.peer} refused the token: {failure!r}")

    return authenticate


def token_source(
    setting: Callable[[str], str | None],
    options: Mapping[str, str],
    read: ReadFile,
    wall_ms: Callable[[], int],
) -> GetToken:
    """Where tokens come from, by Kafka's settings.

    Args:
        setting: the value of one of `SETTINGS`, or of `LoginRefresh`'s.
        options: of the JAAS entry; Kafka has id, secret and scope there before 4.1.
        read: reads files.
        wall_ms: the time that unsecured tokens are issued at, and others expire by.

    Raises:
        ValueError: the settings name no source, or one that cannot be used; the text has no secret.
    """
    url = setting(TOKEN_URL)
    if url is None:
        if any(name.startswith(UNSECURED) for name in options):
            return _unsecured(options, wall_ms)
        raise ValueError(f"OAUTHBEARER needs a token: set {TOKEN_URL}")
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _from_file(unquote(parts.path), read)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{TOKEN_URL}={url} is not a URL of http, https or file")
    client_id = setting(CLIENT_ID) or options.get("clientId")
    secret = setting(CLIENT_SECRET) or options.get("clientSecret")
    if not client_id or not secret:
        missing = CLIENT_SECRET if client_id else CLIENT_ID
        raise ValueError(f"{missing} is missing, which {TOKEN_URL} needs")
    scope = setting(SCOPE) or options.get("scope")
    return ClientCredentials(url, client_id, secret, scope, LoginRefresh.of(setting), wall_ms)


def _from_file(path: str, read: ReadFile) -> GetToken:
    async def get_token() -> str:
        try:
            return read(path).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AuthenticationError(f"{path}, which holds the token, cannot be read") from error

    return get_token


def _unsecured(options: Mapping[str, str], wall_ms: Callable[[], int]) -> GetToken:
    """A token as Kafka's OAuthBearerUnsecuredLoginCallbackHandler makes it. Raises ValueError."""
    claims: dict[str, object] = {}
    for name, text in options.items():
        if name.startswith(_STRING):
            claims[name.removeprefix(_STRING)] = text
        elif name.startswith(_NUMBER):
            claims[name.removeprefix(_NUMBER)] = float(text)
        elif name.startswith(_LIST):
            claims[name.removeprefix(_LIST)] = text[1:].split(text[0]) if text else []
    principal = options.get(f"{UNSECURED}PrincipalClaimName", "sub")
    if not claims.get(principal):
        raise ValueError(f"the JAAS entry has no {_STRING}{principal}, which names the principal")
    lifetime = int(options.get(f"{UNSECURED}LifetimeSeconds", LIFETIME_SECONDS))

    async def get_token() -> str:
        now = wall_ms() / 1000
        parts = ({"alg": "none"}, {**claims, "iat": now, "exp": now + lifetime})
        encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts)
        return "".join(part.rstrip(b"=").decode() + "." for part in encoded)

    return get_token


class ClientCredentials:
    """Tokens of a provider, for a client's id and secret; each is used for most of its life.

    Args:
        url: of the provider's token endpoint.
        client_id: of this client.
        secret: of this client.
        scope: to be requested; None: the provider's default.
        refresh: when another is requested, and how.
        wall_ms: the time by which tokens tell when they end.
    """

    def __init__(
        self,
        url: str,
        client_id: str,
        secret: str,
        scope: str | None,
        refresh: LoginRefresh,
        wall_ms: Callable[[], float],
    ) -> None:
        self._url = url
        self._client_id = client_id
        self._secret = secret
        self._scope = scope
        self._refresh = refresh
        self._wall_ms = wall_ms
        self._random = Random()
        self._lock = trio.Lock()
        self._token = ""
        self._renew_at = self._ends_at = -inf

    async def __call__(self) -> str:
        """The token of now.

        Raises:
            AuthenticationError: the provider gives none, and the last one has expired.
        """
        async with self._lock:  # one request, however many log in
            now = trio.current_time()
            if now >= self._renew_at:
                try:
                    await self._renew()
                except AuthenticationError as error:
                    if now >= self._ends_at:
                        raise
                    logger.warning("%s; the last token is used until it expires", error)
                    self._renew_at = now + RENEWED_AGAIN_S
            return self._token

    async def _renew(self) -> None:
        try:
            answer = json.loads(await self._answer())
            token = answer["access_token"]
            if not isinstance(token, str):
                raise ValueError("its access_token is not a text")
            life_ms = _life_ms(token, answer, self._wall_ms())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise AuthenticationError(f"{self._url} gave no token: {error}") from error
        self._token = token
        self._renew_at = self._ends_at = now = trio.current_time()
        if life_ms is not None:
            refresh_ms = self._refresh.refresh_ms(0, *life_ms, self._random.random())
            self._renew_at, self._ends_at = now + refresh_ms / 1000, now + life_ms[1] / 1000

    async def _answer(self) -> bytes:
        """The provider's answer, at last, as by Kafka's Retry. Raises OSError, ValueError."""
        deadline = trio.current_time() + self._refresh.retry_backoff_max_ms / 1000
        pause = self._refresh.retry_backoff_ms / 1000
        while True:
            try:
                return await run_in_abandoned_thread(self._request)
            except OSError as error:
                pause = min(pause, deadline - trio.current_time())
                if pause <= 0 or getattr(error, "code", None) in FINAL_STATUSES:
                    raise
            await trio.sleep(pause)
            pause *= 2

    def _request(self) -> bytes:
        """One answer of the provider. Raises OSError, ValueError."""
        from urllib.request import Request

        from .http_client import open_url

        form = {"grant_type": "client_credentials"}
        if self._scope:
            form["scope"] = self._scope
        who = f"{quote_plus(self._client_id)}:{quote_plus(self._secret)}"
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(who.encode()).decode()}",
        }
        request = Request(self._url, urlencode(form).encode(), headers)
        return open_url(
            request,
            self._refresh.connect_timeout_ms / 1000,
            self._refresh.read_timeout_ms / 1000,
            ANSWER_BYTES_MAX,
        )


def _life_ms(
    token: str, answer: Mapping[str, object], wall_ms: float
) -> tuple[float, float] | None:
    """From when to when a token holds, in ms from now; None: nothing says.

    By the claims of a JWT, as in Kafka; of another token, by the provider's word (RFC 6749, 5.1).
    """
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        end_ms = 1000 * float(claims["exp"]) - wall_ms
        return min(1000 * float(claims.get("iat", wall_ms / 1000)) - wall_ms, 0), end_ms
    except (IndexError, ValueError, KeyError, TypeError, AttributeError):
        seconds = float(answer.get("expires_in") or 0)  # type: ignore[arg-type]  # or a TypeError
        return (0, 1000 * seconds) if seconds > 0 else None
