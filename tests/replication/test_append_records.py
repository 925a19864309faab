from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import build_batch

if TYPE_CHECKING:
    from conftest import Bench

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
NOW_MS = 1_700_000_000_000


def batch(*values: bytes) -> bytearray:
    return build_batch([(None, value, NOW_MS, ()) for value in values])


@pytest.mark.parametrize("acks", [-2, 2, 3, 32767])
def test_other_acks_are_refused_and_no_log_is_touched(bench: "Bench", acks: int) -> None:
    bench.lead(bench.state())
    answers = bench.append({T0: batch(b"a")}, acks=acks)
    bench.manager.flush()
    assert answers[0][T0].error is ErrorCode.INVALID_REQUIRED_ACKS
    assert bench.manager.partition_or_error(T0).log_end_offset == 0


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_an_append_is_answered_after_the_flush_with_its_offset(bench: "Bench", acks: int) -> None:
    bench.lead(bench.state())
    bench.produce("t", b"before")
    answers = bench.append({T0: batch(b"a", b"b")}, acks=acks)
    assert answers == []
    assert bench.manager.partition_or_error(T0).log_end_offset == 1
    bench.manager.flush()
    assert answers[0][T0].error is ErrorCode.NONE
    assert answers[0][T0].base_offset == 1
    partition = bench.manager.partition_or_error(T0)
    assert (partition.log_end_offset, partition.high_watermark) == (3, 3)


def test_internal_topics_are_refused_to_clients_and_open_to_coordinators(bench: "Bench") -> None:
    offsets = TopicPartition("__consumer_offsets", 0)
    bench.lead(bench.state("__consumer_offsets"))
    refused = bench.append({offsets: batch(b"a")})
    allowed = bench.append({offsets: batch(b"a")}, internal_topics_allowed=True)
    bench.manager.flush()
    assert refused[0][offsets].error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert allowed[0][offsets].error is ErrorCode.NONE
    assert allowed[0][offsets].base_offset == 0


def test_each_partition_succeeds_or_fails_on_its_own(bench: "Bench") -> None:
    bench.lead(bench.state())
    damaged = batch(b"a")
    damaged[-1] ^= 1
    unknown = TopicPartition("nowhere", 0)
    answers = bench.append({T1: batch(b"x"), T0: batch(b"a"), unknown: damaged}, acks=-1)
    bench.manager.flush()
    assert answers[0][T0].error is ErrorCode.NONE
    assert answers[0][T1].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers[0][unknown].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answers = bench.append({T0: damaged})
    bench.manager.flush()
    assert answers[0][T0].error is ErrorCode.CORRUPT_MESSAGE


def test_acks_all_waits_for_the_high_watermark_and_then_answers(bench: "Bench") -> None:
    bench.lead(bench.state(isr=(1, 2), replicas=(1, 2)))
    answers = bench.append({T0: batch(b"a")}, acks=-1)
    bench.manager.flush()
    assert answers == []
    partition = bench.manager.partition_or_error(T0)
    assert partition.high_watermark == 0
    partition.remote_replicas[2].log_end_offset = 1
    assert partition.maybe_increment_high_watermark()
    bench.manager.flush()
    assert answers[0][T0].error is ErrorCode.NONE
    assert partition.high_watermark == 1


def test_acks_one_does_not_wait_for_the_high_watermark(bench: "Bench") -> None:
    bench.lead(bench.state(isr=(1, 2), replicas=(1, 2)))
    answers = bench.append({T0: batch(b"a")}, acks=1)
    bench.manager.flush()
    assert answers[0][T0].error is ErrorCode.NONE
    assert bench.manager.partition_or_error(T0).high_watermark == 0


def test_acks_all_times_out_and_is_answered_once(bench: "Bench") -> None:
    bench.lead(bench.state(isr=(1, 2), replicas=(1, 2)))
    answers = bench.append({T0: batch(b"a")}, acks=-1, timeout_ms=300)
    bench.manager.flush()
    bench.advance(299)
    assert answers == []
    bench.advance(1)
    assert [answer[T0].error for answer in answers] == [ErrorCode.REQUEST_TIMED_OUT]
    bench.advance(1000)
    assert len(answers) == 1


