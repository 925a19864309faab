"""Describing and altering SCRAM credentials in the metadata store (KIP-554).

They lie beside a user's quotas, in `/config/users/<user>`, one setting for each mechanism (Kafka's
ZkAdminManager); answers are those of ScramControlManager and ScramImage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...protocol.sasl.errors import SaslError
from ...protocol.sasl.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SCRAM_MECHANISMS,
    ScramCredential,
    ScramMechanism,
)
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.steps import count_in_steps
from .config_manager import USERS, ConfigManager, Overrides

BY_NUMBER: Mapping[int, ScramMechanism] = {each.number: each for each in SCRAM_MECHANISMS.values()}


class ScramAlteration(NamedTuple):
    """One user's credential to be set or removed.

    Attributes:
        user: whose it is.
        mechanism: its number in requests.
        salted: None to remove it; else salt, salted password and iterations.
    """

    user: str
    mechanism: int
    salted: tuple[bytes, bytes, int] | None = None

    def check(self) -> ScramMechanism:
        """Its mechanism, if it may be done.

        Raises:
            KafkaError: it may not.
        """
        if not self.user:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        mechanism = BY_NUMBER.get(self.mechanism)
        if mechanism is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        if self.salted is not None:
            iterations = self.salted[2]
            if iterations < ITERATIONS_MIN:
                raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
            if iterations > ITERATIONS_MAX:
                raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        return mechanism

    def settings(self, present: Overrides) -> Overrides:
        """All settings of the user with this one done.

        Raises:
            KafkaError: there is nothing to remove.
        """
        mechanism = self.check()
        if self.salted is None:
            if mechanism.name not in present:
                raise KafkaError(
                    ErrorCode.RESOURCE_NOT_FOUND,
                    "Attempt to delete a user credential that does not exist",
                )
            return {name: text for name, text in present.items() if name != mechanism.name}
        salt, salted_password, iterations = self.salted
        credential = mechanism.credential_of_salted(salted_password, salt, iterations)
        return {**present, mechanism.name: credential.encode()}


async def alter_scram_credentials(
    manager: ConfigManager, alterations: Sequence[ScramAlteration]
) -> dict[str, KafkaError | None]:
    """Do each; by user, why it could not be done, or None.

    Raises:
        MetadataStoreError: the store does not answer.
    """
    counts = await run_in_steps(count_in_steps(each.user for each in alterations))
    outcomes: dict[str, KafkaError | None] = {}
    pace = Pace()
    for each in alterations:
        await pace.keep()
        if counts[each.user] > 1:
            outcomes[each.user] = KafkaError(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
            continue
        try:
            each.check()
            await manager.alter(USERS, each.user, each.settings)
        except KafkaError as error:
            outcomes[each.user] = error.as_value()
        else:
            outcomes[each.user] = None
    return outcomes


async def scram_iterations(
    manager: ConfigManager, users: Iterable[str] | None
) -> dict[str, dict[ScramMechanism, int]]:
    """By user, the iterations of each mechanism's credential; empty where a user has none.

    Args:
        manager: of the settings in the store.
        users: to look up; None: all, of whom only those that have credentials are returned.

    Raises:
        MetadataStoreError: the store does not answer.
    """
    names = await manager.entity_names(USERS) if users is None else list(users)
    settings = await manager.settings_of(USERS, names)
    found: dict[str, dict[ScramMechanism, int]] = {}
    pace = Pace()
    for name in names:
        await pace.keep()
        iterations = _iterations(settings[name])
        if iterations or users is not None:
            found[name] = iterations
    return found


def _iterations(settings: Overrides) -> dict[ScramMechanism, int]:
    found = {}
    for name, mechanism in SCRAM_MECHANISMS.items():
        try:
            found[mechanism] = ScramCredential.decode(settings[name]).iterations
        except (KeyError, SaslError):
            continue
    return found
