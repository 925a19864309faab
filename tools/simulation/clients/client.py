"""A client's machine: its connections to brokers, and what it knows of the cluster."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ....broker.handlers.registry import REGISTRATIONS
from ....client.errors import ClientError, ConnectError
from ....client.network.api_version_ranges import ApiVersionRanges
from ....client.settings import ClientSettings
from ....common.errors import ErrorCode
from ....common.topic_partition import TopicPartition
from ....protocol import messages
from ..checkers.log_checker import LogChecker
from ..checkers.store_checker import StoreChecker
from ..kernel import START_MS, Kernel, Process
from ..mix import Mix
from ..network import Network, SimulatedConnection

if TYPE_CHECKING:
    from ....protocol.codec.message import Message

REQUEST_TIMEOUT_MS = 5_000
PAUSE_MS_MAX = 400
"""How long clients wait before they try something again."""
QUIET_US = 200_000
METADATA_MAX_AGE_US = 2_000_000
"""So long who only reads goes by what it was told of leaders, unless a request fails."""
EARLIEST = -2
"""Of ListOffsets: the log's start."""
SERVED = ApiVersionRanges({key: each.versions for key, each in REGISTRATIONS.items()})


class Leader(NamedTuple):
    """Who leads a partition, as a broker said."""

    topic_id: bytes
    broker_id: int
    epoch: int


class SimulatedCluster(Protocol):
    """What clients see of the simulation.

    Attributes:
        is_peace: whether no fault happens any more.
        is_quiet: whether clients are to do nothing.
        pace: how slow clients are.
        broker_ids: all there are.
    """

    kernel: Kernel
    network: Network
    random: Random
    mix: Mix
    store_checker: StoreChecker
    log_checker: LogChecker
    is_peace: bool
    is_quiet: bool
    broker_ids: tuple[int, ...]
    pace: float

    def trace(self, text: str) -> None:
        """Add a line to the trace of the run."""


class SimulatedClient(ABC):
    """One client.

    Args:
        cluster: the cluster.
        name: its host's name, and its client id.

    Attributes:
        leaders: as it was told last.
        partition_counts: how many partitions each topic has, led or not.
    """

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.random = cluster.random
        self.process = Process(name)
        self.leaders: dict[TopicPartition, Leader] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.partition_counts: dict[str, int] = {}
        self._settings = ClientSettings(client_id=name, request_timeout_ms=REQUEST_TIMEOUT_MS)
        self._connections: dict[int, SimulatedConnection] = {}
        self._refreshed_us: float = -math.inf

    def start(self) -> None:
        """Begin."""
        self.cluster.kernel.spawn(self.process, self._run())

    async def _run(self) -> None:
        while True:
            try:
                await self.act()
            except ClientError:
                self.distrust()
            await self.pause()

    @abstractmethod
    async def act(self) -> None:
        """Do one thing. Raises ClientError, and it begins anew."""

    async def pause(self, ms_max: int = PAUSE_MS_MAX) -> None:
        """Wait a little."""
        cluster = self.cluster
        await cluster.kernel.sleep_us(int(self.random.random() * ms_max * 1000 * cluster.pace))
        while cluster.is_quiet:
            await cluster.kernel.sleep_us(QUIET_US)

    @property
    def now_ms(self) -> int:
        """By the client's clock, which is right."""
        return START_MS + self.cluster.kernel.now_us // 1000

    # -- requests ------------------------------------------------------------------------------

    async def request(
        self,
        broker_id: int,
        message: Message,
        *,
        version: int | None = None,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> Any:
        """A broker's answer. Raises ClientError."""
        connection = self._connections.get(broker_id)
        if connection is None or connection.failure is not None:
            connection = await self._connect(broker_id)
        return await connection.request(message, version=version, timeout_ms=timeout_ms)

    async def _connect(self, broker_id: int) -> SimulatedConnection:
        kernel, host = self.cluster.kernel, f"broker-{broker_id}"
        connection = SimulatedConnection(kernel, self._settings, host)
        connection.versions = SERVED
        connection.wire = await self.cluster.network.connect(
            self.name, self.process, host, connection
        )
        self._connections[broker_id] = connection
        return connection

    def disconnect(self) -> None:
        """Close all connections."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    def any_broker(self) -> int:
        """One to begin with."""
        return self.random.choice(self.cluster.broker_ids)

    def distrust(self) -> None:
        """Something went wrong: what is known of leaders may be old."""
        self._refreshed_us = -math.inf

    async def refresh(self, max_age_us: int = 0) -> None:
        """Ask a broker what there is, if the last answer is older. Raises ClientError."""
        now_us = self.cluster.kernel.now_us
        if now_us - self._refreshed_us < max_age_us:
            return
        request = messages.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        answer = await self.request(self.any_broker(), request)
        leaders = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                name = TopicPartition(topic.name, partition.partition_index)
                said = Leader(topic.topic_id, partition.leader_id, partition.leader_epoch)
                known = self.leaders.get(name)
                if known and known.topic_id == said.topic_id and known.epoch > said.epoch:
                    leaders[name] = known  # that broker has yet to hear of it (KIP-320)
                elif said.broker_id >= 0:
                    leaders[name] = said
        self.leaders = leaders
        self.topic_ids = {topic.name: topic.topic_id for topic in answer.topics}
        self.partition_counts = {topic.name: len(topic.partitions) for topic in answer.topics}
        self._refreshed_us = now_us

    def led(self, is_one: Callable[[str], bool] = lambda name: name[:2] != "__") -> TopicPartition:
        """A partition of the topics of a kind that has a leader. Raises ClientError."""
        known = sorted(each for each in self.leaders if is_one(each.topic))
        if not known:
            raise ConnectError("no partition is known")
        return self.random.choice(known)

    async def log_start(self, partition: TopicPartition) -> int:
        """The first offset that can be read of a partition. Raises ClientError."""
        message = messages.ListOffsetsRequest
        earliest = message.ListOffsetsPartition(
            partition_index=partition.partition, timestamp=EARLIEST
        )
        topic = message.ListOffsetsTopic(name=partition.topic, partitions=[earliest])
        request = message(replica_id=-1, topics=[topic])
        answer = await self.request(self.leaders[partition].broker_id, request)
        (found,) = answer.topics[0].partitions
        if found.error_code:
            raise ConnectError(f"no log start: {ErrorCode(found.error_code).name}")
        return int(found.offset)

    async def coordinator_of(self, kind: int, key: str) -> int:
        """The broker that coordinates a group or a transactional id. Raises ClientError."""
        request = messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        answer = await self.request(self.any_broker(), request)
        (found,) = answer.coordinators
        if found.error_code:
            raise ConnectError(f"no coordinator: {ErrorCode(found.error_code).name}")
        return int(found.node_id)
