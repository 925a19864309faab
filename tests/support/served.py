"""Requests as bytes through a real dispatcher and connection, to handlers that reach into a
broker made of the parts under test only."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from odradek.broker.handlers.registry import REGISTRATIONS
from odradek.broker.network.connection import Connection
from odradek.broker.request.admission import Admission
from odradek.broker.request.dispatch import Dispatcher
from odradek.broker.request.quotas.quota_table import QuotaTable
from odradek.broker.request.requests import Request
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.controller.controller import Controller
from odradek.metadata.metadata_cache import MetadataCache
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import read_response_header, request_header
from odradek.protocol.messages import request_message, response_message

from .cluster import Cluster

CLUSTER_ID = "1NRULGn7SR6xyey95Oy-1A"


class ServedBroker:
    """What handlers of topics and settings reach for.

    `denied` holds (operation, resource type, resource name) that nobody may; None for the
    name means any.
    """

    def __init__(self, cluster: Cluster, controller: Controller, nursery: trio.Nursery) -> None:
        self.broker_id = controller.broker_id
        self.cluster_id = CLUSTER_ID
        self.config = cluster.config
        self.clock = cluster.clock
        self.controller = controller
        self.metadata_cache: MetadataCache = cluster.channel.cache
        self.topics_in_creation: set[str] = set()
        self.admission = Admission(lambda connection: False)
        self.denied: set[tuple[str, str, str | None]] = set()
        self.admission.authorize_by(lambda *what, **_logged: self.authorize(*what))
        self.quotas = QuotaTable(
            DynamicConfig(self.config), self.clock, lambda stage: None, lambda rates: None
        )
        self._nursery = nursery

    def authorize(
        self, request: Request[object], operation: str, resource_type: str, resource_name: str
    ) -> bool:
        return not self.denied & {
            (operation, resource_type, resource_name),
            (operation, resource_type, None),
        }

    def start_task(self, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        self._nursery.start_soon(function, *arguments)


class Client:
    """One connection to a served broker."""

    def __init__(self, broker: ServedBroker, listener_name: str = "PLAINTEXT") -> None:
        self.broker = broker
        self._answered = trio.Event()
        self._correlation_ids = itertools.count(1)
        self._connection = Connection(
            Dispatcher(broker, REGISTRATIONS),  # type: ignore[arg-type]  # the parts it needs
            listener_name,
            "127.0.0.1:50000",
            1 << 20,
            lambda: self._answered.set(),
        )

    async def call(self, api_key: ApiKey, api_version: int, /, **fields: Any) -> Any:
        """Send one request and return the decoded answer."""
        self.send(api_key, api_version, **fields)
        with trio.fail_after(60):
            await self._answered.wait()
        return self.receive(api_key, api_version)

    def send(self, api_key: ApiKey, api_version: int, /, **fields: Any) -> None:
        """Send one request; what a plain handler answers is there when this returns."""
        message = request_message(api_key)
        header = request_header(api_key, api_version, next(self._correlation_ids), "test")
        body = message.encoder(api_version)(message(**fields))
        self._answered = trio.Event()
        self._connection.process([memoryview(b"".join([header, *map(bytes, body)]))])

    @property
    def has_answer(self) -> bool:
        """Whether the answer to the last request is there."""
        return self._answered.is_set()

    def receive(self, api_key: ApiKey, api_version: int) -> Any:
        """The answer that has come, decoded to its last byte."""
        answer = b"".join(map(bytes, self._connection.output))
        self._connection.output.clear()
        (size,) = struct.unpack_from(">i", answer)
        assert size == len(answer) - 4
        frame = answer[4:]
        _, position = read_response_header(frame, api_key, api_version)
        response, end = response_message(api_key).decoder(api_version)(frame, position)
        assert end == len(frame)
        return response
