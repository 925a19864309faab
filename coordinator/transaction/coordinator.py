"""TransactionCoordinator: the verbs on transactional ids that this broker coordinates.

One broker coordinates a transactional id: the leader of the partition of `__transaction_state`
that keeps it. `Transaction` makes one version of an id from the one before, and
`TransactionStateManager` stores it; the verbs decide whether and when.

A producer of the first generation keeps its epoch from one transaction to the next. One of the
second (EndTxn 5 and later) is given the next epoch with each end, and another producer id when
the epochs are used up, so that nothing it wrote late can join its next transaction (KIP-890).
Source: Kafka 4.3's TransactionCoordinator and TransactionMarkerChannelManager; KIP-98, KIP-360,
KIP-664.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...common.topic_partition import TopicPartition
from ...metadata.features import SECOND_GENERATION
from ...runtime.steps import Steps, count_items, run_at_once
from ...runtime.timers import Timer
from .describing import (
    DescribedTransaction,
    ListedTransaction,
    TransactionFilter,
    describe,
    passing,
    unknown_states,
)
from .marker_sender import MarkersToWrite
from .records import transaction_key
from .runtime import TransactionRuntime
from .settings import APPEND_RETRY_BACKOFF_MS, NO_TIME_LIMIT_MS
from .state_manager import TransactionStateManager
from .states import (
    FIRST_GENERATION,
    PREPARED,
    SECOND_GENERATION_AGAIN,
    SECOND_GENERATION_NEW,
    EndCell,
    TransactionState,
)
from .transaction import LAST_USABLE_EPOCH, Transaction, TransactionMetadata

logger = logging.getLogger(__name__)
ITEMS_PER_ABORT = 8
"""Of a step: what an abort takes with its end."""
FIRST = 0
"""How records name the first generation of the protocol."""

InitCallback = Callable[[ErrorCode, int, int], None]
"""Called once with the outcome, the producer id and its epoch (-1 after an error)."""
AddCallback = Callable[[ErrorCode], None]
"""Called once: NONE when the partitions are in the transaction."""
EndCallback = Callable[[ErrorCode, int, int], None]
"""Called once with the outcome, and the producer id and epoch to go on with (-1 after errors)."""


class ProducerIdAndEpoch(NamedTuple):
    """What a producer says that it has."""

    producer_id: int
    epoch: int


class TransactionList(NamedTuple):
    """The answer to ListTransactions."""

    unknown_states: list[str]
    transactions: list[ListedTransaction]


class TransactionCoordinator:
    """All transactional ids that this broker coordinates.

    Verbs that take a callback call it once, at once or later, with NOT_COORDINATOR or
    COORDINATOR_LOAD_IN_PROGRESS where the id is not this broker's, and INVALID_REQUEST where
    it is empty; a callback only sends the answer and may not come back here.

    Args:
        runtime: settings, time, the log and neighbours.
        topic_partitions: how many partitions `__transaction_state` has, or will have.
    """

    def __init__(self, runtime: TransactionRuntime, topic_partitions: Callable[[], int]) -> None:
        self._runtime = runtime
        self._states = TransactionStateManager(runtime, topic_partitions, self._resume)
        self._timers: list[Timer | None] = [None, None]
        self._is_active = False

    @property
    def ids(self) -> list[TransactionMetadata]:
        """All transactional ids that are coordinated here and known."""
        return list(self._states.ids.values())

    @property
    def is_loading(self) -> bool:
        """Whether there may be ids here that are not known yet."""
        return self._states.is_loading

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that keeps a transactional id."""
        return self._states.partition_for(transactional_id)

    # -- InitProducerId ---------------------------------------------------------------------

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        respond: InitCallback,
    ) -> None:
        """InitProducerId with a transactional id: a producer starts, or goes on after an error.

        It gets an epoch that no producer of this id has had, so that all earlier ones are
        fenced. A transaction that an earlier one has left open is aborted first, and the client
        is answered CONCURRENT_TRANSACTIONS, upon which it retries.

        Args:
            timeout_ms: how long its transactions may be open.
            expected: what it has, if it goes on after an error (KIP-360).
        """
        try:
            self._init_producer_id(transactional_id, timeout_ms, expected, respond)
        except KafkaError as refusal:
            respond(refusal.code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

    def _init_producer_id(
        self,
        name: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        respond: InitCallback,
    ) -> None:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._runtime.settings.max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        known = self._states.find(name) or self._new_id(name, timeout_ms)
        now = known.transaction
        if known.pending is not None:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None and not _may_have(now, expected):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if now.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if now.state is TransactionState.ONGOING:

            def fenced(error: ErrorCode, *_: int) -> None:
                code = error or ErrorCode.CONCURRENT_TRANSACTIONS
                respond(code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

            self._fence(known, fenced)
            return
        after = self._next_producer(now, timeout_ms, expected)

        def appended(error: ErrorCode) -> None:
            if error:
                respond(error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            else:
                respond(ErrorCode.NONE, after.producer_id, after.producer_epoch)

        self._states.append(known, after, appended)

    def _new_id(self, name: str, timeout_ms: int) -> TransactionMetadata:
        transaction_key(name)  # one that cannot be stored is refused before it is known
        now_ms = self._runtime.clock.now_ms()
        return self._states.add(name, Transaction(self._take_producer_id(), timeout_ms, now_ms))

    def _next_producer(
        self, now: Transaction, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> Transaction:
        now_ms = self._runtime.clock.now_ms()
        if now.is_epoch_exhausted and (expected is None or expected.epoch == now.producer_epoch):
            return now.rotated(
                self._take_producer_id(), timeout_ms, now_ms, may_retry=expected is not None
            )
        return now.initialized(timeout_ms, None if expected is None else expected.epoch, now_ms)

    def _take_producer_id(self) -> int:
        producer_id = self._runtime.take_producer_id()
        if producer_id is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return producer_id

    # -- AddPartitionsToTxn and AddOffsetsToTxn ---------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        respond: AddCallback,
        *,
        client_version: int = 0,
    ) -> None:
        """AddPartitionsToTxn and AddOffsetsToTxn: one outcome for all partitions.

        The first opens the transaction. CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING
        and PRODUCER_FENCED are refusals.

        Args:
            client_version: 2 where partitions join by being written to (KIP-890), else 0.
        """
        try:
            known = self._find(transactional_id)
            if known.pending is not None:
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
            now = known.transaction
            _check_producer(now, producer_id, producer_epoch)
            if now.state is TransactionState.ONGOING and partitions <= now.partitions:
                respond(ErrorCode.NONE)
                return
            now_ms = self._runtime.clock.now_ms()
            after = now.with_partitions(partitions, now_ms, client_version)
            self._states.append(known, after, respond)
        except KafkaError as refusal:
            respond(refusal.code)

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """AddPartitionsToTxn that only verifies (KIP-890).

        Returns:
            NONE for each partition that is in the transaction, TRANSACTION_ABORTABLE for others.
        """
        try:
            now = self._find(transactional_id).transaction
            _check_producer(now, producer_id, producer_epoch)
        except KafkaError as refusal:
            return dict.fromkeys(partitions, refusal.code)
        return {
            partition: ErrorCode.NONE
            if partition in now.partitions
            else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    # -- EndTxn, and the abort in a producer's place ----------------------------------------

    def end_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        respond: EndCallback,
        *,
        committed: bool,
        client_version: int = 0,
    ) -> None:
        """EndTxn: commit or abort. The tables of `states.py` say what it does in each state.

        Args:
            client_version: 2 where the end brings the next epoch (KIP-890), else 0.
        """
        try:
            known = self._find(transactional_id)
            if client_version >= SECOND_GENERATION:
                cell = _cell_of_second_generation(known, producer_id, producer_epoch)
            else:
                cell = _cell_of_first_generation(known, producer_id, producer_epoch)
            verdict = cell.commit if committed else cell.abort
            before = known.transaction
            if isinstance(verdict, ErrorCode):
                if verdict:
                    raise KafkaError(verdict)
                respond(ErrorCode.NONE, before.producer_id, before.producer_epoch)
                return
            next_producer_id = self._next_producer_id(before, client_version)
            now_ms = self._runtime.clock.now_ms()
            after = before.prepared(verdict, client_version, now_ms, next_producer_id)
            self._decide(known, after, respond)
        except KafkaError as refusal:
            respond(refusal.code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

    def _find(self, transactional_id: str) -> TransactionMetadata:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        known = self._states.find(transactional_id)
        if known is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return known

    def _fence(self, known: TransactionMetadata, respond: EndCallback) -> None:
        """Abort an open transaction in its producer's place, and fence that off.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS while no producer id is at hand.
        """
        is_second = self._runtime.transaction_version() >= SECOND_GENERATION
        version = SECOND_GENERATION if is_second else FIRST
        before = known.transaction
        next_producer_id = self._next_producer_id(before, version)
        if not is_second:
            # The producer is fenced at once, whatever becomes of the append.
            before = before.with_fencing_epoch(has_failed_before=known.has_failed_fence)
            known.transaction = before
        after = before.fenced(version, self._runtime.clock.now_ms(), next_producer_id)

        def decided(error: ErrorCode, producer_id: int, producer_epoch: int) -> None:
            if error:
                known.has_failed_fence = True
            respond(error, producer_id, producer_epoch)

        self._decide(known, after, decided)

    def _next_producer_id(self, before: Transaction, client_version: int) -> int:
        if client_version < SECOND_GENERATION or not before.is_epoch_exhausted:
            return NO_PRODUCER_ID
        return self._take_producer_id()

    def _decide(self, known: TransactionMetadata, after: Transaction, respond: EndCallback) -> None:
        """Store the decision; the producer may go on from then, before any marker is written."""

        def decided(error: ErrorCode) -> None:
            if error:
                respond(error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
                return
            end = self._begin_completion(known)
            respond(ErrorCode.NONE, end.producer_id, end.producer_epoch)
            self._send_markers(known, end)

        self._states.append(known, after, decided)

    # -- markers ------------------------------------------------------------------------------
    #
    # The decision is in the log before markers are sent, so whoever leads the partition next
    # sends them again: markers may be written twice, never not at all.

    def _begin_completion(self, known: TransactionMetadata) -> Transaction:
        """What a prepared id will be; that is pending from now on, and markers must be sent."""
        after = known.transaction.completed(self._runtime.clock.now_ms())
        known.pending = after.state
        known.has_failed_fence = False
        return after

    def _send_markers(self, known: TransactionMetadata, after: Transaction) -> None:
        before = known.transaction
        if not before.partitions:
            self._append_completion(known, after)
            return
        self._runtime.markers.send(
            MarkersToWrite(
                known.name,
                known.partition,
                self._states.leader_epoch(known),
                before.producer_id,
                before.producer_epoch,
                before.state is TransactionState.PREPARE_COMMIT,
                before.partitions,
                before.client_version,
            ),
            partial(self._markers_written, known, after),
        )

    def _resume(self, known: TransactionMetadata) -> None:
        """Go on where another coordinator, or this broker before a crash, has left off."""
        if known.transaction.state is TransactionState.ONGOING:
            # The log knows by wall time only since when it is open, and a clock may have been set.
            known.open_since_ms = self._runtime.clock.monotonic_ms()
        if known.transaction.state in PREPARED:
            logger.info(
                "sending the markers of the loaded transactional id %r, which is %s",
                known.name,
                known.transaction.state.shown,
            )
            self._send_markers(known, self._begin_completion(known))

    def _markers_written(
        self, known: TransactionMetadata, after: Transaction, error: ErrorCode
    ) -> None:
        if not self._states.is_current(known):
            return
        if error:
            # A newer coordinator wrote them, or will: this one soon learns that it is none.
            logger.warning(
                "the markers of the transactional id %r were refused: %s", known.name, error.name
            )
            return
        self._append_completion(known, after)

    def _append_completion(self, known: TransactionMetadata, after: Transaction) -> None:
        if not self._states.is_current(known):
            return

        def appended(error: ErrorCode) -> None:
            # Whatever the reason: a coordinator that has lost its leadership is unloaded soon.
            if error:
                self._runtime.schedule(
                    APPEND_RETRY_BACKOFF_MS, partial(self._append_completion, known, after)
                )

        self._states.append(known, after, appended, stays_pending=True)

    # -- DescribeTransactions and ListTransactions ------------------------------------------

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """DescribeTransactions, for one id."""
        try:
            self._check_active()
            if not transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            known = self._states.find(transactional_id)
        except KafkaError as refusal:
            return DescribedTransaction(transactional_id, refusal.code)
        if known is None:
            return DescribedTransaction(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return describe(known, self._runtime.markers.missing(known.name))

    def list_transactions(self, requested: TransactionFilter) -> Steps[TransactionList]:
        """ListTransactions: the ids coordinated here that pass the filter.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE before the start and after the end,
                COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._check_active()
        if self._states.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        now_ms = self._runtime.clock.now_ms()
        unknown = yield from unknown_states(requested)
        passed = yield from passing(list(self._states.ids.values()), requested, now_ms)
        return TransactionList(unknown, passed)

    def _check_active(self) -> None:
        if not self._is_active:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # -- leadership and running -------------------------------------------------------------

    def note_leadership(self, partition: int, leader_epoch: int, *, is_leader: bool) -> None:
        """A partition of `__transaction_state` came to be led here, or is not any more."""
        if is_leader:
            self._states.load(partition, leader_epoch)
        else:
            self._states.unload(partition)

    def start(self) -> None:
        """Begin to abort timed-out transactions and to remove unused ids from time to time."""
        self._is_active = True
        settings = self._runtime.settings
        self._repeat(0, settings.abort_timed_out_interval_ms, self._abort_timed_out)
        self._repeat(1, settings.remove_expired_interval_ms, self._states.remove_expired)

    def _repeat(self, index: int, interval_ms: int, task: Callable[[], Steps[None]]) -> None:
        def run() -> None:
            self._repeat(index, interval_ms, task)
            self._runtime.run_in_steps(task())

        self._timers[index] = self._runtime.schedule(interval_ms, run)

    def close(self) -> None:
        """Stop; who waits is answered NOT_COORDINATOR."""
        self._is_active = False
        for timer in self._timers:
            if timer is not None:
                timer.cancel()
        for partition in self._states.partitions():
            self._states.unload(partition)

    def catch_up(self) -> None:
        """Abort timed-out transactions and remove unused ids at once."""
        run_at_once(self._abort_timed_out())
        run_at_once(self._states.remove_expired())

    def expire_transaction(self, transactional_id: str) -> None:
        """Abort an open transaction in its producer's place, as one that took too long.

        Raises:
            KafkaError: as `_find`; INVALID_TXN_STATE where none is open.
        """
        known = self._find(transactional_id)
        if known.transaction.state is not TransactionState.ONGOING or known.pending is not None:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        self._abort(known)

    def _abort_timed_out(self) -> Steps[None]:
        now_ms = self._runtime.clock.monotonic_ms()
        for known in list(self._states.ids.values()):
            yield
            if self._states.is_current(known) and _is_timed_out(known, now_ms):
                self._abort(known)
                yield from count_items(ITEMS_PER_ABORT)

    def _abort(self, known: TransactionMetadata) -> None:
        def aborted(error: ErrorCode, *_: int) -> None:
            if error:
                logger.warning(
                    "could not abort the timed-out transaction of %r, trying again later: %s",
                    known.name,
                    error.name,
                )
            else:
                logger.info("aborted the timed-out transaction of %r", known.name)

        try:
            self._fence(known, aborted)
        except KafkaError as refusal:
            aborted(refusal.code)


def _check_producer(now: Transaction, producer_id: int, producer_epoch: int) -> None:
    if now.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if now.producer_epoch != producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if now.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def _may_have(now: Transaction, expected: ProducerIdAndEpoch) -> bool:
    """Whether the producer's id can be right; its epoch is looked at later.

    An id that was not in use before is right: the producer comes back after its transactional
    id was forgotten. The former id is right if its epochs are used up: the producer may not
    have heard of the new one.
    """
    return (
        now.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == now.producer_id
        or (
            expected.producer_id == now.previous_producer_id and expected.epoch >= LAST_USABLE_EPOCH
        )
    )


def _cell_of_first_generation(
    known: TransactionMetadata, producer_id: int, producer_epoch: int
) -> EndCell:
    now = known.transaction
    if now.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if now.producer_epoch != producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if known.pending is not None:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return FIRST_GENERATION[now.state]


def _cell_of_second_generation(
    known: TransactionMetadata, producer_id: int, producer_epoch: int
) -> EndCell:
    now = known.transaction
    if known.pending is not None:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_again = now.producer_epoch == producer_epoch + 1
    is_again_after_rotation = (
        now.previous_producer_id == producer_id
        and producer_epoch == LAST_USABLE_EPOCH
        and now.producer_epoch == 0
    )
    if now.producer_id != producer_id and not is_again_after_rotation:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    cell = None
    if is_again or is_again_after_rotation:
        cell = SECOND_GENERATION_AGAIN.get(now.state)
    elif now.producer_epoch == producer_epoch:
        cell = SECOND_GENERATION_NEW.get(now.state)
    if cell is None:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    return cell


def _is_timed_out(known: TransactionMetadata, now_ms: int) -> bool:
    now = known.transaction
    return (
        now.state is TransactionState.ONGOING
        and known.pending is None
        and now.timeout_ms != NO_TIME_LIMIT_MS
        and known.open_since_ms + now.timeout_ms < now_ms
    )
