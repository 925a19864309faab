"""Asking the coordinators of groups and of transactional ids, found again when they move."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ..client import KafkaClient
from ..error_kinds import error_name, error_of
from ..errors import DisconnectedError, UnknownNodeError

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

GROUP_KEYS: Final = 0
TRANSACTION_KEYS: Final = 1
"""What FindCoordinator calls its kinds of keys."""

MOVING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The coordinator is another one, or will know more in a moment."""


class Answered(NamedTuple):
    """What a coordinator said about one key."""

    coordinator: int
    item: Any


class Coordinators:
    """The coordinators of one kind of keys.

    Args:
        client: is open, and stays so.
        key_type: `GROUP_KEYS` or `TRANSACTION_KEYS`.
        timeout_ms: for each call of `ask`.
    """

    def __init__(self, client: KafkaClient, key_type: int, timeout_ms: int) -> None:
        self._client = client
        self._key_type = key_type
        self._timeout_ms = timeout_ms

    async def ask(
        self,
        keys: Iterable[str],
        request: Callable[[list[str]], Message],
        items: Callable[[Any], Mapping[str, Any]],
        code: Callable[[Any], int] = lambda item: int(item.error_code),
        version_max: int | None = None,
    ) -> dict[str, Answered]:
        """Ask about keys, each at its coordinator, again while coordinators move.

        Args:
            keys: groups or transactional ids.
            request: makes the request about some of them.
            items: what an answer says about each.
            code: the error code in such an item.
            version_max: no newer version of the request.

        Raises:
            KafkaError: a coordinator cannot be found; errors of keys are in their items.
            ClientError: a coordinator could not be reached in time.
        """
        attempts = self._client.attempts(self._timeout_ms)
        answers: dict[str, Answered] = {}
        missing = list(dict.fromkeys(keys))
        while missing:
            failure: Exception | None = None
            found, failure = await self.find(missing)
            for node_id, theirs in found.items():
                try:
                    answer = await self._client.send(
                        node_id,
                        request(theirs),
                        version_max=version_max,
                        timeout_ms=max(attempts.remaining_ms, 1),
                    )
                except (DisconnectedError, UnknownNodeError) as error:
                    failure = error
                    continue
                for key, item in items(answer).items():
                    if code(item) in MOVING:
                        failure = _refusal(key, code(item))
                    else:
                        answers[key] = Answered(node_id, item)
            missing = [key for key in missing if key not in answers]
            if missing:
                await attempts.pause(
                    failure or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no answer about a key")
                )
        return answers

    async def find(self, keys: Sequence[str]) -> tuple[dict[int, list[str]], Exception | None]:
        """Keys by the broker that coordinates them, and why some are not among them.

        Raises:
            KafkaError: one will not be found later either.
        """
        if self._client.cluster.is_bootstrap:
            await self._client.refresh_metadata()
        request = messages.FindCoordinatorRequest(
            key_type=self._key_type, coordinator_keys=list(keys)
        )
        try:
            answer: messages.FindCoordinatorResponse = await self._client.send_to_any(request)
        except (DisconnectedError, UnknownNodeError) as error:
            return {}, error  # the broker is gone; another may know the coordinator
        found: dict[int, list[str]] = {}
        failure: Exception | None = None
        for each in answer.coordinators:
            if each.error_code == ErrorCode.NONE:
                found.setdefault(each.node_id, []).append(each.key)
                continue
            failure = _refusal(each.key, each.error_code)
            if each.error_code not in MOVING:
                raise failure
        return found, failure


def _refusal(key: str, code: int) -> KafkaError:
    return KafkaError(error_of(code), f"{key!r}: {error_name(code)}")
