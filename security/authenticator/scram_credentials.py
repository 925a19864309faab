"""SCRAM credentials of a cluster's users, as the metadata store keeps them (`/config/users`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from ...protocol.sasl.errors import SaslError
from ...protocol.sasl.scram import SCRAM_MECHANISMS, ScramCredential, ScramMechanism
from .exchange import Login
from .scram import FindCredential, KnownCredential

logger = logging.getLogger(__name__)


class ScramCredentials:
    """What this broker knows of them; follows the store (Kafka's CredentialCache).

    Attributes:
        find_token: the credential of a delegation token, by its id; set where there are tokens.
    """

    def __init__(self) -> None:
        self.find_token: Callable[[ScramMechanism, str], KnownCredential | None] = (
            lambda mechanism, token_id: None
        )
        self._credentials: dict[str, dict[str, ScramCredential]] = {}

    def change(self, user: str, settings: Mapping[str, str]) -> None:
        """Follow a user's node: all its settings, of which credentials are some."""
        found: dict[str, ScramCredential] = {}
        for mechanism in SCRAM_MECHANISMS:
            if (text := settings.get(mechanism)) is None:
                continue
            try:
                found[mechanism] = ScramCredential.decode(text)
            except SaslError as error:
                logger.error("the %s credential of user %r: %s", mechanism, user, error)
        self._credentials.pop(user, None)
        if found:
            self._credentials[user] = found

    @property
    def users(self) -> Mapping[str, Mapping[str, ScramCredential]]:
        """By user, and by the name of the mechanism."""
        return self._credentials

    def finder(self, mechanism: ScramMechanism) -> FindCredential:
        """How a login by one mechanism looks its user up."""

        def find(name: str, is_token: bool) -> KnownCredential | None:
            if is_token:
                return self.find_token(mechanism, name)
            credential = self._credentials.get(name, {}).get(mechanism.name)
            return None if credential is None else KnownCredential(credential, Login(name))

        return find
