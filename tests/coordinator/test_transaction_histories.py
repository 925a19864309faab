"""Random histories: producers, crashes, lost appends and lost markers, replayed by seed.

Whatever happens, each transaction has one outcome, in every partition, and it is the one that
a producer was told; epochs never go back; and when nothing goes wrong any more every id comes
to rest.
"""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from support.transaction_bench import (
    FIRST,
    LEADER_EPOCH,
    SECOND,
    Answer,
    TransactionBench,
)

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.coordinator.transaction.marker_sender import MarkersToWrite
from odradek.coordinator.transaction.states import AT_REST, TransactionState

STEPS = 300
PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
FAILURES = [
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
]
FATAL = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
)
LAST_USABLE = 32_766


class Producer:
    """One producer of the transactional id, which may have been replaced by another.

    Attributes:
        version: of the protocol that it speaks.
        at: its producer id and epoch; None until it has them.
        has_begun: whether it may have a transaction open.
        in_doubt: whether it wanted to commit, while it does not know what became of that.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self.at: tuple[int, int] | None = None
        self.has_begun = False
        self.in_doubt: bool | None = None


class History:
    """One random run against one transactional id."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.bench = TransactionBench(version=seed % 3)
        self.generations = [FIRST, SECOND] if self.bench.version == 2 else [FIRST]
        self.producers = [Producer(FIRST)]
        self.outcomes: dict[int, set[bool]] = defaultdict(set)
        self.reported: dict[int, set[bool]] = defaultdict(set)
        self.seen_markers = 0

    def run(self) -> None:
        steps = {
            self.init: 1,
            self.add: 8,
            self.end: 8,
            self.write_markers: 12,
            self.replace: 1,
            self.crash: 1,
            self.fail: 3,
            self.hold: 3,
            self.wait: 1,
            self.jump: 1,
        }
        chosen = self.rng.choices(list(steps), list(steps.values()), k=STEPS)
        for step in chosen:
            self.bench.clock.advance(1)  # so that no two transactions begin at the same time
            step()
            self.look()
        self.settle()
        self.check()

    # -- steps ----------------------------------------------------------------------------

    def someone(self) -> Producer:
        """Mostly the newest producer, at times one that does not know that it was replaced."""
        return self.producers[-1] if self.rng.random() < 0.8 else self.producers[0]

    def init(self) -> None:
        self.init_one(self.someone())

    def init_one(self, producer: Producer) -> None:
        expected = producer.at if self.rng.random() < 0.5 else None
        answer = self.bench.init(expected)
        if answer.got is not None and answer.error is ErrorCode.NONE:
            producer.at = tuple(answer.producer)
            producer.in_doubt = None

    def add(self) -> None:
        producer = self.someone()
        if producer.at is None:
            self.init_one(producer)
        elif producer.in_doubt is None:
            requested = self.rng.sample(PARTITIONS, self.rng.randint(1, 3))
            added = self.bench.add(producer.at, *requested, client_version=producer.version)
            producer.has_begun |= added.got is None or added.error is ErrorCode.NONE
            if added.got is not None and added.error in FATAL:
                self.replace()

    def end(self) -> None:
        producer = self.someone()
        if producer.at is None or not (producer.has_begun or self.rng.random() < 0.05):
            return
        commit = producer.in_doubt
        if commit is None:
            commit = self.rng.random() < 0.6
        producer.in_doubt = commit
        answer = self.bench.end(producer.at, commit=commit, client_version=producer.version)
        if answer.got is None:
            return
        self.note_answer(producer, answer, commit)

    def note_answer(self, producer: Producer, answer: Answer, commit: bool) -> None:
        assert producer.at is not None
        if answer.error is ErrorCode.NONE:
            self.reported[self.bench.known().transaction.start_ms].add(commit)
            producer.in_doubt = None
            producer.has_begun = False
            if producer.version == SECOND:
                producer.at = tuple(answer.producer)
        elif answer.error in FATAL:
            self.replace()

    def write_markers(self) -> None:
        self.bench.markers_written()

    def replace(self) -> None:
        """Another producer takes over; the one before may not know."""
        self.producers = [*self.producers, Producer(self.rng.choice(self.generations))][-2:]

    def crash(self) -> None:
        self.look()
        self.bench.restart()
        self.seen_markers = 0

    def fail(self) -> None:
        """Appends fail from now on, or are held, or work again."""
        is_failing = self.rng.random() < 0.2
        self.bench.log.fail_with = self.rng.choice(FAILURES) if is_failing else ErrorCode.NONE

    def hold(self) -> None:
        """Appends are in the log and on no other replica from now on, or they are again."""
        self.bench.log.is_held = self.rng.random() < 0.3
        self.bench.log.flush()

    def wait(self) -> None:
        self.bench.advance(self.rng.choice([100, 10_000, 70_000]))

    def jump(self) -> None:
        """Come near the end of the epochs, where a producer id gives way to the next."""
        for known in self.bench.coordinator.ids:
            now = known.transaction
            is_idle = known.pending is None and now.state is TransactionState.EMPTY
            if is_idle and 0 <= now.producer_epoch < LAST_USABLE - 3 and self.rng.random() < 0.1:
                known.transaction = now._replace(producer_epoch=LAST_USABLE - 3)

    # -- what is seen -----------------------------------------------------------------------

    def look(self) -> None:
        sent = self.bench.markers.sent
        for markers in sent[self.seen_markers :]:
            self.note_markers(markers)
        self.seen_markers = len(sent)

    def note_markers(self, markers: MarkersToWrite) -> None:
        assert markers.coordinator_epoch == LEADER_EPOCH
        now = self.bench.known().transaction
        assert markers.producer_id == now.producer_id
        assert markers.producer_epoch == now.producer_epoch
        self.outcomes[now.start_ms].add(markers.committed)

    def settle(self) -> None:
        """Nothing goes wrong any more."""
        self.bench.log.fail_with = ErrorCode.NONE
        self.bench.log.is_held = False
        self.bench.log.flush()
        self.look()
        for _ in range(4):
            self.bench.markers_written()
            self.bench.advance(1_000_000)
            self.look()

    def check(self) -> None:
        for began_ms, outcomes in self.outcomes.items():
            assert len(outcomes) == 1, f"the transaction of {began_ms} was committed and aborted"
            assert self.reported[began_ms] <= outcomes
        epochs: dict[int, int] = defaultdict(lambda: -1)
        for _, transaction in self.bench.stored():
            assert transaction is not None
            assert transaction.producer_epoch >= epochs[transaction.producer_id]
            epochs[transaction.producer_id] = transaction.producer_epoch
        for known in self.bench.coordinator.ids:
            assert known.transaction.state in AT_REST
            assert known.pending is None
            assert not known.transaction.partitions


def run_histories(seeds: range) -> None:
    committed = aborted = rotated = 0
    for seed in seeds:
        history = History(seed)
        try:
            history.run()
        except Exception as failure:
            failure.add_note(f"in the history of seed {seed}")
            raise
        committed += sum(outcomes == {True} for outcomes in history.outcomes.values())
        aborted += sum(outcomes == {False} for outcomes in history.outcomes.values())
        rotated += len({stored.producer_id for _, stored in history.bench.stored() if stored})
    # Else the histories would show little.
    assert min(committed, aborted) > 2 * len(seeds)
    assert rotated > len(seeds)


def test_random_histories_come_to_rest_with_one_outcome_for_each_transaction() -> None:
    run_histories(range(100))


@pytest.mark.soak
def test_many_random_histories_come_to_rest_with_one_outcome_for_each_transaction() -> None:
    run_histories(range(100, 5_100))
