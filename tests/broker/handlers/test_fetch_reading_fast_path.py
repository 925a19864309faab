"""Fetches that go on reading one partition: answered as by the handler, in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.fetch_history import (
    History,
    counters,
    history_of,
    limits,
    sent,
    session_id,
    without_session,
)

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import request_header
from odradek.protocol.records import build_batch
from odradek.storage.log.append_origin import AppendOrigin

if TYPE_CHECKING:
    from conftest import Bench, Client

STEPS = 120
FIRST_VERSION_WITH_TOPIC_IDS = 13
VERSIONS = range(7, 19)
WHERE = TopicPartition("t", 0)
BATCH = build_batch([(None, b"v" * 100, 1_700_000_000_000, [])])
Fetch = messages.FetchRequest


def fast_path_of(client: Client, version: int) -> Any:
    return client.connection.memos.get(ApiKey.FETCH << 16 | version)


COMMON = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0}


def at(offset: int, partition: int = 0) -> Any:
    """What asks for a partition."""
    return Fetch.FetchPartition(
        partition=partition,
        fetch_offset=offset,
        current_leader_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1 << 20,
    )


async def reader_of_ten_records(bench: Bench, *, in_session: bool) -> Reader:
    """A reader for whom a fast path has been learnt."""
    history = await history_of(bench, 0)
    for _ in range(10):
        assert history.append(WHERE, BATCH)
    reader = Reader(bench, bench.client, 17)
    if in_session:
        reader.open_session({WHERE: at(0)})
    for offset in range(4):
        reader.ask(WHERE, at(offset), COMMON)
        assert reader.answer()
    assert reader.taken == 3
    return reader


class Reader:
    """A client that reads one partition at a time, in a session or without one."""

    def __init__(self, bench: Bench, client: Client, version: int) -> None:
        self.client = client
        self._bench = bench
        self._version = version
        self._session = 0
        self._epoch = -1
        self.taken = 0

    def open_session(self, wishes: dict[TopicPartition, Any]) -> None:
        request = Fetch(
            session_epoch=0,
            max_wait_ms=0,
            topics=[topic for each in wishes.items() for topic in self._topics(*each)],
        )
        self.client.send(request, self._version)
        self._session = session_id(sent(self.client), self._version)
        self._epoch = 0

    def request(self, where: TopicPartition, wish: Any, common: dict[str, Any]) -> Any:
        """The next one."""
        if self._session:
            self._epoch += 1
        return Fetch(
            session_id=self._session,
            session_epoch=self._epoch,
            topics=self._topics(where, wish),
            **common,
        )

    def ask(self, where: TopicPartition, wish: Any, common: dict[str, Any]) -> Any:
        """Send a request; returns what the broker counted for it."""
        request = self.request(where, wish, common)
        fast_path = fast_path_of(self.client, self._version)
        instant = fast_path is not None and fast_path.route.times.sub_millisecond_count
        before = counters(self._bench)
        self.client.send(request, self._version)
        if fast_path is not None:
            self.taken += fast_path.route.times.sub_millisecond_count - instant
        return counters(self._bench) - before

    def answer(self) -> bytes:
        """What has come, without the session's number."""
        return without_session(sent(self.client), self._version)

    def _topics(self, where: TopicPartition, wish: Any) -> list[Any]:
        name: dict[str, Any] = {"topic": where.topic}
        if self._version >= FIRST_VERSION_WITH_TOPIC_IDS:
            name = {"topic_id": self._bench.broker.metadata_cache.topic_id(where.topic)}
        return [Fetch.FetchTopic(partitions=[wish], **name)]


@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
async def test_the_fast_path_answers_and_counts_as_the_general_one(
    bench: Bench, version: int, in_session: bool
) -> None:
    history = await history_of(bench, version)
    chance = history.chance
    short = Reader(bench, bench.client, version)
    general = Reader(bench, bench.another_client("test"), version)
    read = [WHERE, TopicPartition("t", 1)][: 1 + version % 2]
    wishes = {where: wish_of(history, where) for where in read}
    if in_session:
        short.open_session(wishes)
        general.open_session(wishes)
    common = limits(chance)
    for _ in range(STEPS):
        for _ in range(chance.randrange(3)):
            happen(history)
            assert short.answer() == general.answer()
        if short.client.connection.is_parked:
            assert general.client.connection.is_parked
            continue
        if chance.random() < 0.05:
            common = limits(chance)
        where = chance.choice(read) if chance.random() < 0.3 else WHERE
        if where is not WHERE:
            wishes[where] = history.wish(where)
        elif chance.random() < 0.8:
            wishes[where].fetch_offset = chance.randrange(end_of(history, where) + 1)
        else:
            wishes[where] = wish_of(history, where)
        general.client.connection.memos.clear()
        counted = [reader.ask(where, wishes[where], common) for reader in (short, general)]
        assert short.answer() == general.answer()
        assert counted[0] == counted[1]
    assert short.taken
    assert not general.taken


