"""A group coordinator on a log in memory, in time that the test moves."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import trio
from support.consumer_bench import CoordinatorBench
from support.memory_log import PARTITIONS, MemoryLog
from support.pending import Pending

from odradek.common.errors import ErrorCode, KafkaError
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.classic.messages import (
    JoinAnswer,
    JoinRequest,
    LeavingMember,
    MemberProtocol,
    SyncAnswer,
    SyncRequest,
)
from odradek.coordinator.group.consumer.settings import ConsumerGroupSettings
from odradek.coordinator.group.offset_metadata_manager import CommitRequest, PartitionCommit
from odradek.coordinator.group.offsets import GroupOffsets
from odradek.coordinator.group.settings import GroupSettings

NOW_MS = 1_700_000_000_000
GROUP = "group"

# What a Java consumer that reads `orders` sends: version 0, one topic, no user data.
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff"


class GroupBench(CoordinatorBench):
    """A coordinator of classic groups; every call flushes what it appended."""

    def __init__(self, **settings: int) -> None:
        super().__init__(GroupSettings(**settings), ConsumerGroupSettings())

    def advance_until_answered(self, pending: Pending[JoinAnswer]) -> None:
        """Let time pass up to the moment of an answer, and not beyond."""
        while pending.is_waiting:
            deadline_ms = self.timers.next_deadline_ms()
            assert deadline_ms is not None, "nothing is left that could bring the answer"
            self.advance(max(deadline_ms - self.clock.monotonic_ms(), 0))

    def group(self, group_id: str = GROUP) -> ClassicGroup:
        found = self.coordinator._shards.find(group_id)
        assert found is not None, f"group {group_id} is not known"
        return found

    def state(self, group_id: str = GROUP) -> str:
        return self.coordinator.describe_group(group_id).state

    def join(
        self,
        member_id: str = "",
        *,
        group_id: str = GROUP,
        instance: str | None = None,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        client_id: str = "client",
        version: int = 9,
    ) -> Pending[JoinAnswer]:
        """Send one JoinGroup."""
        pending: Pending[JoinAnswer] = Pending()
        chosen = {"range": SUBSCRIPTION} if protocols is None else protocols
        self.coordinator.join_group(
            JoinRequest(
                group_id,
                member_id,
                instance,
                client_id,
                "/127.0.0.1",
                session_timeout_ms,
                rebalance_timeout_ms,
                protocol_type,
                [MemberProtocol(name, metadata) for name, metadata in chosen.items()],
                requires_known_member_id=version >= 4,
                supports_skipping_assignment=version >= 9,
            ),
            pending,
        )
        self.log.flush()
        return pending

    def new_member(self, **arguments: object) -> tuple[str, Pending[JoinAnswer]]:
        """Join as a client does that has no id yet: once for the id, once with it."""
        first = self.join(**arguments)
        assert first.answer.error is ErrorCode.MEMBER_ID_REQUIRED
        member_id = first.answer.member_id
        return member_id, self.join(member_id, **arguments)

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group_id: str = GROUP,
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Pending[SyncAnswer]:
        """Send one SyncGroup."""
        pending: Pending[SyncAnswer] = Pending()
        self.coordinator.sync_group(
            SyncRequest(
                group_id,
                generation_id,
                member_id,
                instance,
                protocol_type,
                protocol_name,
                assignments or {},
            ),
            pending,
        )
        self.log.flush()
        return pending

    def heartbeat(
        self,
        member_id: str,
        generation_id: int,
        *,
        group_id: str = GROUP,
        instance: str | None = None,
    ) -> ErrorCode:
        return self.coordinator.heartbeat(group_id, generation_id, member_id, instance)

    def leave(self, *members: str | LeavingMember, group_id: str = GROUP) -> list[ErrorCode]:
        named = [LeavingMember(m) if isinstance(m, str) else m for m in members]
        pending: Pending[list[ErrorCode]] = Pending()
        self.coordinator.leave_group(group_id, named, pending)
        self.log.flush()
        return pending.answer

    def commit(
        self,
        *commits: tuple[str, int, int] | PartitionCommit,
        member_id: str = "",
        generation_id: int = -1,
        instance: str | None = None,
        group_id: str = GROUP,
        retention_ms: int = -1,
        unknown_group_error: ErrorCode = ErrorCode.ILLEGAL_GENERATION,
    ) -> Pending[Sequence[ErrorCode]]:
        """Send one OffsetCommit of (topic, partition, offset)."""
        pending: Pending[Sequence[ErrorCode]] = Pending()
        self.coordinator.commit_offsets(
            CommitRequest(
                group_id,
                generation_id,
                member_id,
                instance,
                [PartitionCommit(*commit) for commit in commits],
                retention_ms,
                unknown_group_error,
            ),
            pending,
        )
        self.log.flush()
        return pending

    def offsets(self, group_id: str = GROUP) -> dict[tuple[str, int], int]:
        """What the group committed: (topic, partition) to offset."""
        found: list[GroupOffsets] = []

        def reported(error: ErrorCode, offsets: GroupOffsets) -> None:
            assert not error
            found.append(offsets)

        self.coordinator.fetch_offsets(group_id, reported, require_stable=False)
        return {(topic, partition): p.offset for topic, partition, p in found[0]}

    def stable_group(self, members: int = 1, **arguments: object) -> tuple[int, list[str]]:
        """A stable group; returns its generation and its members, the leader first."""
        joined = [self.new_member(**arguments) for _ in range(members)]
        self.advance_until_answered(joined[0][1])
        leader = joined[0][1].answer.leader
        generation_id = joined[0][1].answer.generation_id
        ids = sorted((member_id for member_id, _ in joined), key=lambda m: m != leader)
        assignments = {member_id: member_id.encode() for member_id in ids}
        synced = [self.sync(m, generation_id, assignments if m == leader else None) for m in ids]
        assert [s.answer.assignment for s in synced] == [m.encode() for m in ids]
        assert self.state() == "Stable"
        return generation_id, ids


@pytest.fixture
def bench() -> GroupBench:
    """A coordinator with Kafka's default settings."""
    return GroupBench()


