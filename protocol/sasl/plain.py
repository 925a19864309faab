"""SASL PLAIN (RFC 4616): a name and a password, as they are."""

from __future__ import annotations

from typing import Final, NamedTuple

from .errors import SaslError

MECHANISM: Final = "PLAIN"
SEPARATOR = "\0"
FIELDS_COUNT = 3


class PlainMessage(NamedTuple):
    """The one message of the mechanism.

    Attributes:
        authorization_id: whom the client wants to act as; empty: itself.
        username: whose password it is.
        password: in clear.
    """

    authorization_id: str
    username: str
    password: str

    def __repr__(self) -> str:
        return f"PlainMessage({self.authorization_id!r}, {self.username!r}, [hidden])"

    def encode(self) -> bytes:
        """As it is sent.

        Raises:
            ValueError: a field holds a NUL, which the mechanism cannot carry.
        """
        if SEPARATOR in self.authorization_id + self.username + self.password:
            raise ValueError("SASL PLAIN cannot carry a NUL in a name or password")
        return SEPARATOR.join(self).encode()

    @classmethod
    def decode(cls, token: bytes) -> PlainMessage:
        """Read it.

        Raises:
            SaslError: it does not have three fields, or is no UTF-8.
        """
        try:
            fields = token.decode().split(SEPARATOR, FIELDS_COUNT)
        except UnicodeDecodeError:
            raise SaslError("Invalid SASL/PLAIN response: it is not UTF-8") from None
        if len(fields) != FIELDS_COUNT:
            raise SaslError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(fields)}")
        return cls(*fields)