def happen(history: History) -> None:
    """Something, and often to the partitions that are read."""
    if history.chance.random() < 0.5:
        history.produce(WHERE)
        history.bench.broker.server.finish_outside_work()
    else:
        history.step()


def end_of(history: History, where: TopicPartition) -> int:
    partition = history.manager.get_partition(where)
    return 0 if partition is None else partition.high_watermark


def wish_of(history: History, where: TopicPartition) -> Any:
    wish = history.wish(where)
    wish.fetch_offset = history.chance.randrange(end_of(history, where) + 1)
    return wish


async def test_a_session_that_is_used_in_the_wrong_way_is_refused(bench: Bench) -> None:
    reader = await reader_of_ten_records(bench, in_session=True)
    client = reader.client
    request = reader.request(WHERE, at(4), COMMON)
    assert (await client.call(request, 17)).responses
    client.connection.note_sent()
    assert (
        await client.call(request, 17)
    ).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH  # its epoch has passed
    bench.broker.fetch_sessions.close(request.session_id)
    request.session_epoch += 1
    assert (await client.call(request, 17)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_it_sees_what_was_produced_before_it_in_the_same_pass(bench: Bench) -> None:
    reader = await reader_of_ten_records(bench, in_session=False)
    connection = reader.client.connection
    produce = messages.ProduceRequest
    data = produce.PartitionProduceData(index=0, records=memoryview(BATCH))
    topic_id = bench.broker.metadata_cache.topic_id("t")
    topic = produce.TopicProduceData(topic_id=topic_id, partition_data=[data])
    appended = produce(acks=1, timeout_ms=1000, topic_data=[topic])
    connection.process(
        [
            framed(appended, 13, 101),
            framed(reader.request(WHERE, at(10), COMMON), 17, 102),
            framed(reader.request(WHERE, at(0), COMMON), 17, 103),
        ]
    )
    bench.broker.server.finish_outside_work()
    answers = sent(reader.client)
    numbers, sizes = [], []
    while answers:
        size = 4 + int.from_bytes(answers[:4], "big")
        numbers.append(int.from_bytes(answers[4:8], "big"))
        sizes.append(size)
        answers = answers[size:]
    assert numbers == [101, 102, 103]
    assert sizes[1] > len(BATCH)
    assert sizes[2] > 11 * len(BATCH)


def framed(request: Any, version: int, number: int) -> memoryview:
    schema = type(request)
    header = request_header(schema.api_key, version, number, "test")
    return memoryview(bytearray(b"".join([header, *map(bytes, schema.encoder(version)(request))])))


async def test_who_turns_to_another_partition_has_that_learnt(bench: Bench) -> None:
    reader = await reader_of_ten_records(bench, in_session=False)
    other = TopicPartition("t", 1)
    reader.ask(other, at(0, 1), COMMON)
    assert reader.taken == 3
    assert reader.answer()
    manager = bench.broker.replica_manager
    manager.append_records(
        timeout_ms=1000,
        required_acks=1,
        internal_topics_allowed=False,
        origin=AppendOrigin.CLIENT,
        entries={other: memoryview(bytearray(BATCH))},
        on_complete=lambda outcome: None,
    )
    manager.flush()
    reader.ask(other, at(0, 1), COMMON)
    assert reader.taken == 4
    assert len(reader.answer()) > len(BATCH)


async def test_hooks_see_every_fetch(bench: Bench) -> None:
    reader = await reader_of_ten_records(bench, in_session=False)
    seen: list[Any] = []
    bench.broker.dispatcher.use_hooks(on_request=lambda request: seen.append(request.api_key))
    reader.ask(WHERE, at(4), COMMON)
    assert seen == [ApiKey.FETCH]
    assert reader.answer()


async def test_who_may_be_sent_to_another_replica_is_answered_by_the_handler(bench: Bench) -> None:
    reader = await reader_of_ten_records(bench, in_session=False)
    online = bench.broker.replica_manager.partitions
    online.select_replica = lambda partition, params, offset: 7
    bench.broker.admission.invalidate()  # as at the start, when it is chosen
    reader.ask(WHERE, at(4), COMMON)
    assert reader.taken == 3
    assert len(reader.answer()) < len(BATCH)  # no records, but the name of that replica
