"""A whole broker without sockets: requests go in as frames, answers come out as messages."""

import random
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from odradek.broker.broker import Broker
from odradek.broker.network.connection import Connection
from odradek.broker.request.authorization import Authorize
from odradek.broker.start import make_broker
from odradek.common.topic_partition import TopicPartition
from odradek.config.broker_config import BrokerConfig
from odradek.controller.topics.planning import TopicCreation
from odradek.metadata.metadata_waiting import partitions_are_led, wait_for_metadata
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import request_header, response_header_version


class Client:
    """One connection to the broker under test."""

    def __init__(self, broker: Broker, client_id: str) -> None:
        self.broker = broker
        self.client_id = client_id
        self._correlation_id = 0
        self._answered = trio.Event()
        # There is no transport that would go on with a connection that has waited for an import.
        broker.dispatcher.imports_beside = False
        self.connection = Connection(
            broker.dispatcher, "PLAINTEXT", "127.0.0.1:5", 1 << 24, lambda: self._answered.set()
        )

    def send(self, message: Any, version: int) -> None:
        """Hand the request to the broker, as one pass of a transport would."""
        schema = type(message)
        body = b"".join(bytes(part) for part in schema.encoder(version)(message))
        self.send_encoded(body, version, schema.api_key)

    def send_encoded(self, body: bytes, version: int, api_key: int = ApiKey.FETCH) -> None:
        """The same of a request that is encoded already."""
        self._correlation_id += 1
        header = request_header(api_key, version, self._correlation_id, self.client_id)
        self.connection.process([memoryview(bytearray(header + body))])
        self.broker.server.finish_outside_work()

    async def woken(self) -> None:
        """Wait until the connection has something to send, or may go on."""
        self._answered = trio.Event()
        await self._answered.wait()

    async def receive(self, api_key: int, version: int) -> Any:
        """Wait for the next answer."""
        with trio.fail_after(60):
            while not self.connection.output:
                self._answered = trio.Event()
                await self._answered.wait()
        data = b"".join(
            part.read() if hasattr(part, "read") else bytes(part) for part in self.connection.output
        )
        self.connection.output.clear()
        size, correlation_id = struct.unpack_from(">ii", data)
        assert (size, correlation_id) == (len(data) - 4, self._correlation_id)
        body = data[9 if response_header_version(api_key, version) else 8 :]
        answer, end = messages.response_message(api_key).decoder(version)(body, 0)
        assert end == len(body)
        return answer

    async def call(self, message: Any, version: int) -> Any:
        """Send a request and wait for its answer."""
        self.send(message, version)
        return await self.receive(type(message).api_key, version)


class Bench:
    """A running broker with one client."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.client = Client(broker, "test")

    def another_client(self, client_id: str = "another") -> Client:
        """One more connection."""
        return Client(self.broker, client_id)

    async def create_topic(self, name: str, partitions: int = 1, **config: str) -> bytes:
        """Make a topic; returns its id."""
        configs = tuple((key.replace("_", "."), value) for key, value in config.items())
        (created,) = await self.broker.controller.create_topics(
            [TopicCreation(name, partitions, 1, configs=configs)]
        )
        assert created.error is None, created.error
        shown = partitions_are_led([(name, partitions)])
        assert await wait_for_metadata(self.broker.metadata_cache, shown, 60_000)
        topic_id = self.broker.metadata_cache.topic_id(name)
        assert topic_id is not None
        return topic_id

    def authorize_by(self, authorize: Authorize) -> None:
        """Have this decide from now on what principals may do."""
        self.broker.admission.authorize_by(lambda *what, **_logged: authorize(*what))

    def log_end_offset(self, name: str, partition: int = 0) -> int:
        """The partition's log end."""
        found = self.broker.replica_manager.partition_or_error(TopicPartition(name, partition))
        return found.log_end_offset


@pytest.fixture
def log_dirs(tmp_path: Path) -> str:
    """The broker's log directories; a module may have others."""
    return str(tmp_path / "data")


@pytest.fixture
def settings() -> dict[str, str]:
    """Further settings of the broker; a module may have some."""
    return {}


@pytest.fixture
async def bench(
    log_dirs: str, settings: dict[str, str], nursery: trio.Nursery
) -> AsyncIterator[Bench]:
    config = BrokerConfig.from_sources(
        {},
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": log_dirs,
            "odradek.await.topic.creation": "true",
            **settings,
        },
    )
    broker = await make_broker(config)
    broker.rng.seed(random.Random(5).random())
    ready = trio.Event()
    nursery.start_soon(broker.run, lambda advertised: ready.set())
    await ready.wait()
    yield Bench(broker)
    nursery.cancel_scope.cancel()
