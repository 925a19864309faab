"""Connections: busy ones, and idle ones beside 16 busy ones."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from ..measure import MeasuredBroker
from .loading import loaded, member_of
from .requests import create_topics, produces
from .series import Figures, Series

LOAD_TOPIC = "load"
BUSY = 16
API_VERSIONS = bytes.fromhex("0000000a001200000000002affff")
API_VERSIONS_BYTES_MAX = 8192
IDLE_CONNECT_SECONDS_MAX = 60


def busy(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """So many connections, each with one small Produce in flight."""
    with member_of(running) as member:
        create_topics(member, [LOAD_TOPIC], 1)
    loaded(running, produces(LOAD_TOPIC), BUSY, seconds / 2)
    for value in values:
        yield loaded(running, produces(LOAD_TOPIC), value, seconds)


def idle(running: MeasuredBroker, values: Sequence[int], seconds: float) -> Iterator[Figures]:
    """So many connections that have sent one request, and 16 that keep sending."""
    with ExitStack() as stack:
        create_topics(stack.enter_context(member_of(running)), [LOAD_TOPIC], 1)
        loaded(running, produces(LOAD_TOPIC), BUSY, seconds / 2)
        opened = 0
        for value in values:
            for _ in range(value - opened):
                stack.callback(_connected(running).close)
            opened = value
            yield loaded(running, produces(LOAD_TOPIC), BUSY, seconds)


def _connected(running: MeasuredBroker) -> socket.socket:
    sock = socket.create_connection((running.host, running.port), IDLE_CONNECT_SECONDS_MAX)
    sock.sendall(API_VERSIONS)
    if not sock.recv(API_VERSIONS_BYTES_MAX):
        raise SystemExit("the broker closed a connection")
    return sock


SERIES = (
    Series(
        "busy connections",
        "connections",
        (1, 4, 16, 64, 256, 1000, 10_000),
        "Produce of one record of 100 B to one partition, acks=1, one in flight on each",
        busy,
        each="busy connection",
    ),
    Series(
        "idle connections",
        "idle connections",
        (0, 10, 100, 1000, 10_000),
        "16 other connections send Produce, one in flight on each",
        idle,
        each="idle connection",
    ),
)
