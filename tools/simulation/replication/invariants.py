"""What must hold of replicas whatever happens, and what must hold once nothing happens any more.

Looked at after everything that a broker does, at the partitions that it changed; each log is
read through the product's own reader, once for every record. What a leader's high watermark
has passed is committed: it is written down here, and no log may ever say otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ....common.errors import KafkaError
from ....common.partition_state import LeaderAndIsr
from ....common.topic_partition import TopicPartition
from ....protocol.records import iter_batches, iter_records
from ....replication.partition.partition import Partition
from ....storage.io.file_slice import FileSlice
from ....storage.log.log import Log
from ..controller.invariants import InvariantBroken

__all__ = ["Entry", "InvariantBroken", "LoggedViolations", "ReplicationInvariants"]


class Entry(NamedTuple):
    """One record: the leader epoch it was written in, and its value."""

    epoch: int
    value: bytes


class ReplicaView:
    """One replica's records, as they were read.

    Attributes:
        start: the offset of the first.
        matched: up to there they were found to be what is committed.
    """

    __slots__ = ("_generation", "_log", "entries", "matched", "seen", "start")

    def __init__(self) -> None:
        self.start = 0
        self.matched = 0
        self.entries: list[Entry] = []
        self.seen: tuple[object, ...] = ()
        self._log: Log | None = None
        self._generation = -1

    @property
    def end(self) -> int:
        """The offset after the last."""
        return self.start + len(self.entries)

    def read(self, log: Log) -> bool:
        """Read what is new; whether all was read anew."""
        is_anew = log is not self._log or log.generation != self._generation
        if is_anew:
            self._log, self._generation = log, log.generation
            self.start = self.matched = log.log_start_offset
            self.entries = []
        while self.end < log.log_end_offset:
            self._read_on(log)
        return is_anew

    def match(self, committed: Sequence[Entry], first: int, upto: int, who: str) -> None:
        """Compare with what is committed. Raises InvariantBroken."""
        self.matched = max(self.matched, first)
        for offset in range(self.matched, min(upto, self.end, len(committed))):
            if self.entries[offset - self.start] != committed[offset]:
                raise InvariantBroken(
                    f"{who} has {self.entries[offset - self.start]} at {offset}, "
                    f"where {committed[offset]} is committed"
                )
            self.matched = offset + 1

    def _read_on(self, log: Log) -> None:
        end = self.end
        records = log.read(end, 1 << 30).records
        data = records.read() if isinstance(records, FileSlice) else bytes(records)
        for batch in iter_batches(data):
            for record in iter_records(batch):
                if record.offset < self.end:
                    continue  # the log starts within the batch
                if record.offset != self.end:
                    raise InvariantBroken(f"{record.offset} follows {self.end - 1} in {log}")
                self.entries.append(Entry(batch.partition_leader_epoch, record.value or b""))
        if self.end == end:
            raise InvariantBroken(f"{log.topic_partition} ends before {log.log_end_offset}")


class History:
    """What is known of one partition.

    Attributes:
        committed: by offset, everything that any leader's high watermark has passed.
        deleted_to: records before were to be deleted. They may come back after a crash, and a
            replica that was behind may have others there, as in Kafka: nobody looks at them.
        state: as the store holds it.
        is_lossy: somebody led it uncleanly: what was committed may be gone.
    """

    __slots__ = ("committed", "deleted_to", "is_lossy", "leaders", "state", "views", "watermarks")

    def __init__(self, state: LeaderAndIsr, brokers: Iterable[int]) -> None:
        self.committed: list[Entry] = []
        self.deleted_to = 0
        self.state = state
        self.is_lossy = False
        self.views = {broker_id: ReplicaView() for broker_id in brokers}
        self.leaders: dict[int, int] = {}
        self.watermarks: dict[tuple[int, int, int], int] = {}


class LoggedViolations(logging.Handler):
    """Exceptions that a broker would live with, and only write into its log: none may happen."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep those that are no refusals."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, KafkaError):
            self.seen.append(f"{record.getMessage()}: {error!r}")


