import random

import pytest

from odradek.broker.request.fetch_sessions import (
    EPOCH_MAX,
    EVICTION_MS,
    CachedPartition,
    FetchSessionCache,
    RequestedPartition,
)
from odradek.common.errors import ErrorCode, KafkaError
from odradek.replication.purgatory.delayed_fetch import FetchPurgatory
from odradek.replication.read.fetch import FetchPartitionData
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers


def cache(slots_max: int = 2) -> FetchSessionCache:
    return FetchSessionCache(slots_max, random.Random(1), FetchPurgatory(Timers(), ManualClock()))


def wish(index: int, offset: int = 0) -> RequestedPartition:
    return RequestedPartition(("t", index), offset, 1000, -1, -1, -1)


def data(**changes: object) -> FetchPartitionData:
    good = FetchPartitionData(ErrorCode.NONE, 5, 5, 0)
    return good._replace(**changes)


def code_of(refused: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return refused.value.code


def test_epochs_go_up_by_one_and_another_epoch_is_refused() -> None:
    sessions = cache()
    session = sessions.create(True, 0)
    assert session is not None
    assert sessions.use(session.id, 1, True, 0) is session
    for epoch in (1, 3):
        with pytest.raises(KafkaError) as refused:
            sessions.use(session.id, epoch, True, 0)
        assert code_of(refused) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert sessions.use(session.id, 2, True, 0) is session


def test_the_epoch_after_the_last_is_one() -> None:
    sessions = cache()
    session = sessions.create(True, 0)
    assert session is not None
    session.epoch = EPOCH_MAX
    sessions.use(session.id, EPOCH_MAX, True, 0)
    assert sessions.use(session.id, 1, True, 0) is session


def test_an_unknown_or_closed_session_is_not_found() -> None:
    sessions = cache()
    session = sessions.create(True, 0)
    assert session is not None
    sessions.close(session.id)
    for session_id in (session.id, 12345):
        with pytest.raises(KafkaError) as refused:
            sessions.use(session_id, 1, True, 0)
        assert code_of(refused) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_of_names_cannot_go_on_with_ids() -> None:
    sessions = cache()
    session = sessions.create(False, 0)
    assert session is not None
    with pytest.raises(KafkaError) as refused:
        sessions.use(session.id, 1, True, 0)
    assert code_of(refused) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_cache_gives_way_to_none_but_those_long_unused() -> None:
    sessions = cache(slots_max=2)
    first, second = sessions.create(True, 0), sessions.create(True, 1)
    assert first is not None
    assert second is not None
    assert sessions.create(True, EVICTION_MS - 1) is None
    sessions.use(first.id, 1, True, EVICTION_MS - 1)
    third = sessions.create(True, EVICTION_MS + 1)
    assert third is not None
    assert len(sessions) == 2
    sessions.use(first.id, 2, True, EVICTION_MS + 1)
    with pytest.raises(KafkaError):
        sessions.use(second.id, 1, True, EVICTION_MS + 1)


def test_no_slots_mean_no_sessions() -> None:
    assert cache(slots_max=0).create(True, 0) is None


def test_partitions_are_added_changed_and_forgotten() -> None:
    session = cache().create(True, 0)
    assert session is not None
    session.update([wish(0), wish(1)], [])
    session.update([wish(1, offset=7), wish(2)], [("t", 0), ("t", 9)])
    asked = [cached.requested for cached in session.partitions.values()]
    assert asked == [wish(1, offset=7), wish(2)]


def test_partitions_that_gave_records_come_last_next_time() -> None:
    session = cache().create(True, 0)
    assert session is not None
    session.update([wish(0), wish(1), wish(2)], [])
    session.move_to_end([("t", 0)])
    assert list(session.partitions) == [("t", 1), ("t", 2), ("t", 0)]


def test_only_news_is_reported() -> None:
    cached = CachedPartition(wish(0))
    assert cached.take_news(data())
    assert not cached.take_news(data())
    assert cached.take_news(data(high_watermark=6))
    assert cached.take_news(data(high_watermark=6, log_start_offset=1))
    assert not cached.take_news(data(high_watermark=6, log_start_offset=1))
    assert cached.take_news(data(high_watermark=6, log_start_offset=1, records=b"x"))
    assert cached.take_news(data(high_watermark=6, log_start_offset=1, diverging_epoch=(1, 2)))


def test_an_error_is_reported_each_time_and_so_is_its_end() -> None:
    cached = CachedPartition(wish(0))
    cached.take_news(data())
    broken = data(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert cached.take_news(broken)
    assert cached.take_news(broken)
    assert cached.take_news(data())
    assert not cached.take_news(data())
