"""Fetchers at work: over connections that break, with leaders that are silent or talk nonsense."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from support.scripted_cluster import SILENCE, Received, ScriptedCluster, Silence
from support.scripted_leader import FOLLOWER, LEADER, TOPIC_ID, Replica, ScriptedLeader, tp

from odradek.client.errors import ConnectError
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.trio_clock import TrioClock
from odradek.client.settings import ClientSettings
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.replication.fetcher.fetch_state import InitialFetchState
from odradek.replication.fetcher.leader_endpoint import LeaderEndpoint
from odradek.replication.fetcher.manager import FetcherManager
from odradek.replication.fetcher.plans import FetchPlan, PlannedPartition, RequestedEpoch
from odradek.replication.fetcher.settings import NEW_PARTITION_WAIT_MS, FetcherSettings
from odradek.replication.fetcher.task import FetcherTasks
from odradek.replication.fetcher.truncation import Truncation
from odradek.replication.partition.partition import Partition
from odradek.storage import TopicPartition

FIRST_BACKOFF_SECONDS = 0.05
T0, T1, T2, T3 = ALL = tp(0), tp(1), tp(2), tp(3)


class WireLeader:
    """A scripted leader behind a connection; its fetches wait for news as a broker's do."""

    def __init__(self, leader: ScriptedLeader) -> None:
        self.leader = leader
        self.requested: dict[TopicPartition, PlannedPartition] = {}
        self.sessions = 0
        self._news = trio.Event()

    def append(self, topic_partition: TopicPartition, *values: bytes) -> None:
        """Append to a log, and answer who waits."""
        self.leader.replicas[topic_partition].lead(self.leader.epoch, *values)
        self._news.set()

    async def fetch(self, received: Received) -> messages.FetchResponse:
        body = received.body
        if body.session_epoch == 0:
            self.sessions += 1
            self.requested = {}
        for topic in body.forgotten_topics_data:
            for index in topic.partitions:
                self.requested.pop(tp(index), None)
        for topic in body.topics:
            for each in topic.partitions:
                self.requested[tp(each.partition)] = PlannedPartition(
                    topic.topic_id,
                    each.fetch_offset,
                    each.log_start_offset,
                    each.partition_max_bytes,
                    each.current_leader_epoch,
                    each.last_fetched_epoch,
                )
        plan = FetchPlan(self.sessions, 0, {}, (), (), self.requested, {})
        answer = self.leader.fetch(plan)
        if self.requested and not any(len(each.records) for each in answer.partitions.values()):
            self._news = trio.Event()
            with trio.move_on_after(body.max_wait_ms / 1000):
                await self._news.wait()
            answer = self.leader.fetch(plan)
        make = messages.FetchResponse
        partitions = [
            make.PartitionData(
                partition_index=each.partition,
                error_code=data.error,
                high_watermark=data.high_watermark,
                log_start_offset=data.log_start_offset,
                records=data.records,
            )
            for each, data in answer.partitions.items()
        ]
        topics = [make.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=partitions)]
        return make(session_id=self.sessions, responses=topics if partitions else [])

    def epochs(self, received: Received) -> messages.OffsetForLeaderEpochResponse:
        make = messages.OffsetForLeaderEpochResponse
        answer = make()
        for topic in received.body.topics:
            found = []
            for each in topic.partitions:
                requested = RequestedEpoch(each.current_leader_epoch, each.leader_epoch)
                error, epoch, end = self.leader.epoch_end(tp(each.partition), requested)
                found.append(
                    make.EpochEndOffset(
                        error_code=error,
                        partition=each.partition,
                        leader_epoch=epoch,
                        end_offset=end,
                    )
                )
            answer.topics.append(
                make.OffsetForLeaderTopicResult(topic=topic.topic, partitions=found)
            )
        return answer

    def offsets(self, received: Received) -> messages.ListOffsetsResponse:
        make = messages.ListOffsetsResponse
        answer = make()
        for topic in received.body.topics:
            found = []
            for each in topic.partitions:
                error, offset = self.leader.listed(
                    tp(each.partition_index), each.current_leader_epoch, each.timestamp
                )
                found.append(
                    make.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, error_code=error, offset=offset
                    )
                )
            answer.topics.append(make.ListOffsetsTopicResponse(name=topic.name, partitions=found))
        return answer


