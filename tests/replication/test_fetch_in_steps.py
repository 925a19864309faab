"""Fetches that are read in steps, between which partitions change in every way.

Whatever happens in between, no wake-up is lost: a fetch does not wait where one that begins now
would be answered; and what is answered of a partition was so at one moment since it began.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import iter_batches, iter_records
from odradek.replication.partition.partition import FetchIsolation
from odradek.replication.purgatory import delayed_fetch
from odradek.replication.read.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from odradek.replication.read.reading import PARTITIONS_PER_PIECE, read_from_log
from odradek.runtime.steps import Steps, run_at_once

if TYPE_CHECKING:
    from conftest import Bench

PARTITIONS = 6 * PARTITIONS_PER_PIECE
BROKER_ID, OTHER_BROKER = 1, 2
FETCHES = 12
NO_BOUND = 1 << 30
WAIT_MS = 500


def values_of(data: FetchPartitionData) -> list[bytes | None]:
    raw = data.records if isinstance(data.records, bytes) else data.records.read()
    return [record.value for batch in iter_batches(raw) for record in iter_records(batch)]


class Seen(NamedTuple):
    """What a partition was at a moment, as a reader without bounds sees it."""

    error: ErrorCode
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    values: list[bytes | None]


class History:
    """A broker's partitions, of which one changes at a time; all that they were is known.

    Attributes:
        seen: of each partition, what a fetch may answer, since `begin`.
        changes: how likely one is between two steps.
    """

    def __init__(self, bench: Bench, seed: int) -> None:
        self.bench = bench
        self.chance = random.Random(seed)
        self.epochs = dict.fromkeys(range(PARTITIONS), 0)
        self.written = 0
        self.changes = 0.0
        self.seen: dict[int, list[Seen]] = {}
        self.requested: list[FetchPartition] = []
        bench.lead(*(bench.state(partition=index) for index in range(PARTITIONS)))
        for index in self.chance.sample(range(PARTITIONS), PARTITIONS // 2):
            self.append(index)

    def begin(self) -> list[FetchPartition]:
        """What a fetch requests: mostly from the end on."""
        self.requested = []
        self.changes = self.chance.choice((0.0, 0.05, 0.4))
        share_behind = self.chance.choice((0.0, 0.0, 0.3))
        for index in range(PARTITIONS):
            partition = self.bench.manager.get_partition(TopicPartition("t", index))
            assert partition is not None
            back = 1 if self.chance.random() < share_behind else 0
            offset = max(partition.log_end_offset - back, partition.log_start_offset)
            self.requested.append(
                FetchPartition(partition.topic_partition, bytes(16), offset, 1 << 20)
            )
        self.seen = {index: [] for index in range(PARTITIONS)}
        for index in range(PARTITIONS):
            self.look(index)
        return self.requested

    def look(self, index: int) -> None:
        params = FetchParams(0, 1, NO_BOUND, FetchIsolation.HIGH_WATERMARK)
        hosted = self.bench.manager.partitions
        ((_, data),) = read_from_log(hosted, params, [self.requested[index]])
        self.seen[index].append(Seen(*data[:4], values_of(data)))

    def change(self) -> None:
        """Anything happens to a partition."""
        index = self.chance.randrange(PARTITIONS)
        kinds = [self.append] * 6 + [self.delete, self.follow, self.lead, self.replace]
        self.chance.choice(kinds)(index)
        self.bench.manager.flush()
        if self.seen:
            self.look(index)

    def append(self, index: int) -> None:
        self.written += 1
        self.bench.produce("t", b"%d" % self.written, partition=index)

    def delete(self, index: int) -> None:
        self.bench.delete_records(-1, TopicPartition("t", index))

    def follow(self, index: int) -> None:
        self.epochs[index] += 1
        self.bench.lead(
            self.bench.state(
                partition=index,
                leader=OTHER_BROKER,
                leader_epoch=self.epochs[index],
                replicas=(BROKER_ID, OTHER_BROKER),
                isr=(OTHER_BROKER,),
                is_new=False,
            )
        )

    def lead(self, index: int) -> None:
        self.epochs[index] += 1
        state = self.bench.state(partition=index, leader_epoch=self.epochs[index], is_new=False)
        self.bench.lead(state)

    def replace(self, index: int) -> None:
        """An unclean election: another leader's log was shorter, and goes on differently."""
        self.follow(index)
        partition = self.bench.manager.get_partition(TopicPartition("t", index))
        assert partition is not None
        end = partition.log_end_offset
        if end > partition.log_start_offset:
            partition.truncate_to(end - 1)
        self.lead(index)
        self.append(index)

    def check(self, results: FetchResults, max_bytes: int) -> None:
        """What is answered was so of each partition at a moment, and within the bounds."""
        sizes = [len(data.records) for _, data in results if len(data.records)]
        assert sum(sizes) <= max(max_bytes, *sizes[:1], 0)
        for requested, data in results:
            values = values_of(data)
            moments = [
                seen
                for seen in self.seen[requested.topic_partition.partition]
                if seen[:4] == data[:4] and seen.values[: len(values)] == values
            ]
            assert moments, (requested, data, values)


