"""The coordinator of one group: found when it is needed, and again when it has moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ....common.errors import ErrorCode
from ...admin.coordinators import GROUP_KEYS, Coordinators
from ...client import KafkaClient
from ...errors import DisconnectedError
from ...metadata.cluster import Node
from ...network.attempts import Attempts

if TYPE_CHECKING:
    from ....protocol.codec.message import Message

MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Another broker coordinates the group by now."""


class GroupCoordinator:
    """Sends a group's requests, by a connection of its own: a JoinGroup waits at the broker for
    all other members, and nothing of anybody else's may wait behind it.

    Args:
        client: is open, and stays so.
        group_id: of the group.
    """

    def __init__(self, client: KafkaClient, group_id: str) -> None:
        self.group_id = group_id
        self._client = client
        self._coordinators = Coordinators(client, GROUP_KEYS, client.settings.max_block_ms)
        self._connection_id = client.own_connection_id()
        self._node_id: int | None = None

    async def send(
        self,
        request: Message,
        *,
        version_max: int | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """Send a request to the coordinator and wait for its answer.

        Raises:
            KafkaError: no coordinator can be found.
            DisconnectedError: it cannot be reached, or did not answer; it will be looked for
                again.
            ClientError: as `NetworkClient.send`.
        """
        node = await self._find()
        try:
            return await self._client.network.send(
                node._replace(id=self._connection_id),
                request,
                version_max=version_max,
                timeout_ms=timeout_ms,
            )
        except DisconnectedError:
            self.moved()
            raise

    def moved(self) -> None:
        """The coordinator is another broker, or gone."""
        self._node_id = None

    def close(self) -> None:
        """Close the connection; what is in flight fails."""
        self._client.network.forget(self._connection_id)

    async def _find(self) -> Node:
        attempts = self._client.attempts(self._client.settings.max_block_ms)
        while True:
            if self._node_id is not None:
                node = self._client.cluster.nodes.get(self._node_id)
                if node is not None:
                    return node
                self._node_id = None
            await self._look_up(attempts)

    async def _look_up(self, attempts: Attempts) -> None:
        found, failure = await self._coordinators.find([self.group_id])
        for node_id in found:
            if node_id in self._client.cluster.nodes:
                self._node_id = node_id
                self._client.network.disconnect(self._connection_id)  # It may be elsewhere now.
                return
            version = self._client.request_update()
            await self._client.wait_for_metadata(version, max(attempts.remaining_ms, 1))
        if failure is not None:
            await attempts.pause(failure)