class Bench:
    """A leader of t-0 to t-3 behind a network, and the fetchers of a follower."""

    def __init__(self, folder: Path, nursery: trio.Nursery, truncation: Truncation) -> None:
        self.network = ScriptedCluster(nursery, LEADER)
        self.leading = {each: Replica(folder / "leader", each) for each in ALL}
        self.following = {each: Replica(folder / "follower", each) for each in ALL}
        self.wire = WireLeader(ScriptedLeader(self.leading, 0))
        self.broker = self.network.brokers[LEADER]
        self.broker.answers = {
            ApiKey.FETCH: self.wire.fetch,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self.wire.epochs,
            ApiKey.LIST_OFFSETS: self.wire.offsets,
        }
        self.client_ids: list[str] = []
        self.faults = 0
        self.follow_while_connecting: tuple[TopicPartition, ...] = ()
        self._appended = trio.Event()
        settings = FetcherSettings(FOLLOWER, truncation=truncation)
        self.manager = FetcherManager(
            settings,
            1,
            self.partition_of,
            FetcherTasks(nursery.start_soon, self.open_link, LeaderEndpoint(settings), TrioClock()),
            on_appended=self.on_appended,
        )

    def partition_of(self, topic_partition: TopicPartition) -> Partition:
        return self.following[topic_partition].partition

    def on_appended(self, changed: Sequence[TopicPartition]) -> None:
        self._appended.set()
        self._appended = trio.Event()
        if self.faults:
            self.faults -= 1
            raise RuntimeError("the test's fault")

    @asynccontextmanager
    async def open_link(
        self, broker_id: int, versions: Mapping[int, int], client_id: str
    ) -> AsyncIterator[Connection]:
        self.client_ids.append(client_id)
        self.follow(*self.follow_while_connecting)
        self.follow_while_connecting = ()
        broker = self.network.brokers.get(broker_id)
        if broker is None:
            raise ConnectError(f"broker {broker_id} is not alive, as far as is known")
        async with open_connection(
            broker.host,
            broker.port,
            ClientSettings(client_id=client_id),
            connect=self.network.connect,
            fixed_versions=dict(versions),
        ) as connection:
            yield connection

    def follow(self, *topic_partitions: TopicPartition, epoch: int = 0, offset: int = 0) -> None:
        begin = InitialFetchState(TOPIC_ID, LEADER, epoch, offset)
        self.manager.add_fetchers(dict.fromkeys(topic_partitions, begin))

    async def wait_replicated(self, *topic_partitions: TopicPartition) -> None:
        """Wait until the follower has what the leader has."""
        with trio.fail_after(60):
            while any(
                self.following[each].log.log_end_offset < self.leading[each].log.log_end_offset
                for each in topic_partitions or (T0,)
            ):
                await self._appended.wait()
        for each in topic_partitions or (T0,):
            assert self.following[each].raw == self.leading[each].raw


@pytest.fixture
def bench(tmp_path: Path, nursery: trio.Nursery) -> Bench:
    return Bench(tmp_path, nursery, Truncation.FETCH)


async def test_a_follower_catches_up_and_gets_what_is_appended(
    bench: Bench, autojump_clock
) -> None:
    """Article 004, doWork: over and over, for as long as the fetcher runs."""
    bench.wire.append(T0, b"a", b"b")
    bench.follow(T0)
    await bench.wait_replicated()
    for value in (b"c", b"d"):
        bench.wire.append(T0, value)
        await bench.wait_replicated()
    assert bench.client_ids == [f"broker-{FOLLOWER}-fetcher-0"]
    assert bench.broker.connections == 1
    assert bench.wire.sessions == 1
    assert bench.broker.requests_of(ApiKey.FETCH)[0].replica_state.replica_id == FOLLOWER


