"""A pipeline that is to be exactly once: its input, its worker, and those who read what it writes.

The input is written steadily; a worker (`exactly_once_worker`) reads it, and is replaced as soon
as it ends; a read_committed reader follows the output all the time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from .exactly_once_checker import ExactlyOnceChecker, Place
from .exactly_once_worker import FENCED_EXIT, Settings, Step

PROGRESS_SECONDS_MAX = 120.0
"""So soon after any fault a worker commits again what was written after the fault."""
RECORDS_PER_SECOND = 60
POLL_SECONDS = 0.1
TESTS = Path(__file__).parents[1]
WORKER = "support.exactly_once_worker"
KILLED = -9
DOUBLINGS_MAX = 3
"""Of the patience of workers."""
STEADY_COMMITS = 5
"""A worker that has done so many is not held up by a busy machine."""


class Worker:
    """One worker after another, each a process; a context manager that ends them.

    Args:
        settings: for all of them.
        log_path: where their standard error goes.

    Attributes:
        steps: how often each step was done.
        starts: how many workers there were.
    """

    def __init__(self, settings: Settings, log_path: Path) -> None:
        self.settings = settings
        self.steps: Counter[str] = Counter()
        self.starts = 0
        self.reasons: deque[str] = deque(maxlen=20)
        self._in_vain = self._commits = 0
        self._log_path = log_path
        self._reached: dict[int, int] = {}
        self._trouble = ""
        self._changed = threading.Condition()
        self._is_over = False
        self._process = self._start()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _start(self) -> subprocess.Popen[str]:
        """Start one that is the more patient, the more have ended early one after another."""
        self.starts += 1
        self._commits = 0
        settings = self.settings._replace(patience=self.settings.patience * 2**self._in_vain)
        self._in_vain = min(self._in_vain + 1, DOUBLINGS_MAX)
        with self._log_path.open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", WORKER, json.dumps(settings._asdict())],
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def _watch(self) -> None:
        """Take down what workers say, and start another where one ends."""
        while True:
            assert self._process.stdout is not None
            for line in self._process.stdout:
                step, _, text = line.strip().partition(" ")
                with self._changed:
                    self.steps[step] += 1
                    if step == Step.COMMITTED:
                        self._commits += 1
                        if self._commits >= STEADY_COMMITS:
                            self._in_vain = 0
                        self._reached.update({int(k): v for k, v in json.loads(text).items()})
                    elif step == Step.ABORTED:
                        self.reasons.append(text)
                    self._changed.notify_all()
            code = self._process.wait()
            self._process.stdout.close()
            with self._changed:
                if code not in (KILLED, FENCED_EXIT):
                    self._trouble = f"a worker ended with {code}: {self.log_tail()}"
                if self._is_over or self._trouble:
                    self._changed.notify_all()
                    return
                self._process = self._start()

    def kill(self) -> None:
        """SIGKILL to the one that works now; another one follows."""
        self._process.kill()

    def wait_step(self, step: Step) -> None:
        """Wait until a worker says that it did this once more."""
        with self._changed:
            before = self.steps[step]
        self._wait(lambda: self.steps[step] > before, f"no worker came to {step.value}")

    def wait_reached(self, offsets: Mapping[int, int]) -> None:
        """Wait until all records before these offsets of the input are committed."""

        def is_reached() -> bool:
            return all(self._reached.get(each, 0) >= end for each, end in offsets.items())

        self._wait(is_reached, f"the workers do not reach {dict(offsets)}")

    def _wait(self, holds: Callable[[], bool], say: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: holds() or bool(self._trouble), PROGRESS_SECONDS_MAX)
            assert not self._trouble, self._trouble
            assert holds(), f"{say}: {self._reached} {self.steps} {self.log_tail()}"

    def log_tail(self) -> str:
        """The last of what workers complained of."""
        said = self._log_path.read_text(errors="replace") if self._log_path.exists() else ""
        return f"{list(self.reasons)}\n{said[-3000:]}"

    def stop(self) -> None:
        """End the worker, and have no other one."""
        with self._changed:
            self._is_over = True
            process = self._process
        process.kill()
        self._thread.join()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class InputLoad:
    """Writes numbered records to a topic, to its partitions in turn; ends at `stop`.

    Args:
        bootstrap: host:port of the brokers.
        topic: it exists.
        partitions: how many it has.
    """

    def __init__(self, bootstrap: Sequence[str], topic: str, partitions: int) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._ends = dict.fromkeys(range(partitions), 0)
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._trouble: list[object] = []
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": ",".join(self._bootstrap),
                "enable.idempotence": True,
                "linger.ms": 0,
                "log_level": 2,
                "reconnect.backoff.max.ms": 500,
            }
        )
        number = 0
        while not self._over.is_set():
            value = b"record %d" % number
            partition = number % self._partitions
            producer.produce(self._topic, value, partition=partition, callback=self._delivered)
            producer.poll(0)
            number += 1
            self._over.wait(1 / RECORDS_PER_SECOND)
        if producer.flush(PROGRESS_SECONDS_MAX) > 0:
            self._trouble.append("the input is not acknowledged")

    def _delivered(self, error: object, message: object) -> None:
        with self._changed:
            if error is not None:
                self._trouble.append(error)
            else:
                partition, offset = message.partition(), message.offset()  # type: ignore[attr-defined]  # a Message
                self._ends[partition] = max(self._ends[partition], offset + 1)
            self._changed.notify_all()

    def wait_more(self) -> dict[int, int]:
        """Wait until each partition has a record more; returns the offsets behind them."""
        with self._changed:
            before = dict(self._ends)

            def has_more() -> bool:
                return all(self._ends[each] > end for each, end in before.items())

            self._changed.wait_for(lambda: has_more() or self._trouble, PROGRESS_SECONDS_MAX)
            assert not self._trouble, self._trouble
            assert has_more(), f"the input does not grow: {before} {self._ends}"
            return dict(self._ends)

    def stop(self) -> dict[int, int]:
        """Send no more; returns the offsets behind the last records."""
        self._over.set()
        self._thread.join()
        assert not self._trouble, self._trouble
        return dict(self._ends)

    def __enter__(self) -> InputLoad:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()


class FollowingReader:
    """A read_committed reader that follows a topic from its start until it is stopped.

    Attributes:
        read: what it has seen, by place.
        twice: places that it saw more than once with different records.
    """

    def __init__(self, bootstrap: Sequence[str], topic: str, partitions: int) -> None:
        self.read: dict[Place, bytes] = {}
        self.twice: list[Place] = []
        self._consumer = reader_of(bootstrap, "read_committed")
        self._consumer.assign(
            [TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)]
        )
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._over.is_set():
            found = self._consumer.consume(500, timeout=POLL_SECONDS)
            with self._changed:
                for place, value in records_of(found):
                    if self.read.setdefault(place, value) != value:
                        self.twice.append(place)
                self._changed.notify_all()
        self._consumer.close()

    def wait_for(self, places: Mapping[Place, bytes]) -> None:
        """Wait until it has come to the last of these in each partition."""
        last = dict(sorted(places))

        def is_there() -> bool:
            return all(place in self.read for place in last.items())

        with self._changed:
            self._changed.wait_for(is_there, PROGRESS_SECONDS_MAX)
            assert is_there(), "a reader that follows does not come to the end"

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self._thread.join()


def reader_of(bootstrap: Sequence[str], isolation: str) -> Consumer:
    """A consumer without a group's work that tells of partitions' ends."""
    return Consumer(
        {
            "bootstrap.servers": ",".join(bootstrap),
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "log_level": 2,
            "reconnect.backoff.max.ms": 500,
            "fetch.wait.max.ms": 100,
        }
    )


def records_of(messages: Sequence[object]) -> list[tuple[Place, bytes]]:
    """Those of some messages that are records."""
    return [
        ((each.partition(), each.offset()), each.value())  # type: ignore[attr-defined]  # Messages
        for each in messages
        if each.error() is None  # type: ignore[attr-defined]  # Messages
    ]


def read_all(
    bootstrap: Sequence[str], topic: str, partitions: int, isolation: str
) -> dict[Place, bytes]:
    """Everything from the start to the end of a topic, as a new reader sees it.

    The end is where it is for read_uncommitted readers: transactions may end a little later.
    """
    found: dict[Place, bytes] = {}
    left = end_offsets(bootstrap, topic, partitions)
    deadline = time.monotonic() + PROGRESS_SECONDS_MAX
    consumer = reader_of(bootstrap, isolation)
    try:
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in left])
        while left:
            assert time.monotonic() < deadline, f"{topic} is not read by {isolation} to {left}"
            messages = consumer.consume(500, timeout=POLL_SECONDS)
            found.update(records_of(messages))
            for each in messages:
                error, partition, offset = each.error(), each.partition(), each.offset()
                if error is not None and error.name() == "_PARTITION_EOF":
                    assert partition is not None
                    assert offset is not None
                    if offset >= left.get(partition, 0):
                        left.pop(partition, None)
    finally:
        consumer.close()
    return found


def end_offsets(bootstrap: Sequence[str], topic: str, partitions: int) -> dict[int, int]:
    """The high watermark of each partition."""
    consumer = reader_of(bootstrap, "read_uncommitted")
    try:
        return {
            each: consumer.get_watermark_offsets(TopicPartition(topic, each), 30)[1]
            for each in range(partitions)
        }
    finally:
        consumer.close()


def check_pipeline(
    bootstrap: Sequence[str],
    settings: Settings,
    partitions: int,
    ends: Mapping[int, int],
    follower: FollowingReader | None = None,
) -> ExactlyOnceChecker:
    """Read input and output once more, and hold them to it all.

    Args:
        bootstrap: host:port of the brokers.
        settings: the worker's; it has ended.
        partitions: of either topic.
        ends: of the input, by partition.
        follower: a reader that followed the output, to be compared; it is stopped.
    """
    inputs = read_all(bootstrap, settings.source, partitions, "read_uncommitted")
    checker = ExactlyOnceChecker(inputs)
    assert {(each, end - 1) for each, end in ends.items() if end} <= inputs.keys()
    committed = read_all(bootstrap, settings.target, partitions, "read_committed")
    checker.committed("the last reader", committed)
    everything = read_all(bootstrap, settings.target, partitions, "read_uncommitted")
    checker.uncommitted(committed, everything)
    if follower is not None:
        follower.wait_for(committed)
        follower.stop()
        checker.agree("the last reader", committed, "the one that followed", follower.read)
        assert not follower.twice, f"a reader saw two records at {follower.twice[:10]}"
    return checker
