"""What must hold of replicas: of their logs, high watermarks and in-sync replicas.

Looked at after everything that a broker does, at the partitions that it changed; each log is
read through the product's own reader, once for every record. What a leader's high watermark
has passed is committed: it is written down here, and no log may ever say otherwise.

What is promised: a record that was acknowledged with acks=all is never lost, for as long as not all
brokers that are in sync lose power at the same time. A process that is killed loses nothing that it
had written. A broker that loses power loses what it had not synced, so it must have left the ISR
before another one of it goes; `Faults.may_lose_power` says when that is so. Where a leader was
elected uncleanly records may be lost, and the logs must agree all the same.

What is deleted is not lost: where a log begins later than any has before, its records were to be
deleted, or they are committed and older than the retention by the clock of that very broker. The
checker keeps them: what was promised of them is still held against what was committed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ....common.partition_state import LeaderAndIsr
from ....common.topic_partition import TopicPartition
from ....protocol.records import iter_batches, iter_records
from ....replication.partition.partition import Partition
from ....storage.io.file_slice import FileSlice
from ....storage.log.log import Log
from ..node import Node
from .invariants import InvariantBroken
from .store_checker import Held

Key = tuple[bytes, int]
"""A partition: the id of its topic, and its index."""


class Entry(NamedTuple):
    """One record: the leader epoch it was written in, its value, and its timestamp."""

    epoch: int
    value: bytes
    timestamp: int


State: TypeAlias = tuple[Log, int, int, int, int, bool, int]
"""Of a partition: it is looked at again once any of this has changed."""


@lru_cache(maxsize=256)
def _decoded(data: bytes) -> list[tuple[int, Entry]]:
    """Records and their offsets; what a leader has, its followers soon have byte by byte."""
    return [
        (record.offset, Entry(batch.partition_leader_epoch, record.value or b"", record.timestamp))
        for batch in iter_batches(data)
        for record in iter_records(batch)
    ]


class ReplicaView:
    """One replica's records, as they were read.

    Attributes:
        start: the offset of the first.
        matched: up to there they were found to be what is committed.
        seen: the partition's state when it was last looked at; None: it never was.
    """

    __slots__ = ("_generation", "_log", "entries", "matched", "seen", "start")

    def __init__(self) -> None:
        self.start = 0
        self.matched = 0
        self.entries: list[Entry] = []
        self.seen: State | None = None
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
        for offset, entry in _decoded(data):
            if offset < self.end:
                continue  # the log starts within the batch
            if offset != self.end:
                raise InvariantBroken(f"{offset} follows {self.end - 1} in {log}")
            self.entries.append(entry)
        if self.end == end:
            raise InvariantBroken(f"{log.topic_partition} ends before {log.log_end_offset}")


class History:
    """What is known of one partition.

    Attributes:
        committed: by offset, everything that any leader's high watermark has passed.
        deleted_to: records before were to be deleted.
        expired_to: records before were deleted by retention, somewhere.
        state: as the store holds it.
        removing: replicas that are to go. Their leader waits for them no more though they are in
            the ISR still, as in Kafka: the controller elects none of them.
        is_lossy: somebody led it uncleanly, or may have: what was committed may be gone.
        may_differ: its leader lost power and perhaps records, and may have led again in the same
            epoch, with others at their offsets: a new controller does not see that it was away.
        has_ended: a broker's disk failed just after it had written, before that was seen here.
        promised: records, by their offsets, that it acknowledged nevertheless: they are there when
            it is back.
    """

    __slots__ = (
        "committed",
        "deleted_to",
        "expired_to",
        "has_ended",
        "is_lossy",
        "may_differ",
        "name",
        "promised",
        "removing",
        "state",
        "views",
        "watermarks",
    )

    def __init__(self, name: TopicPartition) -> None:
        self.name = name
        self.committed: list[Entry] = []
        self.deleted_to = 0
        self.expired_to = 0
        self.state: LeaderAndIsr | None = None
        self.removing: tuple[int, ...] = ()
        self.is_lossy = False
        self.may_differ = False
        self.has_ended = False
        self.promised: list[tuple[int, bytes]] = []
        self.views: dict[int, ReplicaView] = {}
        self.watermarks: dict[tuple[int, int, int], int] = {}

    @property
    def gone_to(self) -> int:
        """Logs may begin there: what is before was to be deleted, or was by retention.

        It may come back after a crash, and a replica that was behind may have others there, as in
        Kafka: where the two part lies before its leader's log, so nobody cuts it. What logs have
        there is not looked at.
        """
        return max(self.deleted_to, self.expired_to)


class Hosted(NamedTuple):
    """A partition as one process of a broker hosts it."""

    partition: Partition
    key: Key
    history: History
    view: ReplicaView


class BrokerLogs:
    """What one process of a broker hosts, as it was when it was last looked at.

    Args:
        life: which process.

    Attributes:
        hosted: its partitions, those among them that it has stopped and not deleted.
        partitions: those that it does not only have on its disk.
        states: of each of these.
    """

    __slots__ = ("hosted", "life", "partitions", "states")

    def __init__(self, life: int) -> None:
        self.life = life
        self.hosted: dict[TopicPartition, Hosted] = {}
        self.partitions: list[Partition] = []
        self.states: list[State] = []


class LogChecker:
    """Watches over the logs of one run.

    Args:
        note_leader: called with topic id, partition and epoch, and who leads there.
        allows_unclean: whether leaders may come from outside the ISR everywhere.
        retention_ms: how old records become; those of internal topics stay.

    Attributes:
        damaged: brokers that lost power and are still in an ISR, where they promise more
            than they have until the controller has noticed.
        acknowledged: how many records were.
        expired: how many records retention has deleted.
    """

    def __init__(
        self,
        note_leader: Callable[[tuple[bytes, int, int], int], None],
        *,
        allows_unclean: bool,
        retention_ms: int,
    ) -> None:
        self.allows_unclean = allows_unclean
        self.retention_ms = retention_ms
        self.expired = 0
        self.damaged: set[int] = set()
        self.acknowledged = 0
        self._note_leader = note_leader
        self._histories: dict[Key, History] = {}
        self._brokers: dict[int, BrokerLogs] = {}

    def history(self, topic_id: bytes, name: TopicPartition) -> History:
        """Of a partition."""
        key = (topic_id, name.partition)
        found = self._histories.get(key)
        if found is None:
            found = self._histories[key] = History(name)
        return found

    # -- what happens --------------------------------------------------------------------------

    def state_written(self, held: Held, *, is_unclean: bool) -> None:
        """The store has another state of a partition."""
        assert held.state is not None
        history = self.history(held.topic_id, held.topic_partition)
        former = history.state
        if former is not None and not set(held.state.isr) & set(former.isr):
            if not is_unclean:
                raise InvariantBroken(f"an unclean leader: {held} after {former}")
            history.is_lossy = True
        history.state = held.state
        history.removing = held.removing
        for broker_id in sorted(self.damaged):
            if not self.is_in_sync(broker_id):
                self.damaged.discard(broker_id)
        self._check_isr(history)

    def is_in_sync(self, broker_id: int) -> bool:
        """Whether a broker is in any ISR."""
        return any(
            each.state is not None and broker_id in each.state.isr
            for each in self._histories.values()
        )

    def topic_deleted(self, topic_id: bytes) -> None:
        """Nothing of it is to be kept."""
        for key, history in self._histories.items():
            history.is_lossy |= key[0] == topic_id

    def lost_power(self, broker_id: int) -> None:
        """A broker may have lost what it had not synced."""
        if self.is_in_sync(broker_id):
            self.damaged.add(broker_id)
        for history in self._histories.values():
            history.is_lossy |= self.allows_unclean
            led = history.state is not None and history.state.leader == broker_id
            history.may_differ |= self.allows_unclean and led  # else its controller stays and sees

    def note_acknowledged(
        self, topic_id: bytes, name: TopicPartition, base_offset: int, values: Sequence[bytes]
    ) -> None:
        """A producer's records were acknowledged by all: they must be committed."""
        self.acknowledged += len(values)
        key = (topic_id, name.partition)
        for offset, value in enumerate(values, base_offset):
            history = self._histories.get(key)
            if history is not None and history.has_ended and offset >= len(history.committed):
                history.promised.append((offset, value))
            else:
                self._promise(key, offset, value)

    def note_consumed(
        self, topic_id: bytes, name: TopicPartition, offset: int, value: bytes
    ) -> None:
        """A consumer was given a record: it must be committed."""
        self._promise((topic_id, name.partition), offset, value)

    def note_deletion(self, topic_id: bytes, name: TopicPartition, offset: int) -> None:
        """Somebody wants the records before an offset to be deleted."""
        history = self.history(topic_id, name)
        history.deleted_to = max(history.deleted_to, offset)

    def _promise(self, key: Key, offset: int, value: bytes) -> None:
        history = self._histories.get(key)
        if history is None or history.is_lossy or offset < history.deleted_to:
            return
        found = history.committed[offset : offset + 1]
        if [each.value for each in found] != [value]:
            raise InvariantBroken(
                f"{history.name} promised {value!r} at {offset}, where {found} is committed"
            )

    # -- after each event of a broker ----------------------------------------------------------

    def check_node(self, node: Node, *, is_cut_off: bool = False) -> None:
        """A broker has done something: look at the partitions that it changed.

        Args:
            node: the broker's.
            is_cut_off: whether it lost its power in the middle of that: what it would have done
                next, such as lowering a high watermark behind the log's end, it never does.
        """
        broker = node.broker
        if broker is None:
            return
        known = self._brokers.get(node.broker_id)
        if known is None or known.life != node.life:
            # What it hosted before it hosts still, and will say so.
            known = self._brokers[node.broker_id] = BrokerLogs(node.life)
        hosted = known.hosted
        by_name = broker.replica_manager.partitions
        partitions = list(by_name.values())
        states: list[State] = [
            (
                log := each.log,
                log.generation,
                log.log_start_offset,
                log.log_end_offset,
                each.high_watermark,
                each.is_leader,
                each.leader_epoch,
            )
            for each in partitions
        ]
        is_same = states == known.states and partitions == known.partitions
        if is_same and len(hosted) == len(partitions):
            return  # so it is after most events
        known.partitions, known.states = partitions, states
        for partition, state in zip(partitions, states, strict=True):
            topic_partition = partition.topic_partition
            found = hosted.get(topic_partition)
            if found is None or found.partition is not partition:
                found = hosted[topic_partition] = self._host(node, partition)
            if state != found.view.seen:
                found.view.seen = state
                self._check_replica(found, node, is_cut_off=is_cut_off)
        if len(hosted) > len(partitions):
            logs = broker.log_manager
            for topic_partition in [each for each in hosted if each not in by_name]:
                gone = hosted[topic_partition]
                if logs.get_log(topic_partition) is gone.partition.log:
                    continue  # it was stopped, not deleted: what is in sync is still there
                del hosted[topic_partition]
                if logs.directories.online:
                    gone.history.views.pop(node.broker_id, None)
                else:  # it ends, and is there again
                    gone.history.has_ended = True

    def _host(self, node: Node, partition: Partition) -> Hosted:
        history = self.history(partition.topic_id, partition.topic_partition)
        view = history.views.get(node.broker_id)
        if view is None:
            view = history.views[node.broker_id] = ReplicaView()
        key = (partition.topic_id, partition.topic_partition.partition)
        return Hosted(partition, key, history, view)

    def _check_replica(self, hosted: Hosted, node: Node, *, is_cut_off: bool) -> None:
        partition, key, history, view = hosted
        who = f"{node} with {history.name}"
        log_end, high_watermark = partition.log_end_offset, partition.high_watermark
        if not (is_cut_off or partition.log_start_offset <= high_watermark <= log_end):
            raise InvariantBroken(
                f"{who}: its high watermark {high_watermark} is not within "
                f"[{partition.log_start_offset}, {log_end}]"
            )
        had_end = view.end
        is_anew = view.read(partition.log)
        if partition.is_leader:
            self._check_leader(key, history, who, node, partition)
        if history.is_lossy:
            return
        committed = history.committed
        view.match(committed, history.gone_to, high_watermark, who)
        if high_watermark > len(committed):
            if not partition.is_leader:
                raise InvariantBroken(
                    f"{who} follows with a high watermark of {high_watermark}, "
                    f"and no leader had more than {len(committed)}"
                )
            if view.start > len(committed):
                raise InvariantBroken(f"{who} begins at {view.start}, behind what is committed")
            committed += view.entries[len(committed) - view.start : high_watermark - view.start]
            self._check_isr(history)
        elif is_anew or log_end < had_end:
            self._check_isr(history)
        if partition.log_start_offset > history.gone_to:
            self._check_deleted(history, who, node, partition.log_start_offset)

    def _check_deleted(self, history: History, who: str, node: Node, start: int) -> None:
        """A log begins where none has before: nothing but retention may have done that."""
        first, committed = history.gone_to, history.committed
        if start > len(committed):
            raise InvariantBroken(f"{who} begins at {start}, of {len(committed)} committed records")
        now_ms = node.clock.now_ms()
        for offset in range(first, start):
            age_ms = now_ms - committed[offset].timestamp
            if age_ms <= self.retention_ms or history.name.topic.startswith("__"):
                raise InvariantBroken(
                    f"{who} has deleted {committed[offset]} at {offset}, "
                    f"{age_ms} ms old by its clock"
                )
        self.expired += start - first
        history.expired_to = start

    def _check_leader(
        self, key: Key, history: History, who: str, node: Node, partition: Partition
    ) -> None:
        epoch = partition.leader_epoch
        self._note_leader((*key, epoch), node.broker_id)
        term = (epoch, node.broker_id, node.life)
        if partition.high_watermark < history.watermarks.get(term, 0):
            raise InvariantBroken(
                f"{who} leads in epoch {epoch}, and its high watermark goes back to "
                f"{partition.high_watermark} from {history.watermarks[term]}"
            )
        history.watermarks[term] = partition.high_watermark

    def _check_isr(self, history: History) -> None:
        """Who is in sync has everything that is committed; dead or alive."""
        if history.is_lossy or history.state is None:
            return
        committed = history.committed
        for broker_id in history.state.isr:
            view = history.views.get(broker_id)
            if (
                broker_id in self.damaged
                or broker_id in history.removing
                or (view is None and not committed)
            ):
                continue
            if view is None or view.end < len(committed):
                end = None if view is None else view.end
                raise InvariantBroken(
                    f"broker {broker_id} is in sync with {history.name} and ends at "
                    f"{end}, and {len(committed)} records are committed: {history.state}"
                )
            who = f"broker {broker_id}, in sync with {history.name},"
            view.match(committed, history.gone_to, len(committed), who)

    # -- at rest -------------------------------------------------------------------------------

    def check_rest(self, held_partitions: Iterable[Held], nodes: Mapping[int, Node]) -> None:
        """All are alive and have caught up: all logs are the same, from the last start on."""
        for held in held_partitions:
            assert held.state is not None
            history = self.history(held.topic_id, held.topic_partition)
            replicas = {
                each: nodes[each].partitions[held.topic_partition] for each in held.replicas
            }
            leader = replicas[held.state.leader]
            first = max(history.gone_to, *(each.log_start_offset for each in replicas.values()))
            kept = history.views[held.state.leader]
            for broker_id, partition in replicas.items():
                view = history.views[broker_id]
                if partition.is_leader != (broker_id == held.state.leader):
                    raise InvariantBroken(f"broker {broker_id} does not know its part")
                ends = (partition.log_end_offset, partition.high_watermark)
                if ends != (leader.log_end_offset, leader.log_end_offset):
                    raise InvariantBroken(
                        f"broker {broker_id} ends {history.name} at {ends}, its leader at "
                        f"{leader.log_end_offset}"
                    )
                kept_epochs = _epochs_from(leader, first)
                if _epochs_from(partition, first) != kept_epochs and not history.may_differ:
                    raise InvariantBroken(
                        f"broker {broker_id} knows other epochs of {history.name} than its "
                        f"leader: {partition.log.epochs.entries}, {leader.log.epochs.entries}"
                    )
                ours, theirs = (
                    view.entries[first - view.start :],
                    kept.entries[first - kept.start :],
                )
                if ours != theirs and not history.may_differ:
                    raise InvariantBroken(f"logs of {history.name} differ on {broker_id}")
            if not history.is_lossy:
                _check_all_survived(history, kept)
            for offset, value in history.promised:
                self._promise((held.topic_id, held.topic_partition.partition), offset, value)
            history.promised.clear()
            history.has_ended = False

    def is_lossy(self, key: Key) -> bool:
        """Whether records of a partition may be lost."""
        history = self._histories.get(key)
        return history is None or history.is_lossy

    def gone(self, key: Key) -> set[bytes]:
        """The values of the records of a partition that may be deleted."""
        history = self._histories[key]
        return {each.value for each in history.committed[: history.gone_to]}

    def committed(self, held: Held) -> list[Entry] | None:
        """All that was ever committed of a partition; None where some of it may be lost."""
        history = self.history(held.topic_id, held.topic_partition)
        return None if history.is_lossy else history.committed


def _check_all_survived(history: History, kept: ReplicaView) -> None:
    """What was acknowledged is committed, and what is committed is there."""
    for offset in range(max(kept.start, history.gone_to), len(history.committed)):
        if kept.entries[offset - kept.start : offset - kept.start + 1] != [
            history.committed[offset]
        ]:
            raise InvariantBroken(f"{history.name} has lost {history.committed[offset]}")


def _epochs_from(partition: Partition, first: int) -> list[tuple[int, int]]:
    """Epochs and where they begin, of records from an offset on."""
    epochs = partition.log.epochs.entries
    ends = [start for _, start in epochs[1:]] + [partition.log_end_offset]
    return [
        (epoch, max(start, first))
        for (epoch, start), end in zip(epochs, ends, strict=False)
        if end > max(start, first)  # of an epoch without records only its leader knows
    ]
