"""One connection's way from a stranger to a principal, and its logins after that.

Kafka's SaslServerAuthenticator, sans-IO: the broker asks which requests may come, hands over what
SaslHandshake and SaslAuthenticate say, and closes on its errors.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from ...common.state_table import StateTable
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError
from ...protocol.sasl.errors import SaslError
from ...runtime.offload import FewThreads
from .exchange import Exchange, Login, RefusedError

logger = logging.getLogger(__name__)

REAUTHENTICATION_MS_MIN = 1000
"""A connection that begins another login sooner after the last is refused it (KIP-368)."""


class UnexpectedRequestError(ProtocolError):
    """What comes is not a token of the login that has begun; it is answered before the connection
    is closed (Kafka's SaslServerAuthenticator.handleSaslToken)."""


Evaluated = bytes | RefusedError | SaslError
"""What an exchange answers a token, or why the login fails."""


class SaslState(Enum):
    """How far a connection has come."""

    INITIAL = "initial"
    VERSIONS_KNOWN = "versions known"
    AUTHENTICATING = "authenticating"
    AUTHENTICATED = "authenticated"
    FAILED = "failed"


class SaslEvent(Enum):
    """What moves it on."""

    API_VERSIONS = "ApiVersions is answered"
    MECHANISM = "SaslHandshake names an enabled mechanism"
    NO_MECHANISM = "SaslHandshake names another"
    LOGIN = "the exchange is complete"
    REFUSAL = "the exchange fails"


SASL_STATES: Final = StateTable(
    "connection",
    {
        SaslState.INITIAL: [
            (SaslEvent.API_VERSIONS, SaslState.VERSIONS_KNOWN, "at most once, before SASL"),
            (SaslEvent.MECHANISM, SaslState.AUTHENTICATING, "tokens follow"),
            (SaslEvent.NO_MECHANISM, SaslState.FAILED, "the answer lists the enabled ones"),
        ],
        SaslState.VERSIONS_KNOWN: [
            (SaslEvent.MECHANISM, SaslState.AUTHENTICATING, "tokens follow"),
            (SaslEvent.NO_MECHANISM, SaslState.FAILED, "the answer lists the enabled ones"),
        ],
        SaslState.AUTHENTICATING: [
            (SaslEvent.LOGIN, SaslState.AUTHENTICATED, "the principal is known"),
            (SaslEvent.REFUSAL, SaslState.FAILED, "answered after a delay, then closed"),
        ],
        SaslState.AUTHENTICATED: [
            (SaslEvent.MECHANISM, SaslState.AUTHENTICATING, "it logs in again (KIP-368)"),
            (SaslEvent.NO_MECHANISM, SaslState.FAILED, "the answer lists the enabled ones"),
        ],
        SaslState.FAILED: [],
    },
    label=lambda state: str(state.value),
    initial=SaslState.INITIAL,
    final=SaslState.FAILED,
)
"""The states of a connection to a listener that speaks SASL."""

_EXPECTED: Final[Mapping[SaslState, frozenset[int]]] = {
    SaslState.INITIAL: frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}),
    SaslState.VERSIONS_KNOWN: frozenset({ApiKey.SASL_HANDSHAKE}),
    SaslState.AUTHENTICATING: frozenset({ApiKey.SASL_AUTHENTICATE}),
    SaslState.FAILED: frozenset(),
}
"""The requests that may come before a connection is authenticated; then any may."""


class SaslMechanisms(NamedTuple):
    """How a listener speaks SASL.

    Attributes:
        exchanges: by the name of each enabled mechanism, what begins a login.
        max_reauth_ms: by mechanism, for how long a login holds (`connections.max.reauth.ms`); 0
            or none: as long as the connection.
        failure_delay_ms: before a refused client hears of it
            (`connection.failed.authentication.delay.ms`).
        threads: by the name of each mechanism whose exchanges may wait for files, where they do.
    """

    exchanges: Mapping[str, Callable[[], Exchange]]
    max_reauth_ms: Mapping[str, int]
    failure_delay_ms: int
    threads: Mapping[str, FewThreads] = MappingProxyType({})


