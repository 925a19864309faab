"""Random transactions on a log, against a list of what was written.

Producers write in and outside of transactions, commit and abort; the log rolls, is cut at
either end, and is opened again after a clean stop or a crash. After each step a reader of
committed records, who leaves out what the list of aborted transactions names, as Kafka's
clients do, must see what the model says. `SEED=123 pytest -k model` runs one seed.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.selection import short
from support.transactions import TransactionalProducer

from odradek.protocol.records import Record, iter_batches, iter_records
from odradek.storage import Log
from odradek.storage.index.transaction_index import AbortedTxn
from odradek.storage.producer_state.producer_state import UNKNOWN_PRODUCER

STEPS = 60
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else range(40)
SOAK_SEEDS = range(1000, 3000)
SEEDS_AT_A_TIME = 100
PRODUCERS = 4


@dataclass
class Transaction:
    producer_id: int
    offsets: list[int] = field(default_factory=list)
    end: int | None = None
    """Of the marker."""
    committed: bool = False


class Model:
    """Everything that was written, by offset, and which of it is committed."""

    def __init__(self) -> None:
        self.values: dict[int, bytes] = {}
        self.transactions: list[Transaction] = []
        self.producers: dict[int, tuple[int, int]] = {}
        self.start = self.end = self.high_watermark = 0
        self.batch_ends: list[int] = []
        self.forgot_before = 0
        """What ended before a restart may count as replicated since."""

    def open_transaction(self, producer_id: int) -> Transaction | None:
        for transaction in self.transactions:
            if transaction.producer_id == producer_id and transaction.end is None:
                return transaction
        return None

    def truncate(self, offset: int) -> None:
        self.values = {at: value for at, value in self.values.items() if at < offset}
        for transaction in self.transactions:
            transaction.offsets = [at for at in transaction.offsets if at < offset]
            if transaction.end is not None and transaction.end >= offset:
                transaction.end = None
        self.transactions = [each for each in self.transactions if each.offsets]
        self.end = offset
        self.start = min(self.start, offset)
        self.batch_ends = [end for end in self.batch_ends if end <= offset]
        self.high_watermark = min(self.high_watermark, offset)

    def last_stable_offsets(self) -> tuple[int, int]:
        """The least and the most that it may be: what is forgotten may only be stable."""
        undecided = [each for each in self.transactions if each.end is None]
        unreplicated = [
            each
            for each in self.transactions
            if each.end is not None and each.end >= self.high_watermark
        ]
        least = [each.offsets[0] for each in undecided + unreplicated]
        unreplicated = [each for each in unreplicated if (each.end or 0) >= self.forgot_before]
        most = [
            offset
            for each in undecided + unreplicated
            for offset in each.offsets
            if offset >= self.start
        ]
        return self._bounded(least), self._bounded(most)

    def _bounded(self, offsets: list[int]) -> int:
        first = min(offsets, default=self.high_watermark)
        return min(max(first, self.start), self.high_watermark)

    def committed(self, start: int, end: int) -> dict[int, bytes]:
        hidden = {
            offset
            for transaction in self.transactions
            if transaction.end is None or not transaction.committed
            for offset in transaction.offsets
        }
        return {
            offset: value
            for offset, value in sorted(self.values.items())
            if start <= offset < end and offset not in hidden
        }


class Run:
    """One seeded run: does things to the log and to the model alike."""

    def __init__(self, seed: int, open_log) -> None:
        self.rng = random.Random(seed)
        self.open_log = open_log
        self.settings = {
            "segment_bytes": self.rng.choice([150, 400, 2000]),
            "index_interval_bytes": self.rng.choice([1, 100, 4096]),
            "file_delete_delay_ms": 0,
        }
        self.log: Log = open_log(**self.settings)
        self.model = Model()
        self.writers = [TransactionalProducer(self.log, number) for number in range(PRODUCERS)]

    def step(self) -> None:
        steps = {
            self.write: 20,
            self.end_a_transaction: 12,
            self.move_high_watermark: 8,
            self.roll: 2,
            self.truncate: 1,
            self.delete_records: 1,
            self.stop_and_start: 1,
            self.crash_and_start: 1,
        }
        (step,) = self.rng.choices(list(steps), list(steps.values()))
        step()
        self.log.flush_appends()
        self.log.high_watermark_moved(self.model.high_watermark)

    def write(self) -> None:
        for _ in range(self.rng.randrange(1, 4)):
            writer = self.rng.choice(self.writers)
            transaction = self.model.open_transaction(writer.producer_id)
            transactional = transaction is not None or self.rng.random() < 0.7
            count = self.rng.randrange(1, 4)
            values = [b"%d" % self.rng.getrandbits(20) for _ in range(count)]
            first = writer.write(*values, transactional=transactional, flush=False)
            offsets = list(range(first, first + len(values)))
            self.model.values.update(zip(offsets, values, strict=True))
            self.model.end = offsets[-1] + 1
            self.model.batch_ends.append(self.model.end)
            if transactional:
                if transaction is None:
                    transaction = Transaction(writer.producer_id)
                    self.model.transactions.append(transaction)
                transaction.offsets += offsets

    def end_a_transaction(self) -> None:
        writer = self.rng.choice(self.writers)
        transaction = self.model.open_transaction(writer.producer_id)
        commit = self.rng.random() < 0.5
        offset = writer.end(commit=commit, flush=self.rng.random() < 0.5)
        self.model.end = offset + 1
        self.model.batch_ends.append(offset + 1)
        if transaction is not None:
            transaction.end, transaction.committed = offset, commit

    def move_high_watermark(self) -> None:
        model = self.model
        possible = [end for end in model.batch_ends if end >= model.high_watermark]
        model.high_watermark = self.rng.choice(possible or [model.high_watermark])

    def roll(self) -> None:
        self.log.roll(1_700_000_000_000)

    def truncate(self) -> None:
        offset = self.rng.randrange(self.model.start, self.model.end + 1)
        batches = [
            batch.base_offset
            for _, batch in self.batches(self.model.start, self.log.log_end_offset)
            if batch.base_offset <= offset <= batch.last_offset
        ]
        if self.log.truncate_to(offset):
            cut = min(batches, default=offset)
            self.model.truncate(max(cut, self.log.segments.first.base_offset))
        assert self.log.log_end_offset == self.model.end
        self.renumber()

    def delete_records(self) -> None:
        model = self.model
        if model.high_watermark > model.start:
            model.start = self.rng.randrange(model.start, model.high_watermark + 1)
            self.log.advance_log_start_offset(model.start)
            self.log.delete_old_segments(0, model.high_watermark)

    def stop_and_start(self) -> None:
        self.log.close()
        self.reopen(clean_shutdown=True)

    def crash_and_start(self) -> None:
        active = self.log.segments.active
        point = self.rng.choice([0, self.log.log_end_offset, active.base_offset])
        if point == self.log.log_end_offset:
            self.log.flush_to_disk()
        for segment in self.log.segments:
            if segment.base_offset < point and segment is not active:
                segment.flush_indexes()
        self.reopen(clean_shutdown=False, recovery_point=point)

    def reopen(self, **how: object) -> None:
        self.model.forgot_before = self.model.end
        self.log = self.open_log(log_start_offset=self.model.start, **how, **self.settings)
        for writer in self.writers:
            writer.log = self.log
        self.renumber()

    def renumber(self) -> None:
        """Producers go on where the log says they are; deleted ones may begin anywhere."""
        for writer in self.writers:
            writer.sequence = self.log.producers.get(writer.producer_id).last_sequence + 1

    # --- looking -----------------------------------------------------------------------

    def check(self) -> None:
        model, log = self.model, self.log
        assert log.log_end_offset == model.end
        least, most = model.last_stable_offsets()
        stable = min(log.last_stable_offset, model.high_watermark)
        assert least <= stable <= most, (least, stable, most)
        if model.forgot_before == model.start == 0:
            assert stable == least
        start = self.rng.randrange(model.start, stable + 1) if stable > model.start else stable
        seen = {record.offset: record.value for record in self.read_committed(start, stable)}
        assert seen == model.committed(start, stable)

    def batches(self, start: int, end: int) -> Iterator[tuple[list[AbortedTxn], object]]:
        offset = start
        while offset < end:
            size = self.rng.choice([1, 100, 300, 100_000])
            read = self.log.read(offset, size, upper_offset=end)
            if not len(read.records):
                return
            aborted = self.log.aborted_transactions_in(read)
            batches = list(iter_batches(read.records.read()))
            for batch in batches:
                yield aborted, batch
                aborted = []
            offset = batches[-1].next_offset

    def read_committed(self, start: int, end: int) -> Iterator[Record]:
        """As Kafka's CompletedFetch does it, one answer after another."""
        hidden: set[int] = set()
        ahead: list[AbortedTxn] = []
        for aborted, batch in self.batches(start, end):
            if aborted:
                ahead = sorted(aborted, key=lambda each: each.first_offset)
            while ahead and ahead[0].first_offset <= batch.last_offset:
                hidden.add(ahead.pop(0).producer_id)
            if batch.is_control:
                if next(iter_records(batch)).key == b"\0\0\0\0":
                    hidden.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in hidden):
                yield from (each for each in iter_records(batch) if each.offset >= start)

    def check_producers(self) -> None:
        """What the log knows after a crash is what it knew before."""
        before = self.log.producers
        again = self.open_log(log_start_offset=self.model.start, **self.settings)
        for producer_id, known in before.published.items():
            state = again.producers.published.get(producer_id, UNKNOWN_PRODUCER)
            if self.model.start == 0:
                assert state._replace(batches=()) == known._replace(batches=())
                assert state.batches[-1:] == known.batches[-1:]
            elif known.batches and known.batches[-1].first_offset >= self.model.start:
                assert state.batches[-1] == known.batches[-1]
                assert state.producer_epoch == known.producer_epoch
        assert (
            self.aborts(again)
            == self.aborts(self.log)
            == sorted(
                transaction.end
                for transaction in self.model.transactions
                if transaction.end is not None
                and not transaction.committed
                and transaction.offsets[-1] >= self.model.start
            )
        )
        again.high_watermark_moved(self.model.high_watermark)
        self.log = again
        self.model.forgot_before = self.model.end
        self.check()

    def aborts(self, log: Log) -> list[int]:
        """The markers of those of which anything is left to be read."""
        start = self.model.start
        visible = {each.end for each in self.model.transactions if each.offsets[-1] >= start}
        aborted = log.aborted_transactions(start, self.model.end)
        return [each.last_offset for each in aborted if each.last_offset in visible]


def run(seed: int, open_log) -> None:
    this = Run(seed, open_log)
    for _ in range(STEPS):
        this.step()
        this.check()
    this.check_producers()


@pytest.mark.parametrize("seed", short(SEEDS, 15))
def test_readers_see_what_is_committed_whatever_happens(seed: int, open_log) -> None:
    run(seed, open_log)


@pytest.mark.soak
@pytest.mark.parametrize("first", SOAK_SEEDS[::SEEDS_AT_A_TIME])
def test_readers_see_what_is_committed_in_many_runs(first: int, open_log, tmp_path: Path) -> None:
    for seed in range(first, first + SEEDS_AT_A_TIME):
        print(f"seed {seed}")  # pytest shows it of a run that fails
        run(seed, open_log)
        for folder in tmp_path.iterdir():  # the next one begins with nothing
            shutil.rmtree(folder)
