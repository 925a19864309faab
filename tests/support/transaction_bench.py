"""A transaction coordinator on a log in memory, in time that the test moves.

Markers are not written anywhere: the test says when they are, and with what outcome.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.coordinator.transaction.coordinator import ProducerIdAndEpoch, TransactionCoordinator
from odradek.coordinator.transaction.marker_sender import MarkersToWrite, MarkersWritten
from odradek.coordinator.transaction.records import read_key, read_value
from odradek.coordinator.transaction.runtime import TransactionRuntime
from odradek.coordinator.transaction.settings import TransactionSettings
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transaction import Transaction, TransactionMetadata
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers

from .memory_log import PARTITIONS, MemoryLog

NOW_MS = 1_700_000_000_000
ID = "payments"
TIMEOUT_MS = 60_000
A = TopicPartition("a", 0)
B = TopicPartition("b", 7)
LEADER_EPOCH = 5

FIRST = 0
SECOND = 2
"""The generations of the protocol, as a client speaks them."""


class Answer:
    """An outcome that comes once; compares with what it is."""

    def __init__(self) -> None:
        self.got: tuple[object, ...] | None = None

    def __call__(self, *got: object) -> None:
        assert self.got is None, f"answered twice: {self.got}, then {got}"
        self.got = got

    @property
    def error(self) -> ErrorCode:
        assert self.got is not None, "not answered yet"
        error = self.got[0]
        assert isinstance(error, ErrorCode)
        return error

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """Producer id and epoch of an answer without error."""
        assert self.error is ErrorCode.NONE, self.error.name
        assert self.got is not None
        _, producer_id, epoch = self.got
        assert isinstance(producer_id, int)
        assert isinstance(epoch, int)
        return ProducerIdAndEpoch(producer_id, epoch)


class HeldMarkers:
    """A marker sender whose markers are written when the test says so."""

    def __init__(self) -> None:
        self.sent: list[MarkersToWrite] = []
        self.dropped: list[int] = []
        self._waiting: list[tuple[MarkersToWrite, MarkersWritten]] = []

    def send(self, markers: MarkersToWrite, on_complete: MarkersWritten) -> None:
        assert markers.partitions, "nothing to be written"
        self.sent.append(markers)
        self._waiting.append((markers, on_complete))

    def drop(self, coordinator_partition: int) -> None:
        self.dropped.append(coordinator_partition)
        self._waiting = [
            entry
            for entry in self._waiting
            if entry[0].coordinator_partition != coordinator_partition
        ]

    def missing(self, transactional_id: str) -> frozenset[TopicPartition] | None:
        return next(
            (each.partitions for each in self.waiting if each.transactional_id == transactional_id),
            None,
        )

    @property
    def waiting(self) -> list[MarkersToWrite]:
        return [markers for markers, _ in self._waiting]

    def written(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """All that is under way is written, or refused."""
        waiting, self._waiting = self._waiting, []
        for _, on_complete in waiting:
            on_complete(error)


class TransactionBench:
    """A coordinator and its surroundings; every call flushes what it appended.

    Attributes:
        version: the finalized `transaction.version`.
        producer_ids: those that can be had at once.
    """

    def __init__(self, version: int = 2, **settings: int) -> None:
        self.version = version
        self.settings = TransactionSettings(**settings)
        self.log = MemoryLog()
        self.clock = ManualClock(NOW_MS)
        self.producer_ids = list(range(1000, 1100))
        self.restart()

    def restart(self, partitions: Iterable[int] = range(PARTITIONS)) -> None:
        """A new broker on the same log, leading these partitions; the one before has died."""
        self.log.forget_waiting()
        self.timers = Timers()
        self.markers = HeldMarkers()
        self.context = TransactionRuntime(
            self.settings,
            self.clock,
            self.timers,
            self.log,
            self.markers,
            lambda: self.producer_ids.pop(0) if self.producer_ids else None,
            lambda: self.version,
        )
        self.coordinator = TransactionCoordinator(self.context, lambda: PARTITIONS)
        self.coordinator.start()
        for partition in partitions:
            self.coordinator.note_leadership(partition, LEADER_EPOCH, is_leader=True)

    def advance(self, milliseconds: int) -> None:
        """Let time pass, timers and long work included, in however many steps it is done."""
        self.clock.advance(milliseconds)
        while self.timers.run_due(self.clock.monotonic_ms()):
            self.log.flush()
        self.log.flush()

    # -- requests -------------------------------------------------------------------------

    def init(
        self,
        expected: tuple[int, int] | None = None,
        *,
        name: str = ID,
        timeout_ms: int = TIMEOUT_MS,
    ) -> Answer:
        answer = Answer()
        self.coordinator.init_producer_id(
            name, timeout_ms, None if expected is None else ProducerIdAndEpoch(*expected), answer
        )
        self.log.flush()
        return answer

    def add(
        self,
        producer: tuple[int, int],
        *partitions: TopicPartition,
        name: str = ID,
        client_version: int = SECOND,
    ) -> Answer:
        answer = Answer()
        self.coordinator.add_partitions(
            name, *producer, frozenset(partitions), answer, client_version=client_version
        )
        self.log.flush()
        return answer

    def verify(
        self, producer: tuple[int, int], *partitions: TopicPartition, name: str = ID
    ) -> dict[TopicPartition, ErrorCode]:
        return self.coordinator.verify_partitions(name, *producer, frozenset(partitions))

    def end(
        self,
        producer: tuple[int, int],
        *,
        commit: bool = True,
        name: str = ID,
        client_version: int = SECOND,
    ) -> Answer:
        answer = Answer()
        self.coordinator.end_transaction(
            name, *producer, answer, committed=commit, client_version=client_version
        )
        self.log.flush()
        return answer

    def markers_written(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """All markers under way are written."""
        self.markers.written(error)
        self.log.flush()

    # -- states ---------------------------------------------------------------------------

    def known(self, name: str = ID) -> TransactionMetadata:
        (found,) = [known for known in self.coordinator.ids if known.name == name]
        return found

    @property
    def state(self) -> TransactionState:
        return self.known().transaction.state

    def stored(self) -> list[tuple[str, Transaction | None]]:
        """What the log has of all ids, partition after partition, tombstones as None."""
        found = []
        for partition in range(PARTITIONS):
            for key, value in self.log.values(partition):
                assert key is not None
                name = read_key(key)
                assert name is not None
                found.append((name, None if value is None else read_value(value)))
        return found

    def bring_to(
        self, state: TransactionState, *, client_version: int = SECOND
    ) -> ProducerIdAndEpoch:
        """Bring `ID` into a state by requests; returns the producer as it knows itself.

        In a prepared or complete state that is the epoch of the transaction's records.
        """
        producer = self.init().producer
        if state is TransactionState.EMPTY:
            return producer
        assert self.add(producer, A, client_version=client_version).error is ErrorCode.NONE
        if state is TransactionState.ONGOING:
            return producer
        commit = state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
        ended = self.end(producer, commit=commit, client_version=client_version)
        assert ended.error is ErrorCode.NONE
        if state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
            self.markers_written()
        assert self.state is state
        return producer