def test_nothing_waits_when_every_partition_failed(bench: "Bench") -> None:
    answers = bench.append({T0: batch(b"a"), T1: batch(b"b")}, acks=-1)
    bench.manager.flush()
    assert {answer.error for answer in answers[0].values()} == {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    assert len(bench.timers) == 0


def test_too_few_replicas_in_sync_refuse_acks_all_only(bench: "Bench") -> None:
    bench.lead(bench.state(config={"min.insync.replicas": "2"}, replicas=(1, 2)))
    refused = bench.append({T0: batch(b"a")}, acks=-1)
    taken = bench.append({T0: batch(b"b")}, acks=1)
    bench.manager.flush()
    assert refused[0][T0].error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert taken[0][T0].base_offset == 0


def test_more_replicas_than_a_partition_has_are_not_requested(bench: "Bench") -> None:
    bench.lead(bench.state(config={"min.insync.replicas": "2"}))
    answers = bench.append({T0: batch(b"a")}, acks=-1)
    bench.manager.flush()
    assert answers[0][T0].error is ErrorCode.NONE


def test_losing_the_leadership_answers_those_who_wait(bench: "Bench") -> None:
    bench.lead(bench.state(isr=(1, 2), replicas=(1, 2)))
    answers = bench.append({T0: batch(b"a")}, acks=-1)
    bench.manager.flush()
    bench.lead(bench.state(isr=(1, 2), replicas=(1, 2), leader=2, leader_epoch=1))
    bench.manager.flush()
    assert answers[0][T0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    refused = bench.append({T0: batch(b"b")})
    bench.manager.flush()
    assert refused[0][T0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_full_disk_fails_the_whole_staged_tail_and_appends_work_again(
    bench: "Bench", full_disk: Callable[[bool], None]
) -> None:
    bench.lead(bench.state())
    assert bench.produce("t", b"kept").base_offset == 0
    full_disk(True)
    first = bench.append({T0: batch(b"lost")})
    second = bench.append({T0: batch(b"lost too")}, acks=-1)
    bench.manager.flush()
    assert first[0][T0].error is ErrorCode.KAFKA_STORAGE_ERROR
    assert second[0][T0].error is ErrorCode.KAFKA_STORAGE_ERROR
    assert bench.manager.partition_or_error(T0).log_end_offset == 1
    full_disk(False)
    assert bench.produce("t", b"again").base_offset == 1


def test_orders_of_an_older_controller_or_leader_epoch_are_refused(bench: "Bench") -> None:
    bench.lead(bench.state(leader_epoch=5))
    stale = bench.manager.become_leader_or_follower(1, 0, [bench.state(leader_epoch=6)])
    assert stale[T0] is ErrorCode.STALE_CONTROLLER_EPOCH
    stale = bench.manager.become_leader_or_follower(1, 1, [bench.state(leader_epoch=4)])
    assert stale[T0] is ErrorCode.STALE_CONTROLLER_EPOCH
    assert bench.manager.partition_or_error(T0).leader_epoch == 5
    other = bench.manager.become_leader_or_follower(
        1, 1, [bench.state(leader_epoch=5, topic_id=b"\7" * 16)]
    )
    assert other[T0] is ErrorCode.INCONSISTENT_TOPIC_ID


def test_listeners_hear_of_leadership_gained_and_lost(bench: "Bench") -> None:
    heard: list[tuple[TopicPartition, bool, int]] = []
    bench.manager.leadership_listeners.append(lambda *news: heard.append(news))
    bench.lead(bench.state(leader_epoch=3))
    bench.lead(bench.state(leader_epoch=4))
    bench.manager.stop_replicas(1, [StoppedReplica(T0, delete=True)])
    assert heard == [(T0, True, 3), (T0, False, 4)]
    assert bench.manager.get_partition(T0) is None


def test_the_log_of_a_topic_that_was_deleted_meanwhile_is_set_aside(bench: "Bench") -> None:
    bench.lead(bench.state())
    bench.produce("t", b"of the former topic")
    bench.manager.keep_only(1, [])
    new_id = b"\7" * 16
    errors = bench.manager.become_leader_or_follower(
        1, 1, [bench.state(leader_epoch=0, topic_id=new_id)]
    )
    assert errors[T0] is ErrorCode.NONE
    partition = bench.manager.partition_or_error(T0)
    assert (partition.log_end_offset, partition.log.topic_id) == (0, new_id)
