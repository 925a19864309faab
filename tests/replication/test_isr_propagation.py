"""When the controller is told of changed ISRs: after a while of quiet, or when it is time."""

from __future__ import annotations

from odradek.common.topic_partition import TopicPartition
from odradek.replication.partition.isr_propagation import (
    DELAY_MS_MAX,
    ISR_LINGER_MS,
    IsrPropagation,
)

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


def test_nothing_changed_is_nothing_to_tell() -> None:
    assert IsrPropagation(0).take_due(10 * DELAY_MS_MAX) == []


def test_a_change_is_reported_when_no_more_have_come_for_a_while() -> None:
    propagation = IsrPropagation(0)
    propagation.record_isr_change(T0, 100)
    propagation.record_isr_change(T1, 200)
    assert propagation.take_due(200 + ISR_LINGER_MS) == []
    assert propagation.take_due(201 + ISR_LINGER_MS) == [T0, T1]
    assert propagation.take_due(10 * DELAY_MS_MAX) == []


def test_while_changes_keep_coming_they_are_reported_once_a_minute() -> None:
    propagation = IsrPropagation(0)
    reported = []
    for now_ms in range(0, 3 * DELAY_MS_MAX, 1000):
        propagation.record_isr_change(T0, now_ms)
        if propagation.take_due(now_ms):
            reported.append(now_ms)
    assert reported == [DELAY_MS_MAX + 1000, 2 * DELAY_MS_MAX + 2000]


def test_what_could_not_be_written_is_reported_at_the_next_look() -> None:
    propagation = IsrPropagation(0)
    propagation.record_isr_change(T0, 0)
    taken = propagation.take_due(ISR_LINGER_MS + 1)
    propagation.record_isr_change(T1, ISR_LINGER_MS + 1)
    propagation.put_back(taken)
    assert len(propagation) == 2
    assert propagation.take_due(2 * ISR_LINGER_MS + 2) == [T0, T1]