def must_not_wait(history: History, params: FetchParams, requested: list[FetchPartition]) -> bool:
    """Whether a fetch that is read at once is answered at once."""
    answers: list[FetchResults | Steps[FetchResults]] = []
    history.bench.manager.fetch_messages(params, requested, answers.append)
    return bool(answers)


@pytest.mark.parametrize("seed", range(8))
def test_no_wake_up_is_lost_and_answers_are_of_one_moment(
    bench: Bench, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delayed_fetch, "PARTITIONS_AT_ONCE", 0)  # what has waited is read so, too
    history = History(bench, seed)
    chance, manager = history.chance, bench.manager
    waited = 0
    for _ in range(FETCHES):
        for index in range(PARTITIONS):
            history.lead(index)
        requested = history.begin()
        max_bytes = chance.choice((100, 300, NO_BOUND))
        params = FetchParams(
            chance.choice((0, WAIT_MS, WAIT_MS)),
            min(chance.choice((1, 200, 1000)), max_bytes),
            max_bytes,
            FetchIsolation.HIGH_WATERMARK,
        )
        begun: list[Steps[FetchResults]] = []
        work = manager.fetch_messages_in_steps(params, requested, begun.append)
        results = changed_meanwhile(history, work)
        while results is None and not begun:
            waited += 1
            assert not must_not_wait(history, params, requested)
            if chance.random() < 0.2:
                bench.advance(WAIT_MS)
                assert begun
            else:
                history.change()
        if results is None:
            (reading,) = begun
            results = changed_meanwhile(history, reading)
        assert results is not None
        assert [each for each, _ in results] == requested
        history.check(results, max_bytes)
    assert waited > 2


def changed_meanwhile(
    history: History, work: Steps[FetchResults | None] | Steps[FetchResults]
) -> FetchResults | None:
    """Do some work, while partitions change between its steps."""
    while True:
        if history.chance.random() < history.changes:
            history.change()
        try:
            next(work)
        except StopIteration as done:
            results: FetchResults | None = done.value
            return results


def test_a_change_of_a_partition_that_was_read_already_ends_the_wait(bench: Bench) -> None:
    history = History(bench, 0)
    requested = history.begin()
    params = FetchParams(WAIT_MS, 1, NO_BOUND, FetchIsolation.HIGH_WATERMARK)
    at_end = [
        each._replace(fetch_offset=bench.manager.partitions[each.topic_partition].log_end_offset)
        for each in requested
    ]
    work = bench.manager.fetch_messages_in_steps(params, at_end, never)
    next(work)
    history.append(0)
    results = run_at_once(work)
    assert results is not None
    assert [each.topic_partition for each, data in results if len(data.records)] == [
        TopicPartition("t", 0)
    ]


def test_a_fetch_that_is_given_up_between_two_steps_is_forgotten(bench: Bench) -> None:
    history = History(bench, 0)
    params = FetchParams(WAIT_MS, NO_BOUND, NO_BOUND, FetchIsolation.HIGH_WATERMARK)
    work = bench.manager.fetch_messages_in_steps(params, history.begin(), never)
    next(work)
    assert bench.manager.delayed_fetch.sizes()[0] == 1
    work.close()
    assert bench.manager.delayed_fetch.sizes()[0] == 0
    history.append(0)
    bench.advance(WAIT_MS)


def test_a_change_looks_at_one_partition_of_a_fetch_that_waits(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(bench, 0)
    params = FetchParams(WAIT_MS, NO_BOUND, NO_BOUND, FetchIsolation.HIGH_WATERMARK)
    manager = bench.manager
    work = manager.fetch_messages_in_steps(params, history.begin(), never)
    assert run_at_once(work) is None
    looked_at = []
    monkeypatch.setattr(
        type(manager.partitions),
        "must_wait",
        lambda _, partition, params: looked_at.append(partition.topic_partition),
    )
    history.append(3)
    assert looked_at == [TopicPartition("t", 3)]


def never(found: FetchResults | Steps[FetchResults]) -> None:
    raise AssertionError("nobody waits for it")