async def test_records_come_without_waiting_for_the_end_of_the_wait(
    bench: Bench, autojump_clock
) -> None:
    bench.follow(T0)
    await bench.broker.wait_for_request(ApiKey.FETCH, 2)
    began = trio.current_time()
    bench.wire.append(T0, b"a")
    await bench.wait_replicated()
    assert trio.current_time() == began


async def test_a_partition_that_is_added_is_fetched_at_once(bench: Bench, autojump_clock) -> None:
    bench.wire.append(T0, b"a")
    bench.wire.append(T1, b"a")
    bench.follow(T0)
    await bench.wait_replicated(T0)
    bench.manager.remove_fetchers([T0])
    await bench.broker.wait_for_request(ApiKey.FETCH, 2)
    await trio.sleep(100)  # everything is forgotten, the fetcher asks nothing any more
    count = len(bench.broker.requests_of(ApiKey.FETCH))
    await trio.sleep(100)
    assert len(bench.broker.requests_of(ApiKey.FETCH)) == count
    began = trio.current_time()
    bench.follow(T1)
    await bench.wait_replicated(T1)
    assert trio.current_time() == began


async def test_a_partition_that_is_added_while_it_connects_does_not_wait_either(
    bench: Bench, autojump_clock
) -> None:
    bench.wire.append(T1, b"a")
    bench.follow_while_connecting = (T1,)
    bench.follow(T0)
    began = trio.current_time()
    await bench.wait_replicated(T1)
    assert trio.current_time() == began


async def test_a_fetch_that_opens_a_session_does_not_wait_so_that_none_is_left_behind(
    bench: Bench, autojump_clock
) -> None:
    """Were it abandoned, nobody could close the session, and each would hold all partitions."""
    bench.follow(T0)
    await bench.broker.wait_for_request(ApiKey.FETCH, 2)
    opening, next_one = bench.broker.requests_of(ApiKey.FETCH)[:2]
    assert (opening.session_epoch, opening.max_wait_ms) == (0, 0)
    assert (next_one.session_id, next_one.session_epoch) == (1, 1)
    assert next_one.max_wait_ms > 0


async def test_a_partition_that_is_added_does_not_wait_for_a_fetch_without_news(
    bench: Bench, autojump_clock
) -> None:
    bench.wire.append(T1, b"a")
    bench.follow(T0)
    await trio.sleep(100.1)  # it has just asked
    fetches = len(bench.broker.requests_of(ApiKey.FETCH))
    began = trio.current_time()
    bench.follow(T1)
    await bench.wait_replicated(T1)
    assert trio.current_time() - began == pytest.approx(NEW_PARTITION_WAIT_MS / 1000, abs=0.001)
    bench.wire.append(T0, b"a")
    await bench.wait_replicated(T0)
    assert bench.wire.sessions == 2
    plan = bench.broker.requests_of(ApiKey.FETCH)[fetches]
    assert (plan.session_id, plan.session_epoch) == (1, 0)  # closes the session before


async def test_partitions_that_are_added_one_after_the_other_cost_no_session(
    bench: Bench, autojump_clock
) -> None:
    """Each would be opened with all partitions: so many more for each one that is added."""
    for each in ALL:
        bench.wire.append(each, b"a")
    for each in ALL:
        began = trio.current_time()
        bench.follow(each)
        await bench.wait_replicated(each)
        assert trio.current_time() - began <= 2 * NEW_PARTITION_WAIT_MS / 1000
        await trio.sleep(0.3)
    assert (bench.wire.sessions, bench.broker.connections) == (1, 1)
    await trio.sleep(100)
    assert bench.broker.requests_of(ApiKey.FETCH)[-1].max_wait_ms == 500


async def test_after_a_lost_connection_it_goes_on_with_another(
    bench: Bench, autojump_clock
) -> None:
    bench.follow(T0)
    await bench.broker.wait_for_request(ApiKey.FETCH, 2)
    began = trio.current_time()
    await bench.broker.disconnect()
    bench.wire.append(T0, b"a")
    await bench.wait_replicated()
    assert trio.current_time() - began == pytest.approx(FIRST_BACKOFF_SECONDS, abs=0.01)
    assert (bench.broker.connections, bench.wire.sessions) == (2, 2)


