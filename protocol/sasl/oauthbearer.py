"""SASL OAUTHBEARER (RFC 7628): a token that somebody else has issued, and extensions (KIP-342)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from .errors import SaslError

MECHANISM: Final = "OAUTHBEARER"
SEPARATOR: Final = "\x01"
FAILURE_NOTED: Final = b"\x01"
"""What a client answers to an error, after which the server may refuse it."""
AUTH_KEY: Final = "auth"

_SASL_NAME = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_KEY = r"[A-Za-z]+"
_VALUE = r"[!-~ \t\r\n]+"
_CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_KEY}={_VALUE}\x01)*)\x01"
)
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class OAuthBearerMessage(NamedTuple):
    """The client's message (Kafka's OAuthBearerClientInitialResponse).

    Attributes:
        token: as it was issued.
        extensions: further pairs, for whoever decides about the token.
        authorization_id: whom the client wants to act as; empty: whom the token names.
    """

    token: str
    extensions: Mapping[str, str] = {}
    authorization_id: str = ""

    def __repr__(self) -> str:
        return f"OAuthBearerMessage([hidden], {list(self.extensions)})"

    def encode(self) -> bytes:
        """As it is sent.

        Raises:
            ValueError: the token or an extension cannot be sent.
        """
        if not _AUTH.fullmatch(f"Bearer {self.token}"):
            raise ValueError("an access token consists of letters, digits and -._~+/=")
        for name, value in self.extensions.items():
            if name == AUTH_KEY or not re.fullmatch(_KEY, name) or not re.fullmatch(_VALUE, value):
                raise ValueError(f"the SASL extension {name!r} cannot be sent")
        header = f"a={self.authorization_id}" if self.authorization_id else ""
        pairs = {AUTH_KEY: f"Bearer {self.token}", **self.extensions}
        texts = [f"{name}={value}{SEPARATOR}" for name, value in pairs.items()]
        return f"n,{header},{SEPARATOR}{''.join(texts)}{SEPARATOR}".encode()

    @classmethod
    def decode(cls, message: bytes) -> OAuthBearerMessage:
        """Read it.

        Raises:
            SaslError: it is not of the form; the text repeats no token.
        """
        found = None
        if message.isascii():
            found = _CLIENT_FIRST.fullmatch(message.decode("ascii"))
        if found is None:
            raise SaslError("Invalid OAUTHBEARER client first message")
        pairs = dict(each.split("=", 1) for each in found["pairs"].split(SEPARATOR)[:-1])
        auth = pairs.pop(AUTH_KEY, None)
        if auth is None:
            raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
        bearer = _AUTH.fullmatch(auth)
        if bearer is None:
            raise SaslError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
        if bearer["scheme"].lower() != "bearer":
            raise SaslError("Invalid scheme in OAUTHBEARER client first message")
        name = (found["authorization_id"] or "").replace("=2C", ",").replace("=3D", "=")
        return cls(bearer["token"], pairs, name)
