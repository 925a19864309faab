"""The replicas of a partition as its leader sees them: who keeps up, and who is in sync.

The ISR is what the metadata store says, committed, plus at most one change on its way there
(KIP-497). An expansion counts at once where more replicas are the stricter rule, a shrink only
when it is written; so the high watermark is right whichever way the change goes (article 001;
Kafka's PartitionState with PendingExpandIsr and PendingShrinkIsr).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ...common.partition_state import LeaderAndIsr, PartitionState
from ...common.sentinels import NO_EPOCH, NO_LEADER
from ...common.topic_partition import TopicPartition
from ...storage.log.log import Log
from .isr_change import IsrChangeOutcome
from .partition_host import NoHost, PartitionHost
from .replica import Replica

logger = logging.getLogger(__name__)


class InSyncReplicas:
    """The half of a `Partition` that knows replicas and ISR.

    Attributes:
        isr: the committed one; empty where this broker does not lead, as it need not know.
        maximal_isr: with those that a pending change adds.
        pending_isr_change: what is being written.
        remote_replicas: by broker id, the followers of a partition led here.
    """

    __slots__ = (
        "adding_replicas",
        "broker_id",
        "controller_epoch",
        "high_watermark",
        "host",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "leader_epoch_start_offset",
        "log",
        "maximal_isr",
        "min_insync_replicas",
        "partition_epoch",
        "pending_isr_change",
        "remote_replicas",
        "removing_replicas",
        "replicas",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        broker_id: int,
        log: Log,
        min_insync_replicas: int,
        host: PartitionHost | None,
    ) -> None:
        self.topic_partition = topic_partition
        self.broker_id = broker_id
        self.log = log
        self.min_insync_replicas = min_insync_replicas
        self.host: PartitionHost = host if host is not None else NoHost()
        self.high_watermark = 0
        self.leader = NO_LEADER
        self.is_leader = False
        self.controller_epoch = NO_EPOCH
        self.leader_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        self.partition_epoch = NO_EPOCH
        self.isr: tuple[int, ...] = ()
        self.maximal_isr: tuple[int, ...] = ()
        self.pending_isr_change: LeaderAndIsr | None = None
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.remote_replicas: dict[int, Replica] = {}

    # -- what is asked of it ----------------------------------------------------------

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, of which a partition cannot have more than it has replicas."""
        return min(self.min_insync_replicas, len(self.replicas))

    @property
    def is_under_replicated(self) -> bool:
        """Whether a partition led here has replicas that are not in sync."""
        return self.is_leader and len(self.isr) < len(self.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether a partition led here has fewer in sync than acks=all needs."""
        return self.is_leader and len(self.isr) < self.effective_min_isr

    @property
    def is_at_min_isr(self) -> bool:
        """Whether a partition led here has just as many in sync as acks=all needs."""
        return self.is_leader and len(self.isr) == self.effective_min_isr

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed (KIP-455)."""
        return bool(self.adding_replicas or self.removing_replicas)

    # -- its log ----------------------------------------------------------------------

    def use_log(self, log: Log) -> None:
        """Have a log as this replica's from now on."""
        self.log = log
        log.high_watermark_moved(self.high_watermark)
        log.on_start_moved = self.tell_readers
        self.tell_readers()

    def tell_readers(self) -> None:
        """Something has changed that no append and no order of the controller's tells."""
        self.host.progressed(self.topic_partition)

    def note_registration(self, replica: Replica, broker_epoch: int) -> None:
        """A follower's broker has registered anew: what it asked before counts no more."""
        replica.broker_epoch = broker_epoch
        self.tell_readers()

    def keep_high_watermark_in_log(self) -> None:
        """The log was cut: the high watermark is not outside of it."""
        log = self.log
        self.high_watermark = max(
            min(self.high_watermark, log.log_end_offset), log.log_start_offset
        )
        log.high_watermark_moved(self.high_watermark)
        self.tell_readers()

    # -- assignment -------------------------------------------------------------------

    def update_assignment_and_isr(self, state: PartitionState, *, is_leader: bool) -> None:
        """Take over replicas and ISR as the controller knows them.

        A change that was on its way is none any more: whatever became of it, this is newer.
        """
        self.replicas = state.replicas
        self.adding_replicas = state.adding_replicas
        self.removing_replicas = state.removing_replicas
        if is_leader:
            known = self.remote_replicas
            self.remote_replicas = {
                broker_id: known.get(broker_id) or Replica(broker_id)
                for broker_id in state.replicas
                if broker_id != self.broker_id
            }
        else:
            self.remote_replicas = {}
        self._commit(state.isr if is_leader else ())

    def _commit(self, isr: tuple[int, ...]) -> None:
        self.isr = self.maximal_isr = isr
        self.pending_isr_change = None

    # -- the high watermark -----------------------------------------------------------

    def least_needed_end(self) -> int:
        """The offset before which all replicas that count have everything.

        Besides the ISR those count that are caught up and may soon be in it: else, while the
        leader is alone, its high watermark would run away from one that comes back (Kafka's
        maybeIncrementLeaderHW).
        """
        leader_end = low = self.log.log_end_offset
        now_ms = self.host.monotonic_ms()
        for replica in self.remote_replicas.values():
            if replica.log_end_offset < low and (
                replica.broker_id in self.maximal_isr
                or (
                    replica.is_caught_up(leader_end, now_ms, self.host.lag_ms_max)
                    and self.host.may_join_isr(replica.broker_id)
                )
            ):
                low = replica.log_end_offset
        return low

    # -- changes of the ISR -----------------------------------------------------------

    def maybe_expand_isr(self, replica: Replica) -> LeaderAndIsr | None:
        """Propose to have a follower in the ISR, if it may be there.

        It has to have reached the high watermark and the offset at which this leader began:
        what was committed before lies below one of them.
        """
        end_offset = replica.log_end_offset
        if (
            self.pending_isr_change is not None
            or replica.broker_id in self.isr
            or end_offset < self.high_watermark
            or end_offset < self.leader_epoch_start_offset
            or not self.host.may_join_isr(replica.broker_id)
        ):
            return None
        return self._propose((*self.isr, replica.broker_id))

    def maybe_shrink_isr(self, now_ms: int) -> LeaderAndIsr | None:
        """Propose an ISR without those that did not keep up, if there are any."""
        if not self.is_leader or self.pending_isr_change is not None:
            return None
        lagging = self.out_of_sync_replicas(now_ms)
        if not lagging:
            return None
        change = self._propose(tuple(each for each in self.isr if each not in lagging))
        logger.info(
            "the ISR of %s shrinks from %s to %s: its end is %d, its high watermark %d, and %s",
            self.topic_partition,
            self.isr,
            change.isr,
            self.log.log_end_offset,
            self.high_watermark,
            ", ".join(self._describe(broker_id) for broker_id in lagging),
        )
        return change

    def out_of_sync_replicas(self, now_ms: int) -> list[int]:
        """Those of the ISR that have not been caught up for `replica.lag.time.max.ms`."""
        end_offset = self.log.log_end_offset
        lag_ms_max = self.host.lag_ms_max
        return [
            broker_id
            for broker_id in self.isr
            if broker_id != self.broker_id
            and (
                broker_id not in self.remote_replicas
                or not self.remote_replicas[broker_id].is_caught_up(end_offset, now_ms, lag_ms_max)
            )
        ]

    def _describe(self, broker_id: int) -> str:
        replica = self.remote_replicas.get(broker_id)
        if replica is None:
            return f"broker {broker_id} is no replica"
        return f"broker {broker_id} is at {replica.log_end_offset}"

    def _propose(self, isr: Iterable[int]) -> LeaderAndIsr:
        change = LeaderAndIsr(
            self.controller_epoch,
            self.broker_id,
            self.leader_epoch,
            tuple(isr),
            self.partition_epoch,
        )
        self.pending_isr_change = change
        self.maximal_isr = change.isr if len(change.isr) > len(self.isr) else self.isr
        return change

    def settle_isr_change(self, change: LeaderAndIsr, partition_epoch: int) -> bool:
        """A change was written, as the version `partition_epoch`; returns whether that counts.

        It does not where the controller has been heard of in the meantime.
        """
        if self.pending_isr_change is not change or change.leader_epoch != self.leader_epoch:
            return False
        if partition_epoch < self.partition_epoch:
            return False
        self._commit(change.isr)
        self.partition_epoch = partition_epoch
        logger.info("the ISR of %s is %s", self.topic_partition, self.isr)
        return True

    def isr_change_failed(self, change: LeaderAndIsr, outcome: IsrChangeOutcome) -> None:
        """A change was not written.

        One that was refused stays pending: who wrote the state instead will tell, and until
        then the stricter of both ISRs is the one to go by.
        """
        if self.pending_isr_change is change and outcome is IsrChangeOutcome.NOT_ATTEMPTED:
            self._commit(self.isr)
