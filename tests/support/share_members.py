"""Members of a share group that are other people's clients, and what is true of their history.

Those of Java and of Go are run by `tests/interop/java/.../ShareMembers.java` and
`tests/interop/go/share.go`: standard input says who joins and who leaves, and lines of output say
what each member reads and what became of its acknowledgements.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer, TopicPartition

from .line_process import LineProcess

JAVA_CLASS = "odradek.interop.ShareMembers"
SECONDS_MAX = 120.0
POLL_SECONDS = 0.2
LOST_LOCK = ("InvalidRecordState", "INVALID_RECORD_STATE")
"""How clients call the refusal of an acknowledgement that came too late: somebody else may have the
record by now."""


class Delivery(NamedTuple):
    """One record that a member was given; `times` is its delivery count."""

    member: str
    partition: int
    offset: int
    times: int
    value: str


class ShareHistory:
    """What happened to all members of one group, in the order in which it was heard of.

    Attributes:
        deliveries: in order.
        acknowledged: by partition and offset, how often that was confirmed.
        refusals: the lines that say of acknowledgements that they failed.
        unanswered: the records of whose last delivery nothing is known: their acknowledgement was
            neither confirmed nor refused.
        failures: what should not happen to any member.
        unknown: the records of which it may never be known whether they were accepted: a member
            was killed, or a broker went, between an acknowledgement and its answer.
        broker_failed: whether a broker did, so that an acknowledgement that is refused as too late
            may be one that a client sent again, for it had no answer when it was accepted.
        leader_woke: whether a broker was frozen for longer than its session and went on. Until it
            hears that others lead, it hands out what it knows, as Kafka's does: a record may come
            again that is done with, but only to be refused.
    """

    def __init__(self, delivery_count_max: int = 5) -> None:
        self.deliveries: list[Delivery] = []
        self.acknowledged: Counter[tuple[int, int]] = Counter()
        self.refusals: list[str] = []
        self.unanswered: set[tuple[int, int]] = set()
        self.failures: list[str] = []
        self.unknown: set[tuple[int, int]] = set()
        self.closed: set[str] = set()
        self.broker_failed = False
        self.leader_woke = False
        self._member_killed = False
        self._accepted: set[tuple[int, int]] = set()
        self._delivery_count_max = delivery_count_max
        self._changed = threading.Condition()

    def hear(self, line: str) -> None:
        """Take one line of a member's."""
        name, what, *details = line.split(" ")
        with self._changed:
            if what in ("read", "again"):
                partition, offset, count = map(int, details[:3])
                self._delivered(Delivery(name, partition, offset, count, details[3]), what)
            elif what == "acknowledged":
                partition = int(details[0])
                for offset in map(int, details[1:]):
                    self._confirmed(partition, offset)
            elif what == "refused":
                self.refusals.append(line)
                keys = {(int(details[1]), int(offset)) for offset in details[2:]}
                self.unanswered -= keys
                if self.broker_failed or not any(each in details[0] for each in LOST_LOCK):
                    self.unknown |= keys
            elif what == "failed":
                self.failures.append(line)
            elif what == "closed":
                self.closed.add(name)
            self._changed.notify_all()

    def _delivered(self, delivery: Delivery, what: str) -> None:
        key = (delivery.partition, delivery.offset)
        self.unanswered.add(key)
        if what == "read":
            self.deliveries.append(delivery)
        if key in self._accepted and what == "read" and not self.leader_woke:
            self.failures.append(f"{delivery} was accepted before")
        if not 1 <= delivery.times <= self._delivery_count_max:
            self.failures.append(f"{delivery} is above the limit")

    def _confirmed(self, partition: int, offset: int) -> None:
        self.acknowledged[partition, offset] += 1
        self.unanswered.discard((partition, offset))
        value = self.value_of(partition, offset)
        if not value.startswith(("release", "renew")):
            if (partition, offset) in self._accepted:
                self.failures.append(f"{value} was done with twice")
            self._accepted.add((partition, offset))

    def killed(self, member: str) -> None:
        """A member was killed: what it acknowledged last may be stored, and nobody hears of it."""
        with self._changed:
            self._member_killed = True
            last = {(each.partition, each.offset): each.member for each in self.deliveries}
            left = {key for key in self.unanswered if last[key] == member}
            self.unanswered -= left
            self.unknown |= left
            self._changed.notify_all()

    def value_of(self, partition: int, offset: int) -> str:
        """The value of a record that was delivered."""
        return next(
            each.value
            for each in reversed(self.deliveries)
            if (each.partition, each.offset) == (partition, offset)
        )

    def counts(self) -> dict[str, list[int]]:
        """By value, the delivery counts that its record came with, in order."""
        found: dict[str, list[int]] = defaultdict(list)
        for each in self.deliveries:
            found[each.value].append(each.times)
        return found

    def wait(self, until: Callable[[ShareHistory], bool], what: str) -> None:
        """Wait until something holds. Raises AssertionError if it does not in time."""
        with self._changed:
            done = self._changed.wait_for(lambda: self.failures or until(self), SECONDS_MAX)
            assert not self.failures, self.failures
            assert done, f"{what}; {self._open()}"

    def _open(self) -> str:
        """What is not settled, for who reads of a failure."""
        confirmed = {self.value_of(*key) for key in self.acknowledged}
        others = {value: times for value, times in self.counts().items() if value not in confirmed}
        return (
            f"{len(self.deliveries)} deliveries of {len(self.counts())} values; without an answer:"
            f" {self.unanswered}; not confirmed: {others}; refused: {self.refusals}"
        )

    def check(self) -> None:
        """Nothing has gone wrong. Raises AssertionError."""
        assert not self.failures, self.failures

    def check_all_done(self, values: Iterable[str]) -> None:
        """The same, and each value was confirmed to be done with, as far as that can be known.

        One that is released each time is done with when it was delivered as often as it may be. A
        delivery counts though no member hears of it: its answer went with a broker, or its member
        was killed, or dropped what it had from the former leader.

        Raises:
            AssertionError: a value is not.
        """
        self.check()
        counts = self.counts()
        done = {self.value_of(*key) for key in self._accepted | self.unknown}
        heard_min = 1 if self.broker_failed or self._member_killed else self._delivery_count_max
        lost = [
            value
            for value in values
            if value not in done
            and not (value.startswith("release") and max(counts[value]) >= heard_min)
        ]
        assert not lost, f"{ {each: counts[each] for each in lost} }; {self._open()}"


