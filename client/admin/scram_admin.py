"""Administration of the users of SCRAM: list, set and remove their credentials (KIP-554)."""

from __future__ import annotations

from typing import Final

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ...protocol.sasl.scram import SCRAM_MECHANISMS
from ...runtime.rng import random_secret
from ..client import KafkaClient
from .admin import Outcome, require_success

SALT_BYTES: Final = 24
MECHANISM_NAMES: Final = {each.number: name for name, each in SCRAM_MECHANISMS.items()}


class ScramAdmin:
    """Administers SCRAM credentials through a client.

    Args:
        client: is open, and stays so.
        timeout_ms: for each call.
    """

    def __init__(self, client: KafkaClient, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._timeout_ms = timeout_ms

    async def describe(self) -> dict[str, dict[str, int]]:
        """By user, the iterations of each mechanism's credential, by the mechanism's name.

        Raises:
            KafkaError: the broker refused.
            ClientError: no broker could be reached.
        """
        answer: messages.DescribeUserScramCredentialsResponse = await self._client.send_to_any(
            messages.DescribeUserScramCredentialsRequest(users=None), timeout_ms=self._timeout_ms
        )
        require_success([Outcome("the users", answer.error_code, answer.error_message)])
        require_success(
            Outcome(f"user {each.user}", each.error_code, each.error_message)
            for each in answer.results
        )
        return {
            each.user: {
                MECHANISM_NAMES.get(info.mechanism, str(info.mechanism)): info.iterations
                for info in each.credential_infos
            }
            for each in sorted(answer.results, key=lambda result: result.user)
        }

    async def set_password(self, name: str, password: str, mechanism: str, iterations: int) -> None:
        """Make a credential, or put another in its place. The password is not sent.

        Args:
            name: of the user.
            password: of the user.
            mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
            iterations: how often the password is hashed: what guessing it costs.

        Raises:
            KafkaError: UNACCEPTABLE_CREDENTIAL and so on.
            ClientError: the controller could not be reached.
        """
        scram = SCRAM_MECHANISMS[mechanism]
        salt = random_secret(SALT_BYTES)
        upsertion = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=name,
            mechanism=scram.number,
            iterations=iterations,
            salt=salt,
            salted_password=scram.salted_password(password, salt, iterations),
        )
        await self._alter(messages.AlterUserScramCredentialsRequest(upsertions=[upsertion]))

    async def remove(self, name: str, mechanism: str) -> None:
        """Remove a credential.

        Raises:
            KafkaError: RESOURCE_NOT_FOUND, where there is none, and so on.
            ClientError: the controller could not be reached.
        """
        deletion = messages.AlterUserScramCredentialsRequest.ScramCredentialDeletion(
            name=name, mechanism=SCRAM_MECHANISMS[mechanism].number
        )
        await self._alter(messages.AlterUserScramCredentialsRequest(deletions=[deletion]))

    async def _alter(self, request: messages.AlterUserScramCredentialsRequest) -> None:
        attempts = self._client.attempts(self._timeout_ms)
        while True:
            answer: messages.AlterUserScramCredentialsResponse = (
                await self._client.send_to_controller(
                    request, timeout_ms=max(attempts.remaining_ms, 1)
                )
            )
            try:
                require_success(
                    Outcome(f"user {each.user}", each.error_code, each.error_message)
                    for each in answer.results
                )
            except KafkaError as failure:
                if failure.code != ErrorCode.NOT_CONTROLLER:
                    raise
                version = self._client.request_update()
                await attempts.pause(failure)
                await self._client.wait_for_metadata(version, attempts.remaining_ms)
            else:
                return
