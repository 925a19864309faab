"""SASL OAUTHBEARER for brokers (Kafka's OAuthBearerSaslServer): whose token it is decides."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

from ...protocol.sasl.oauthbearer import FAILURE_NOTED, OAuthBearerMessage
from .access_token import AccessTokenError
from .exchange import Login, RefusedError

logger = logging.getLogger(__name__)

ValidateToken = Callable[[str], Login]
"""Whom a token logs in. Raises AccessTokenError where it may not be used."""


class OAuthBearerExchange:
    """One login.

    Extensions are taken and change nothing, as with Kafka's own validators.

    Args:
        validate: checks a token.
    """

    def __init__(self, validate: ValidateToken) -> None:
        self.login: Login | None = None
        self._validate = validate
        self._error = ""

    def evaluate(self, token: bytes) -> bytes:
        """Check the client's token, or end what it has heard the error of; see `Exchange`."""
        if self._error and token == FAILURE_NOTED:
            raise RefusedError(self._error)
        self._error = ""
        message = OAuthBearerMessage.decode(token)
        try:
            login = self._validate(message.token)
        except AccessTokenError as error:
            logger.warning("an access token is refused: %s", error)
            self._error = _error_json(error)
            return self._error.encode()
        if message.authorization_id not in ("", login.name):
            raise RefusedError(
                "Authentication failed: Client requested an authorization id "
                f"({message.authorization_id}) that is different from the token's principal name "
                f"({login.name})"
            )
        self.login = login
        return b""


def _error_json(error: AccessTokenError) -> str:
    """RFC 7628's JSON, spaced as Kafka's."""
    text = f'{{"status":{json.dumps(error.status)}'
    if error.scope is not None:
        text += f', "scope":{json.dumps(error.scope)}'
    return text + "}"
