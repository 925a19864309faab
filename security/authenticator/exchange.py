"""One login by one mechanism: tokens in, tokens out, and who it was."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Login(NamedTuple):
    """Who has logged in.

    Attributes:
        name: of the user, without the type of principal.
        expires_at_ms: when what it logged in with ends, in ms of wall time; None: it does not.
        is_by_token: whether it was a delegation token's (KIP-48), which may not make tokens.
    """

    name: str
    expires_at_ms: int | None = None
    is_by_token: bool = False


class RefusedError(Exception):
    """A login is refused, and the client may hear why.

    Any other failure is answered with one text for all, which does not say whether a user exists
    (Kafka's SaslAuthenticationException and SaslException).
    """


class Exchange(Protocol):
    """The server's side of one login.

    Attributes:
        login: who it was, once the exchange is complete.
    """

    login: Login | None

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's next token; returns what it is answered.

        Raises:
            RefusedError: it is refused, for a reason that it may hear.
            SaslError: it is refused; the reason is for this side's log.
        """
