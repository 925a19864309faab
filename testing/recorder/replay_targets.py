"""To which broker of another cluster a recorded connection leads: the one of the same id."""

from __future__ import annotations

from typing import Any

import trio

from ...protocol import decode_body, encode_body
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError
from ...protocol.headers import read_response_header, request_header
from ...protocol.messages import MetadataRequest
from .addresses import Address, places_in
from .replayed_connection import ReplayedConnection, ReplayError

METADATA_VERSION = 5
"""Brokers have it since Kafka 1.0."""

METADATA_SECONDS_MAX = 30.0
CLIENT_ID = "odradek-replay"


class ReplayTargets:
    """Brokers of two clusters, by their ids.

    Args:
        bootstrap: a broker of the cluster that is replayed to.
    """

    def __init__(self, bootstrap: Address) -> None:
        self._bootstrap = bootstrap
        self._recorded: dict[Address, int] = {}
        self._targets: dict[int, Address] = {}

    async def refresh(self) -> None:
        """Ask the cluster for its brokers.

        Raises:
            ReplayError: it does not answer.
        """
        connection = await ReplayedConnection.open(self._bootstrap)
        frame = request_header(ApiKey.METADATA, METADATA_VERSION, 1, CLIENT_ID)
        frame += encode_body(MetadataRequest(topics=[]), METADATA_VERSION)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(connection.run)
                await connection.send(frame)
                answer = await connection.answer(1, METADATA_SECONDS_MAX)
                nursery.cancel_scope.cancel()
        finally:
            await connection.close()
        if answer is None:
            raise ReplayError(f"what listens at {self._bootstrap} does not answer as Kafka does")
        try:
            _, position = read_response_header(answer, ApiKey.METADATA, METADATA_VERSION)
            body = answer[position:]
            metadata = decode_body(ApiKey.METADATA, METADATA_VERSION, body, response=True)
        except ProtocolError as error:
            raise ReplayError(
                f"what listens at {self._bootstrap} does not answer as Kafka does: {error}"
            ) from error
        self._targets = {
            broker.node_id: Address(broker.host, broker.port) for broker in metadata.brokers
        }

    def localise(self, message: Any, api_key: int, version: int) -> None:
        """Put the addresses of this cluster into a recorded answer, and note the ids of theirs.

        Args:
            message: the answer; changed in place.
            api_key: of the request that it answers.
            version: of that request.
        """
        for place in places_in(message, api_key, version):
            node_id = getattr(place, "node_id", getattr(place, "broker_id", None))
            if isinstance(node_id, int):
                self._recorded[Address(place.host, place.port)] = node_id
                if node_id in self._targets:
                    place.host, place.port = self._targets[node_id]

    def target_of(self, recorded: Address) -> Address:
        """Where the requests to a recorded broker go."""
        node_id = self._recorded.get(recorded)
        if node_id is None:
            return self._bootstrap
        return self._targets.get(node_id, self._bootstrap)