class ShareMembers(LineProcess):
    """The process of some members; a context manager that ends it.

    Args:
        program: the command that runs them, without its arguments.
        history: hears of everything.
        bootstrap: the broker.
        topic: what they read.
        group: its id.
        errors: a file for the process's standard error.
    """

    def __init__(
        self,
        program: Sequence[str],
        history: ShareHistory,
        bootstrap: str,
        topic: str,
        group: str,
        errors: Path,
    ) -> None:
        self._history = history
        super().__init__([*program, bootstrap, topic, group], history.hear, errors)

    def join(self, name: str) -> None:
        """Have a member join."""
        self.say(f"join {name}")

    def leave(self, name: str) -> None:
        """Have a member leave, and wait until it has."""
        self.say(f"leave {name}")
        self._history.wait(lambda history: name in history.closed, f"{name} does not close")

    def kill(self) -> None:
        """End all its members at once, without a word."""
        super().kill()
        self.wait_until_heard()


def _acknowledge_type(value: str) -> AcknowledgeType:
    if value.startswith("release"):
        return AcknowledgeType.RELEASE
    if value.startswith("reject"):
        return AcknowledgeType.REJECT
    return AcknowledgeType.ACCEPT


class LibrdkafkaMember:
    """One member that is librdkafka's share consumer, in a thread, which does as the others do.

    A context manager, at whose end it leaves the group.

    Args:
        name: in the history.
        history: hears of everything.
        bootstrap: the broker.
        topic: what it reads.
        group: its id.
    """

    def __init__(
        self, name: str, history: ShareHistory, bootstrap: str, topic: str, group: str
    ) -> None:
        self._name = name
        self._history = history
        self._leaving = threading.Event()
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "share.acknowledgement.mode": "explicit",
                "log_level": 2,
            }
        )
        self._consumer.subscribe([topic])
        self._consumer.set_acknowledgement_commit_callback(self._answered)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            while not self._leaving.is_set():
                for message in self._consumer.poll(timeout=POLL_SECONDS):
                    if message.error() is not None:
                        self._say(f"failed {message.error()}")
                        continue
                    at = f"{message.partition()} {message.offset()} {message.delivery_count()}"
                    value = (message.value() or b"").decode()
                    self._say(f"read {at} {value}")
                    self._consumer.acknowledge(message, _acknowledge_type(value))
                self._consumer.commit_sync()
            self._consumer.close()
        except KafkaException as error:
            self._say(f"failed {error}")
        self._say("closed")

    def _answered(
        self, offsets: dict[TopicPartition, set[int]], refusal: KafkaException | None
    ) -> None:
        what = "acknowledged" if refusal is None else f"refused {refusal.args[0].name()}"
        for at, found in offsets.items():
            self._say(f"{what} {at.partition} {' '.join(map(str, found))}")

    def _say(self, what: str) -> None:
        self._history.hear(f"{self._name} {what}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._leaving.set()
        self._thread.join(SECONDS_MAX)
