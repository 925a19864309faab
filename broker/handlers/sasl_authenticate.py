"""SaslAuthenticate (36), versions 0-2: one step of an authentication (KIP-152).

Behaviour: what the mechanism answers; SASL_AUTHENTICATION_FAILED with a text that does not tell
whether the user exists, after `connection.failed.authentication.delay.ms`, and then the connection
is closed. ILLEGAL_SASL_STATE where no SaslHandshake came before. On the listener that brokers use
among themselves another broker proves here that it is one (`interbroker.registered_brokers`), once
it has logged in if that is needed.
Version notes: 1 tells for how long a login holds (KIP-368); 2 is flexible.
Departures from Kafka: it has no such proof; a Kafka broker is known by its address.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...protocol import messages
from ..interbroker.registered_brokers import RegisteredBrokers
from ..request.context import HandlerContext
from ..request.outcomes import Answer, Parked, Task
from ..request.requests import ClientConnection, Request


def handle_sasl_authenticate(
    context: HandlerContext, request: Request[messages.SaslAuthenticateRequest]
) -> Answer[messages.SaslAuthenticateResponse] | Parked | Task[messages.SaslAuthenticateResponse]:
    """Take a client's token, or what another broker proves itself by."""
    connection = request.connection
    authenticator = connection.authenticator
    if authenticator is None or not authenticator.is_authenticating:
        token = bytes(request.body.auth_bytes)
        return _answer_broker(context.registered_brokers, connection, token)
    # Only where clients log in: brokers prove themselves here at every start.
    from ..request.authentication import take_token

    return take_token(context, request, authenticator)


def _answer_broker(
    brokers: RegisteredBrokers, connection: ClientConnection, token: bytes
) -> Answer[messages.SaslAuthenticateResponse]:
    """Challenge another broker, or verify its proof; nobody else has to say anything here."""
    response = messages.SaslAuthenticateResponse
    if connection.challenge:
        if brokers.verify(connection, token):
            return Answer(response())
        return Answer(
            response(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message="this is not the proof of a broker of this cluster",
            )
        )
    challenge = brokers.challenge(connection, token)
    if challenge is not None:
        return Answer(response(auth_bytes=challenge))
    return Answer(
        response(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    )
