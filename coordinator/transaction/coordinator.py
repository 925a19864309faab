"""TransactionCoordinator: finds the transactional id that is asked for, and holds the verbs.

One broker coordinates a transactional id: the leader of the partition of
`__transaction_state` that keeps it. Here is decided whether that is this broker; the verbs'
rules are in `initializing`, `adding`, `ending` and `completing`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...common.topic_partition import TopicPartition
from ...runtime.timers import Timer
from .adding import AddCallback, Adding, verify
from .context import TransactionContext
from .describing import (
    TransactionDescription,
    TransactionFilter,
    TransactionListing,
    describe,
    passing,
    unknown_states,
)
from .ending import EndCallback, Ending
from .expiring import Expiring
from .initializing import InitCallback, Initializing, ProducerIdAndEpoch
from .keeping import Keeping
from .markers.completing import Completing
from .shards import Shards
from .state.transaction import TransactionalId


class TransactionList(NamedTuple):
    """The answer to ListTransactions."""

    unknown_states: list[str]
    transactions: list[TransactionListing]


class TransactionCoordinator:
    """All transactional ids that this broker coordinates.

    Verbs that take a callback call it once, at once or later, with NOT_COORDINATOR or
    COORDINATOR_LOAD_IN_PROGRESS where the id is not this broker's, and INVALID_REQUEST where
    it is empty; a callback only sends the answer and may not come back here.

    Args:
        context: settings, time, the log and neighbours.
        topic_partitions: how many partitions `__transaction_state` has, or will have.
    """

    def __init__(self, context: TransactionContext, topic_partitions: Callable[[], int]) -> None:
        shards = Shards(context, topic_partitions)
        keeping = Keeping(context, shards)
        completing = Completing(context, shards, keeping)
        ending = Ending(context, shards, keeping, completing)
        shards.on_loaded = completing.resume
        self._context = context
        self._shards = shards
        self._initializing = Initializing(context, shards, keeping, ending)
        self._adding = Adding(context, keeping)
        self._ending = ending
        self._expiring = Expiring(context, shards, ending)
        self._timers: list[Timer | None] = [None, None]
        self._is_active = False

    @property
    def ids(self) -> list[TransactionalId]:
        """All transactional ids that are coordinated here and known."""
        return list(self._shards.ids.values())

    @property
    def is_loading(self) -> bool:
        """Whether there may be ids here that are not known yet."""
        return self._shards.is_loading

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that keeps a transactional id."""
        return self._shards.partition_for(transactional_id)

    # -- what producers ask -----------------------------------------------------------------

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        respond: InitCallback,
    ) -> None:
        """InitProducerId; see `Initializing`."""
        try:
            self._initializing.initialize(transactional_id, timeout_ms, expected, respond)
        except KafkaError as refusal:
            respond(refusal.code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

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
        """AddPartitionsToTxn and AddOffsetsToTxn: one outcome for all; see `Adding`.

        Args:
            client_version: 2 where partitions join by being written to (KIP-890), else 0.
        """
        try:
            self._adding.add(
                self._find(transactional_id),
                producer_id,
                producer_epoch,
                partitions,
                respond,
                client_version=client_version,
            )
        except KafkaError as refusal:
            respond(refusal.code)

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode]:
        """AddPartitionsToTxn that only asks: each partition's outcome; see `adding.verify`."""
        try:
            known = self._find(transactional_id)
            return verify(known, producer_id, producer_epoch, partitions)
        except KafkaError as refusal:
            return dict.fromkeys(partitions, refusal.code)

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
        """EndTxn; see `Ending`.

        Args:
            client_version: 2 where the end brings the next epoch (KIP-890), else 0.
        """
        try:
            self._ending.end(
                self._find(transactional_id),
                producer_id,
                producer_epoch,
                respond,
                committed=committed,
                client_version=client_version,
            )
        except KafkaError as refusal:
            respond(refusal.code, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

    def _find(self, transactional_id: str) -> TransactionalId:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        known = self._shards.find(transactional_id)
        if known is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return known

    # -- what operators ask -----------------------------------------------------------------

    def describe(self, transactional_id: str) -> TransactionDescription:
        """DescribeTransactions, for one id."""
        try:
            self._check_active()
            if not transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            known = self._shards.find(transactional_id)
        except KafkaError as refusal:
            return TransactionDescription(transactional_id, refusal.code)
        if known is None:
            return TransactionDescription(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return describe(known, self._context.markers.missing(known.name))

    def list_transactions(self, wanted: TransactionFilter) -> TransactionList:
        """ListTransactions: the ids coordinated here that pass the filter.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE before the start and after the end,
                COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._check_active()
        if self._shards.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        now_ms = self._context.clock.now_ms()
        return TransactionList(
            unknown_states(wanted), passing(self._shards.ids.values(), wanted, now_ms)
        )

    def _check_active(self) -> None:
        if not self._is_active:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # -- leadership and running -------------------------------------------------------------

    def note_leadership(self, partition: int, leader_epoch: int, *, is_leader: bool) -> None:
        """A partition of `__transaction_state` came to be led here, or is not any more."""
        if is_leader:
            self._shards.load(partition, leader_epoch)
        else:
            self._shards.unload(partition)

    def start(self) -> None:
        """Begin to look from time to time for what is over its time."""
        self._is_active = True
        self._look_for_timed_out()
        self._look_for_expired()

    def close(self) -> None:
        """Stop; those who wait are told to look for another coordinator."""
        self._is_active = False
        for timer in self._timers:
            if timer is not None:
                timer.cancel()
        for partition in self._shards.partitions():
            self._shards.unload(partition)

    def catch_up(self) -> None:
        """Look at once for what is over its time."""
        self._expiring.abort_timed_out()
        self._expiring.remove_expired()

    def expire_transaction(self, transactional_id: str) -> None:
        """Abort an open transaction in its producer's place, as one that took too long.

        Raises:
            KafkaError: as `_find`; INVALID_TXN_STATE where none is open.
        """
        known = self._find(transactional_id)
        if not self._expiring.abort(known):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)

    def _look_for_timed_out(self) -> None:
        def look() -> None:
            self._look_for_timed_out()
            self._expiring.abort_timed_out()

        interval_ms = self._context.settings.abort_timed_out_interval_ms
        self._timers[0] = self._context.schedule(interval_ms, look)

    def _look_for_expired(self) -> None:
        def look() -> None:
            self._look_for_expired()
            self._expiring.remove_expired()

        interval_ms = self._context.settings.remove_expired_interval_ms
        self._timers[1] = self._context.schedule(interval_ms, look)
