"""SASL PLAIN for brokers: the users stand in a listener's JAAS entry (Kafka's PlainLoginModule)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from ...protocol.sasl.errors import SaslError
from ...protocol.sasl.plain import PlainMessage
from .exchange import Login, RefusedError

USER_OPTION = "user_"
"""An option `user_NAME="PASSWORD"` of the JAAS entry makes a user."""


def users_of(options: Mapping[str, str]) -> dict[str, str]:
    """Name to password, from the options of a JAAS entry."""
    return {
        name.removeprefix(USER_OPTION): password
        for name, password in options.items()
        if name.startswith(USER_OPTION)
    }


class PlainExchange:
    """One login; texts as Kafka's PlainSaslServer answers them.

    Args:
        users: name to password.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self.login: Login | None = None
        self._users = users

    def evaluate(self, token: bytes) -> bytes:
        """Check name and password; see `Exchange`."""
        try:
            message = PlainMessage.decode(token)
        except SaslError as error:
            raise RefusedError(str(error)) from None
        if not message.username:
            raise RefusedError("Authentication failed: username not specified")
        if not message.password:
            raise RefusedError("Authentication failed: password not specified")
        expected = self._users.get(message.username)
        # An unknown user takes as long as a wrong password.
        is_right = hmac.compare_digest((expected or "").encode(), message.password.encode())
        if expected is None or not is_right:
            raise RefusedError("Authentication failed: Invalid username or password")
        if message.authorization_id not in ("", message.username):
            raise RefusedError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.login = Login(message.username)
        return b""