async def test_a_leader_that_cannot_be_reached_is_tried_again(bench: Bench, autojump_clock) -> None:
    bench.network.refusing = {LEADER}
    bench.wire.append(T0, b"a")
    bench.follow(T0)
    await trio.sleep(FIRST_BACKOFF_SECONDS * (1 + 2 + 4 + 0.5))
    assert len(bench.network.attempts) == 4
    bench.network.refusing = set()
    await bench.wait_replicated()


async def test_a_leader_that_is_silent_is_given_up_after_a_while(
    bench: Bench, autojump_clock
) -> None:
    def once(received: Received) -> Silence:
        bench.broker.answers[ApiKey.FETCH] = bench.wire.fetch
        return SILENCE

    bench.broker.answers[ApiKey.FETCH] = once
    bench.wire.append(T0, b"a")
    bench.follow(T0)
    began = trio.current_time()
    await bench.wait_replicated()
    waited = trio.current_time() - began
    assert waited == pytest.approx(30 + FIRST_BACKOFF_SECONDS, abs=0.1)  # replica.socket.timeout.ms


async def test_an_answer_that_is_none_is_a_lost_connection(bench: Bench, autojump_clock) -> None:
    def once(received: Received) -> bytes:
        bench.broker.answers[ApiKey.FETCH] = bench.wire.fetch
        return b"\0\0\0\4nonsense"

    bench.broker.answers[ApiKey.FETCH] = once
    bench.wire.append(T0, b"a")
    bench.follow(T0)
    await bench.wait_replicated()
    assert bench.broker.connections == 2


async def test_a_fault_of_ours_does_not_end_the_fetcher(
    bench: Bench, autojump_clock, caplog: pytest.LogCaptureFixture
) -> None:
    bench.faults = 1
    bench.wire.append(T0, b"a")
    bench.follow(T0)
    await bench.wait_replicated()
    bench.wire.append(T0, b"b")
    await bench.wait_replicated()
    assert "the test's fault" in caplog.text


async def test_a_closed_fetcher_takes_no_answer_any_more(bench: Bench, autojump_clock) -> None:
    bench.follow(T0)
    await bench.broker.wait_for_request(ApiKey.FETCH, 2)
    bench.manager.remove_fetchers([T0])
    bench.manager.shutdown_idle_fetchers()
    bench.wire.append(T0, b"a")
    count = len(bench.broker.requests_of(ApiKey.FETCH))
    await trio.sleep(100)
    assert bench.following[T0].values == []
    assert len(bench.broker.requests_of(ApiKey.FETCH)) == count
    bench.follow(T0)
    await bench.wait_replicated()


async def test_epochs_and_offsets_are_requested_over_the_wire(
    tmp_path: Path, nursery: trio.Nursery, autojump_clock
) -> None:
    bench = Bench(tmp_path, nursery, Truncation.EPOCH_REQUEST)
    bench.wire.append(T0, b"a", b"b")
    bench.leading[T0].replicate_to(bench.following[T0], upto=1)
    bench.wire.leader.epoch = 1
    bench.wire.append(T0, b"c")
    bench.wire.append(T1, *(b"%d" % n for n in range(5)))
    bench.leading[T1].commit(5)
    bench.leading[T1].log.advance_log_start_offset(4)
    bench.follow(T0, epoch=1)
    bench.follow(T1, epoch=1, offset=-1)
    await bench.wait_replicated(T0, T1)
    assert len(bench.broker.requests_of(ApiKey.OFFSET_FOR_LEADER_EPOCH)) == 1
    assert [
        body.topics[0].partitions[0].timestamp
        for body in bench.broker.requests_of(ApiKey.LIST_OFFSETS)
    ] == [-1, -2]
    assert bench.following[T1].values == [b"4"]