class ReplicationInvariants:
    """Watches over one run.

    Args:
        states: the partitions, as they begin.
        brokers: all there are.
        allows_unclean: whether leaders may come from outside the ISR.

    Attributes:
        damaged: brokers that lost power and are still in an ISR, where they promise more
            than they have until the controller has noticed.
        acknowledged: how many records were.
        unanswered: how many batches must still be acknowledged before there can be rest.
    """

    def __init__(
        self,
        states: Mapping[TopicPartition, LeaderAndIsr],
        brokers: Sequence[int],
        *,
        allows_unclean: bool,
    ) -> None:
        self._allows_unclean = allows_unclean
        self.damaged: set[int] = set()
        self.acknowledged = 0
        self.unanswered = 0
        self._promised: list[tuple[TopicPartition, int, bytes]] = []
        self._histories = {each: History(state, brokers) for each, state in states.items()}

    def state_of(self, partition: TopicPartition) -> LeaderAndIsr:
        """As the store held it last."""
        return self._histories[partition].state

    # -- at each step -------------------------------------------------------------------

    def state_written(self, partition: TopicPartition, state: LeaderAndIsr) -> None:
        """The store has another state of a partition."""
        history = self._histories[partition]
        if not state.isr or (state.leader >= 0 and state.leader not in state.isr):
            raise InvariantBroken(f"that is no state: {state}")
        if not set(state.isr) & set(history.state.isr):
            if not self._allows_unclean:
                raise InvariantBroken(f"an unclean leader: {state} after {history.state}")
            history.is_lossy = True
        history.state = state
        for broker_id in sorted(self.damaged):
            if not any(broker_id in each.state.isr for each in self._histories.values()):
                self.damaged.discard(broker_id)
        self._check_isr(partition, history)

    def lost_power(self, broker_id: int) -> None:
        """A broker may have lost what it had not synced."""
        for history in self._histories.values():
            if broker_id in history.state.isr:
                self.damaged.add(broker_id)
        for history in self._histories.values():
            history.is_lossy |= self._allows_unclean

    def note_acknowledged(
        self, partition: TopicPartition, base_offset: int, values: Sequence[bytes]
    ) -> None:
        """A producer's records were acknowledged: they must be committed."""
        self.acknowledged += len(values)
        self._promised += [(partition, base_offset + at, each) for at, each in enumerate(values)]

    def note_deletion(self, partition: TopicPartition, offset: int) -> None:
        """Somebody wants the records before an offset to be deleted."""
        history = self._histories[partition]
        history.deleted_to = max(history.deleted_to, offset)

    def note_consumed(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """A consumer was given a record: it must be committed."""
        self._promised.append((partition, offset, value))

    def _check_promises(self) -> None:
        """Looked at when the step is over: high watermarks that moved in it count."""
        promised, self._promised = self._promised, []
        for partition, offset, value in promised:
            history = self._histories[partition]
            found = history.committed[offset : offset + 1]
            if history.is_lossy or offset < history.deleted_to:
                continue
            if [each.value for each in found] != [value]:
                raise InvariantBroken(
                    f"{partition} promised {value!r} at {offset}, where {found} is committed"
                )

    def check_broker(
        self, broker_id: int, life: int, partitions: Mapping[TopicPartition, Partition]
    ) -> None:
        """A broker has done something: look at the partitions that it changed."""
        for topic_partition, partition in partitions.items():
            history = self._histories[topic_partition]
            view = history.views[broker_id]
            log = partition.log
            seen = (
                log,
                log.generation,
                log.log_end_offset,
                log.log_start_offset,
                partition.high_watermark,
                partition.is_leader,
                partition.leader_epoch,
            )
            if seen != view.seen:
                view.seen = seen
                self._check_replica(topic_partition, history, broker_id, life, partition)
        if self._promised:
            self._check_promises()

    def _check_replica(
        self,
        topic_partition: TopicPartition,
        history: History,
        broker_id: int,
        life: int,
        partition: Partition,
    ) -> None:
        view = history.views[broker_id]
        who = f"broker {broker_id} with {topic_partition}"
        log_end, high_watermark = partition.log_end_offset, partition.high_watermark
        if not partition.log_start_offset <= high_watermark <= log_end:
            raise InvariantBroken(
                f"{who}: its high watermark {high_watermark} is not within "
                f"[{partition.log_start_offset}, {log_end}]"
            )
        had_end = view.end
        is_anew = view.read(partition.log)
        if partition.is_leader:
            self._check_leader(history, who, broker_id, life, partition)
        if history.is_lossy:
            return
        committed = history.committed
        view.match(committed, history.deleted_to, high_watermark, who)
        if high_watermark > len(committed):
            if not partition.is_leader:
                raise InvariantBroken(
                    f"{who} follows with a high watermark of {high_watermark}, "
                    f"and no leader had more than {len(committed)}"
                )
            if view.start > len(committed):
                raise InvariantBroken(f"{who} begins at {view.start}, behind what is committed")
            committed += view.entries[len(committed) - view.start : high_watermark - view.start]
            self._check_isr(topic_partition, history)
        elif is_anew or log_end < had_end:
            self._check_isr(topic_partition, history)

    def _check_leader(
        self, history: History, who: str, broker_id: int, life: int, partition: Partition
    ) -> None:
        epoch = partition.leader_epoch
        if history.leaders.setdefault(epoch, broker_id) != broker_id:
            raise InvariantBroken(f"{who} leads in epoch {epoch} as {history.leaders[epoch]} does")
        key = (epoch, broker_id, life)
        if partition.high_watermark < history.watermarks.get(key, 0):
            raise InvariantBroken(
                f"{who} leads in epoch {epoch}, and its high watermark goes back to "
                f"{partition.high_watermark} from {history.watermarks[key]}"
            )
        history.watermarks[key] = partition.high_watermark

    def _check_isr(self, topic_partition: TopicPartition, history: History) -> None:
        """Who is in sync has everything that is committed; dead or alive."""
        if history.is_lossy:
            return
        committed = history.committed
        for broker_id in history.state.isr:
            if broker_id in self.damaged:
                continue
            view = history.views[broker_id]
            if view.end < len(committed):
                raise InvariantBroken(
                    f"broker {broker_id} is in sync with {topic_partition} and ends at "
                    f"{view.end}, and {len(committed)} records are committed: {history.state}"
                )
            who = f"broker {broker_id}, in sync with {topic_partition},"
            view.match(committed, history.deleted_to, len(committed), who)

    # -- at rest ------------------------------------------------------------------------

    def check_rest(
        self, replicas: Mapping[int, Mapping[TopicPartition, Partition]], brokers: Sequence[int]
    ) -> None:
        """All are alive and have caught up: all logs are the same, from the last start on.

        Args:
            replicas: by broker, what it hosts.
            brokers: all there are.
        """
        for topic_partition, history in self._histories.items():
            if set(history.state.isr) != set(brokers):
                raise InvariantBroken(
                    f"not all are in sync with {topic_partition}: {history.state}"
                )
            leader = replicas[history.state.leader][topic_partition]
            starts = (replicas[each][topic_partition].log_start_offset for each in brokers)
            first = max(history.deleted_to, *starts)
            kept = history.views[history.state.leader]
            for broker_id in brokers:
                view = history.views[broker_id]
                partition = replicas[broker_id][topic_partition]
                if partition.is_leader != (broker_id == history.state.leader):
                    raise InvariantBroken(f"broker {broker_id} does not know its part")
                ends = (partition.log_end_offset, partition.high_watermark)
                if ends != (leader.log_end_offset, leader.log_end_offset):
                    raise InvariantBroken(
                        f"broker {broker_id} ends {topic_partition} at {ends}, its leader at "
                        f"{leader.log_end_offset}"
                    )
                kept_epochs = _epochs_from(leader, first)
                if _epochs_from(partition, first) != kept_epochs:
                    raise InvariantBroken(
                        f"broker {broker_id} knows other epochs of {topic_partition} than its "
                        f"leader: {partition.log.epochs.entries}, {leader.log.epochs.entries}"
                    )
                if view.entries[first - view.start :] != kept.entries[first - kept.start :]:
                    raise InvariantBroken(f"logs of {topic_partition} differ on {broker_id}")
            if not history.is_lossy:
                self._check_all_survived(topic_partition, history, kept)

    def _check_all_survived(
        self, topic_partition: TopicPartition, history: History, kept: ReplicaView
    ) -> None:
        """What was acknowledged is committed, and what is committed is there."""
        for offset in range(max(kept.start, history.deleted_to), len(history.committed)):
            if kept.entries[offset - kept.start : offset - kept.start + 1] != [
                history.committed[offset]
            ]:
                raise InvariantBroken(f"{topic_partition} has lost {history.committed[offset]}")


def _epochs_from(partition: Partition, first: int) -> list[tuple[int, int]]:
    """Epochs and where they begin, of records from an offset on."""
    epochs = partition.log.epochs.entries
    ends = [start for _, start in epochs[1:]] + [partition.log_end_offset]
    return [
        (epoch, max(start, first))
        for (epoch, start), end in zip(epochs, ends, strict=False)
        if end > first
    ]