class SaslAnswer(NamedTuple):
    """The answer to a token.

    Attributes:
        token: for the client.
        session_lifetime_ms: after which it must have logged in again; 0: never.
    """

    token: bytes
    session_lifetime_ms: int


class SaslAuthenticator:
    """The logins of one connection.

    Args:
        mechanisms: of its listener, when it came.
        wall_ms: the time that credentials expire by.

    Attributes:
        principal: as Kafka writes it, "User:alice"; empty: nobody is known yet.
        login: what the principal logged in with last.
        on_login: called with the principal when a login succeeds.
        takes_bare_tokens: whether the next frames are tokens without any header, as they are after
            version 0 of SaslHandshake.
    """

    def __init__(self, mechanisms: SaslMechanisms, wall_ms: Callable[[], int]) -> None:
        self.principal = ""
        self.login: Login | None = None
        self.on_login: Callable[[str], None] = lambda principal: None
        self.takes_bare_tokens = False
        self._mechanisms = mechanisms
        self._wall_ms = wall_ms
        self._state = SaslState.INITIAL
        self._mechanism = ""
        self._next_mechanism = ""
        self._exchange: Exchange | None = None
        self._expires_ms: int | None = None
        self._began_ms: int | None = None

    @property
    def state(self) -> SaslState:
        """How far the connection has come."""
        return self._state

    @property
    def is_authenticating(self) -> bool:
        """Whether a token is what comes next."""
        return self._state is SaslState.AUTHENTICATING

    @property
    def mechanism(self) -> str:
        """By which the principal has logged in; empty: nobody has."""
        return self._mechanism

    @property
    def enabled_mechanisms(self) -> list[str]:
        """What a client may choose from."""
        return list(self._mechanisms.exchanges)

    @property
    def failure_delay_ms(self) -> int:
        """How long a refusal is held back, so that guessing takes time."""
        return self._mechanisms.failure_delay_ms

    def check(self, api_key: int, now_ms: int) -> None:
        """Make sure that a request may come now.

        Args:
            api_key: of the request.
            now_ms: monotonic.

        Raises:
            UnexpectedRequestError: it is not of the login that has begun.
            ProtocolError: it may not, or the login it rests on has expired; the connection is to be
                closed, as Kafka does without an answer.
        """
        if self._state is SaslState.AUTHENTICATED:
            expires_ms = self._expires_ms
            if expires_ms is not None and now_ms > expires_ms and api_key != ApiKey.SASL_HANDSHAKE:
                raise ProtocolError(f"the login of {self.principal} has expired")
            return
        if api_key in _EXPECTED[self._state]:
            return
        if self._state is SaslState.AUTHENTICATING:
            raise UnexpectedRequestError(
                f"Unexpected Kafka request of type {_name(api_key)} during SASL authentication."
            )
        raise ProtocolError(f"unexpected request {_name(api_key)} while {self._state.value}")

    @property
    def never_expires(self) -> bool:
        """Whether nothing has to be checked from now on."""
        return self._state is SaslState.AUTHENTICATED and self._expires_ms is None

    def note_api_versions(self) -> None:
        """ApiVersions was answered with what is served; only SASL may follow."""
        if self._state is SaslState.INITIAL:
            self._move(SaslEvent.API_VERSIONS)

    def may_begin(self, now_ms: int) -> bool:
        """Whether a handshake may begin a login now; one that may not changes nothing.

        Where logins hold for ever there is nothing to begin again.
        """
        if self._state is not SaslState.AUTHENTICATED:
            return True
        if self._expires_ms is None:
            return False
        return self._began_ms is None or now_ms - self._began_ms >= REAUTHENTICATION_MS_MIN

    def handshake(self, mechanism: str, version: int, now_ms: int) -> bool:
        """Begin a login; returns whether the mechanism is enabled, else the client is refused.

        Args:
            mechanism: that the client names.
            version: of SaslHandshake; after 0, tokens come bare.
            now_ms: monotonic.
        """
        make = self._mechanisms.exchanges.get(mechanism)
        if make is None:
            self._move(SaslEvent.NO_MECHANISM)
            return False
        if self._state is SaslState.AUTHENTICATED:
            self._began_ms = now_ms
        self._move(SaslEvent.MECHANISM)
        self._exchange = make()
        self._next_mechanism = mechanism
        self.takes_bare_tokens = version == 0
        return True

    def authenticate(self, token: bytes, now_ms: int) -> SaslAnswer:
        """Take a token.

        Args:
            token: of the client.
            now_ms: monotonic.

        Raises:
            RefusedError: the login fails, with the text that the client may hear.
            ProtocolError: the connection is to be closed without an answer.
        """
        return self.conclude(self.evaluate(token), now_ms)

    @property
    def threads(self) -> FewThreads | None:
        """Where `evaluate` is to be done, for it may wait for files; None: here and now."""
        return self._mechanisms.threads.get(self._next_mechanism)

    def evaluate(self, token: bytes) -> Evaluated:
        """The first half of `authenticate`, which touches nothing but the exchange.

        Raises:
            ProtocolError: no token may come now.
        """
        try:
            return self._current_exchange().evaluate(token)
        except (RefusedError, SaslError) as error:
            return error

    def conclude(self, evaluated: Evaluated, now_ms: int) -> SaslAnswer:
        """The second half: what that means for the connection. Raises as `authenticate`."""
        exchange = self._current_exchange()
        if self._mechanism not in ("", self._next_mechanism):
            self._move(SaslEvent.REFUSAL)
            raise ProtocolError(
                f"Cannot change SASL mechanism for re-authentication from {self._mechanism} to "
                f"{self._next_mechanism}"
            )
        if isinstance(evaluated, Exception):
            self._move(SaslEvent.REFUSAL)
            raise self._failure(evaluated)
        if exchange.login is None:
            return SaslAnswer(evaluated, 0)
        try:
            self._take_login(exchange.login)
        except RefusedError:
            self._move(SaslEvent.REFUSAL)
            raise
        self._move(SaslEvent.LOGIN)
        self._mechanism = self._next_mechanism
        self._exchange = None
        self.takes_bare_tokens = False
        self.on_login(self.principal)
        return SaslAnswer(evaluated, self._session_lifetime_ms(exchange.login, now_ms))

    def _current_exchange(self) -> Exchange:
        exchange = self._exchange
        if self._state is not SaslState.AUTHENTICATING or exchange is None:
            raise ProtocolError(f"unexpected SASL token while {self._state.value}")
        return exchange

    def _failure(self, error: RefusedError | SaslError) -> RefusedError:
        """What ends a login, with the text that its client may hear."""
        if isinstance(error, RefusedError):
            return error
        mechanism = self._next_mechanism
        logger.info("a login by %s failed: %s", mechanism, error)
        kind = "re-authentication" if self._mechanism else "authentication"
        return RefusedError(
            f"Authentication failed during {kind} due to invalid credentials with SASL "
            f"mechanism {mechanism}"
        )

    def _take_login(self, login: Login) -> None:
        """The principal of a login, which a later login may not change."""
        principal = f"User:{login.name}"
        if self.principal not in ("", principal):
            raise RefusedError(
                f"Cannot change principals during re-authentication from {self.principal} to "
                f"{principal}"
            )
        self.principal, self.login = principal, login

    def _session_lifetime_ms(self, login: Login, now_ms: int) -> int:
        limits = []
        if login.expires_at_ms is not None:
            limits.append(max(login.expires_at_ms - self._wall_ms(), 0))
        if (max_reauth_ms := self._mechanisms.max_reauth_ms.get(self._mechanism, 0)) > 0:
            limits.append(max_reauth_ms)
        self._expires_ms = now_ms + min(limits) if limits else None
        return min(limits, default=0)

    def _move(self, event: SaslEvent) -> None:
        self._state = SASL_STATES.next_state(self._state, event)


def _name(api_key: int) -> str:
    try:
        return ApiKey(api_key).name
    except ValueError:
        return f"key {api_key}"
