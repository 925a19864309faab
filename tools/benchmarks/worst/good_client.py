"""A client that does what most do, and how long the broker lets it wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Self

from ....bench.cluster import LoadTopic
from ....bench.loads.prepared import Produce, one_record
from ....bench.loads.wire import Wire, frame_of
from ....protocol import messages
from ....protocol.api_keys import ApiKey

PAUSE_SECONDS = 0.002
VALUE_BYTES = 100


class Wait(NamedTuple):
    """One request that was answered.

    Attributes:
        at: when it was sent.
        seconds: until the answer was there.
        held: of these, what the broker's processor was busy for: what others had of it. Unlike the
            whole it does not grow with what else the machine does.
    """

    at: float
    seconds: float
    held: float


class GoodClient:
    """Produces, fetches and asks for Metadata of one topic, one small request after another.

    A thread does it, which hardly needs the interpreter; a context manager that ends it.

    Args:
        wire: a connection to the broker, which is closed at the end.
        topic: with one partition, and nobody else's.
        cpu_seconds: the broker's processor time so far.
    """

    def __init__(self, wire: Wire, topic: LoadTopic, cpu_seconds: Callable[[], float]) -> None:
        self._cpu_seconds = cpu_seconds
        self.waits: list[Wait] = []
        self._wire = wire
        self._frames = self._requests(topic)
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _requests(self, topic: LoadTopic) -> list[bytes]:
        produce = Produce(self._wire, topic, one_record(VALUE_BYTES))
        fetch = messages.FetchRequest
        of_topic = fetch.FetchTopic(
            topic=topic.name,
            partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=1024)],
        )
        return [
            produce.frame,
            frame_of(fetch(max_wait_ms=0, max_bytes=1024, topics=[of_topic], session_epoch=-1), 12),
            frame_of(
                messages.MetadataRequest(
                    topics=[messages.MetadataRequest.MetadataRequestTopic(name=topic.name)]
                ),
                self._wire.version(ApiKey.METADATA),
            ),
        ]

    def _run(self) -> None:
        while not self._is_ending:
            for frame in self._frames:
                began, cpu = time.perf_counter(), self._cpu_seconds()
                self._wire.exchange(frame)
                held = self._cpu_seconds() - cpu
                self.waits.append(Wait(began, time.perf_counter() - began, held))
            time.sleep(PAUSE_SECONDS)

    def since(self, moment: float) -> list[Wait]:
        """The requests that were under way since a moment."""
        return [each for each in self.waits if each.at + each.seconds >= moment]

    def wait_for_one_more(self) -> None:
        """Return once a request that is sent from now on is answered."""
        now = time.perf_counter()
        while not self.waits or self.waits[-1].at < now:
            time.sleep(PAUSE_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending = True
        self._thread.join()
        self._wire.close()


def percentile(seconds: Iterable[float], share: float) -> float:
    """Milliseconds that this share of the others does not exceed."""
    ordered = sorted(seconds)
    return 1000 * ordered[min(int(len(ordered) * share), len(ordered) - 1)]
