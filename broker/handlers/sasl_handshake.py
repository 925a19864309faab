"""SaslHandshake (17), versions 0-1: how a client says which mechanism it will use.

Behaviour: ILLEGAL_SASL_STATE, as on every listener of Kafka's that needs no SASL or where
it is over; listeners that do need it are not served yet.
Version notes: 1 says that SaslAuthenticate follows (KIP-152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.errors import ErrorCode
from ...protocol import messages

if TYPE_CHECKING:
    from ..broker import Broker
    from ..request.requests import Request


def handle_sasl_handshake(broker: Broker, request: Request) -> messages.SaslHandshakeResponse:
    """Refuse: there is nothing to shake hands for."""
    return messages.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
