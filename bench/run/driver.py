"""The strict loader: one request out for each answer in, on any number of connections.

A connection begins with as many requests as it may have in flight; from then on it sends one
for each answer, and nothing else, so the broker never does more than the figures say. The
error code of every answer is looked at.
"""

from __future__ import annotations

import select
import struct
import time
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from ..errors import BenchError
from ..loads.wire import ANSWER_SECONDS_MAX, Wire, refused

DRIVER_RECEIVE_BYTES = 256 * 1024
REQUESTS_MAX = 20_000_000
"""Of one stretch: what is kept of each is eight bytes."""

_unpack_length = struct.Struct(">i").unpack_from
_unpack_error = struct.Struct(">h").unpack_from
_now = time.perf_counter


class Lane:
    """One connection that sends one request after another.

    Args:
        wire: the connection.
        frames: the requests, without an end.
        errors_at: where error codes stand in each answer, without the answer's length, ascending.
        what: the API's name, for errors.
    """

    __slots__ = ("errors_at", "frames", "rest", "sent", "socket", "what", "wire")

    def __init__(
        self, wire: Wire, frames: Iterator[bytes], errors_at: Sequence[int], what: str
    ) -> None:
        self.wire = wire
        self.socket = wire.socket
        self.frames = frames
        self.errors_at = errors_at
        self.what = what
        self.sent: deque[float] = deque()
        self.rest = b""

    def send(self, count: int) -> None:
        """Send so many requests, at once."""
        self.sent.extend([_now()] * count)
        try:
            frames = self.frames
            self.socket.sendall(b"".join(islice(frames, count)) if count > 1 else next(frames))
        except OSError as error:
            raise self.wire.broken(error) from error

    def receive(self, latencies: array[float]) -> int:
        """Receive once, and take the whole answers that are there; returns how many.

        Raises:
            BenchError: an answer has an error, or is none.
        """
        try:
            data = self.socket.recv(DRIVER_RECEIVE_BYTES)
        except OSError as error:
            raise self.wire.broken(error) from error
        now = _now()
        if not data:
            raise self.wire.broken(None)
        if self.rest:
            data = self.rest + data
        position, end, answered, errors_at = 0, len(data), 0, self.errors_at
        while end - position >= 4:
            (size,) = _unpack_length(data, position)
            if size < errors_at[-1] + 2:
                raise BenchError(f"{self.wire.peer} answered {self.what} with {size} bytes")
            if size > end - position - 4:
                self.wire.check_size(size)
                break
            for error_at in errors_at:
                (code,) = _unpack_error(data, position + 4 + error_at)
                if code:
                    raise refused(code, self.what, self.wire.peer)
            if not self.sent:
                raise BenchError(f"{self.wire.peer} sent more answers than there were requests")
            latencies.append(now - self.sent.popleft())
            position += 4 + size
            answered += 1
        self.rest = data[position:]
        return answered


def drive(
    lanes: Sequence[Lane],
    depth: int,
    seconds: float,
    latencies: array[float],
    requests_max: int = REQUESTS_MAX,
) -> None:
    """Keep requests in flight for so long, and then wait for the last answers.

    Args:
        lanes: the connections.
        depth: how many requests each has in flight, until the time is over.
        seconds: how long new ones are sent.
        latencies: gets the seconds of each.
        requests_max: stop when so many were sent.

    Raises:
        BenchError: the broker answered with an error, closed a connection, or fell silent.
    """
    left = min(requests_max, REQUESTS_MAX)
    deadline = _now() + seconds
    for lane in lanes:
        first = min(depth, left)
        left -= first
        if first:
            lane.send(first)
    if len(lanes) == 1:
        _drive_one(lanes[0], deadline, latencies, left)
    else:
        _drive_many(lanes, deadline, latencies, left)


def _drive_one(lane: Lane, deadline: float, latencies: array[float], left: int) -> None:
    """Without asking the system which connection is ready: there is one."""
    while lane.sent:
        answered = lane.receive(latencies)
        more = min(answered, left) if _now() < deadline else 0
        if more:
            left -= more
            lane.send(more)


def _drive_many(lanes: Sequence[Lane], deadline: float, latencies: array[float], left: int) -> None:
    by_descriptor = {lane.socket.fileno(): lane for lane in lanes}
    open_lanes = sum(bool(lane.sent) for lane in lanes)
    poller: Any = select.epoll() if hasattr(select, "epoll") else select.poll()
    for descriptor in by_descriptor:
        poller.register(descriptor, select.POLLIN)
    # The one takes seconds and the other milliseconds.
    wait = ANSWER_SECONDS_MAX * (1 if hasattr(select, "epoll") else 1000)
    while open_lanes:
        ready = poller.poll(wait)
        if not ready:
            raise BenchError(f"{lanes[0].wire.peer} did not answer for {ANSWER_SECONDS_MAX} s")
        for descriptor, _ in ready:
            lane = by_descriptor[descriptor]
            answered = lane.receive(latencies)
            pending = getattr(lane.socket, "pending", None)  # what TLS has decrypted already
            while pending is not None and pending():
                answered += lane.receive(latencies)
            more = min(answered, left) if answered and _now() < deadline else 0
            if more:
                left -= more
                lane.send(more)
            if not lane.sent:
                open_lanes -= 1
                poller.unregister(descriptor)
