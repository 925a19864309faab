"""SASL GSSAPI (RFC 4752): what both sides say once Kerberos has made them known to each other.

Server and client wrap one such message each. Kafka uses no layer: whoever wants what follows to be
secret uses TLS.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .errors import SaslError

MECHANISM: Final = "GSSAPI"
NO_LAYER: Final = 1
"""The bit that says that nothing is wrapped after the login (quality of protection "auth")."""
TOKEN_BYTES_MAX: Final = 524288
"""No token is longer; it is Kafka's default of `sasl.server.max.receive.size`."""

_HEADER_BYTES = 4


class SecurityLayers(NamedTuple):
    """What a side offers, or has chosen.

    Attributes:
        layers: bits, one for each security layer.
        bytes_max: of a wrapped message that it takes; 0 without a layer.
        authorization_id: whom the client wants to act as; empty: whom its ticket names.
    """

    layers: int = NO_LAYER
    bytes_max: int = 0
    authorization_id: str = ""

    def encode(self) -> bytes:
        """As it is wrapped."""
        header = (self.layers << 24 | self.bytes_max).to_bytes(_HEADER_BYTES, "big")
        return header + self.authorization_id.encode()

    @classmethod
    def decode(cls, message: bytes) -> SecurityLayers:
        """Read it.

        Raises:
            SaslError: it is too short, or its name is no UTF-8.
        """
        if len(message) < _HEADER_BYTES:
            raise SaslError(f"a message of {len(message)} bytes names no security layer")
        header, name = message[:_HEADER_BYTES], message[_HEADER_BYTES:]
        try:
            return cls(header[0], int.from_bytes(header[1:], "big"), name.decode())
        except UnicodeDecodeError:
            raise SaslError("the authorization id is not UTF-8") from None