@pytest.fixture
def make_bench() -> Callable[..., GroupBench]:
    """Make a coordinator with settings of one's own."""
    return GroupBench


@pytest.fixture
def pending() -> type[Pending[object]]:
    """The class of answers that may come later."""
    return Pending


@pytest.fixture
def data() -> Path:
    """Bytes that Apache Kafka 4.3.1 wrote."""
    return Path(__file__).parent / "data"


@pytest.fixture
def memory_log() -> MemoryLog:
    """A log in memory."""
    return MemoryLog()


# -- handlers --------------------------------------------------------------------------------

LISTENER = "PLAINTEXT"
ORDERS_ID = bytes(range(16))
OFFSETS_ID = bytes(range(16, 32))


class HandlerBench:
    """Handlers of the group APIs behind the real dispatcher and codec, spoken to in frames.

    Attributes:
        groups: the coordinator behind them.
        denied: (operation, resource type, name) that nobody may do.
        created: topics that were asked for.
    """

    def __init__(self, groups: GroupBench) -> None:
        from odradek.broker.handlers.registry import REGISTRATIONS
        from odradek.broker.network.connection import Connection
        from odradek.broker.request.admission import Admission
        from odradek.broker.request.dispatch import Dispatcher
        from odradek.metadata.features import Features
        from odradek.metadata.metadata_cache import MetadataCache

        self.groups = groups
        self._nursery: trio.Nursery | None = None
        self.denied: set[tuple[str, str, str]] = set()
        self.created: list[str] = []
        self.coordinators = SimpleNamespace(group=groups.coordinator)
        self.clock = groups.clock
        self.metadata_cache = MetadataCache(1)
        self.topics_in_creation: set[str] = set()
        self.admission = Admission(lambda connection: False)
        self.admission.authorize_by(lambda *what, **_logged: self.authorize(*what))
        self.controller = self
        self.is_active = True
        self.config = BrokerConfig.from_sources({"odradek.await.topic.creation": "true"})
        self.features = Features()
        self.features.take_up({"group.version": 1}, 1)
        self._dispatcher = Dispatcher(self, REGISTRATIONS)
        self._new_connection = lambda: Connection(
            self._dispatcher, LISTENER, "127.0.0.1:40000", 1 << 20, lambda: None
        )
        self.know_topic("orders", ORDERS_ID, 2)
        self.know_topic("__consumer_offsets", OFFSETS_ID, PARTITIONS)

    # What the handlers ask of a broker.

    def authorize(self, request: object, operation: str, kind: str, name: str) -> bool:
        return (operation, kind, name) not in self.denied

    def start_task(self, function: Callable[..., object], *arguments: object) -> None:
        """Run a task to its end, and what it starts."""

        async def run() -> None:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(function, *arguments)
            self._nursery = None

        if self._nursery is None:
            trio.run(run)
        else:
            self._nursery.start_soon(function, *arguments)

    async def ensure_topics(self, names: Sequence[str]) -> dict[str, KafkaError]:
        for name in names:
            self.created.append(name)
            self.know_topic(name, OFFSETS_ID, PARTITIONS)
        return {}

    # What the tests do.

    def know_topic(self, name: str, topic_id: bytes, partitions: int, leader: int = 1) -> None:
        from odradek.common.live_broker import EndPoint, LiveBroker
        from odradek.common.partition_state import PartitionState
        from odradek.metadata.metadata_cache import MetadataUpdate

        broker = LiveBroker(1, (EndPoint(LISTENER, "broker.example", 9092, "PLAINTEXT"),), None)
        states = [
            PartitionState(name, topic_id, index, 1, leader, 0, (1,), 0, (1,))
            for index in range(partitions)
        ]
        self.metadata_cache.update_metadata(MetadataUpdate(1, 1, [broker], states))

    def forget_topics(self) -> None:
        from odradek.metadata.metadata_cache import MetadataCache

        self.metadata_cache = MetadataCache(1)

    def send(self, request: object, version: int, client_id: str = "client") -> Reply:
        """Send one request over a connection of its own."""
        from odradek.protocol import messages

        name = type(request).__qualname__.split(".")[0]
        message = getattr(messages, name)
        header = struct.pack(">hhih", message.api_key, version, 77, len(client_id))
        header += client_id.encode()
        if version in message.flexible:
            header += b"\x00"
        body = b"".join(bytes(part) for part in message.encoder(version)(request))
        connection = self._new_connection()
        connection.process([memoryview(bytearray(header + body))])
        assert not connection.is_closing
        self.groups.log.flush()
        answer = getattr(messages, name.removesuffix("Request") + "Response")
        return Reply(connection, answer, version)


class Reply:
    """The answer to a request, once there is one."""

    def __init__(self, connection: object, message: object, version: int) -> None:
        self._connection = connection
        self._message = message
        self._version = version

    @property
    def is_waiting(self) -> bool:
        return not self._connection.output

    @property
    def response(self) -> object:
        """The decoded response; all of its frame is used up."""
        from odradek.protocol.headers import response_header_version

        assert not self.is_waiting, "not answered yet"
        frame = b"".join(bytes(part) for part in self._connection.output)
        size, correlation_id = struct.unpack_from(">ii", frame)
        assert (size, correlation_id) == (len(frame) - 4, 77)
        start = 8 + response_header_version(self._message.api_key, self._version)
        response, end = self._message.decoder(self._version)(frame, start)
        assert end == len(frame)
        return response


@pytest.fixture
def handlers(bench: GroupBench) -> HandlerBench:
    """The handlers in front of `bench`; topic `orders` has two partitions."""
    return HandlerBench(bench)
