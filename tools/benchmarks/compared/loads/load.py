"""What a load is, what it may use, and how it says that it did not work."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..peers import Failed, Peer

Figures = dict[str, float]
PROGRAM_SECONDS_MAX = 300


class LeftOut(Exception):
    """What a load needs is not on this machine; the text says what."""


@dataclasses.dataclass(frozen=True)
class Tools:
    """Programs of others, and how long the loads are.

    Attributes:
        loader: the compiled loader of `benchmarks/load`.
        jars: a folder with Kafka's jars.
        seconds: how long a load of requests goes on.
        scale: 1.0 for the full numbers of records.
        closing: ends what a load leaves running for its next turn.
    """

    loader: Path
    jars: Path
    seconds: float
    scale: float
    closing: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)

    def count(self, full: int) -> int:
        """So many, scaled; at least one."""
        return max(1, int(full * self.scale))


class ComparedLoad(NamedTuple):
    """One row of the table: `run(peer, tools)` gives its figures.

    It raises Failed where this peer did not do it, and LeftOut where none could.
    """

    name: str
    run: Callable[[Peer, Tools], Figures]


@contextlib.contextmanager
def fresh_topic(peer: Peer, partitions: int = 1) -> Iterator[str]:
    """A topic for one slot, gone afterwards. Raises Failed."""
    topic = peer.topic(partitions)
    try:
        yield topic
    except BaseException:
        with contextlib.suppress(Failed):  # what went wrong before says more
            peer.delete(topic)
        raise
    peer.delete(topic)


def output_of(command: list[str], seconds_max: float = PROGRAM_SECONDS_MAX) -> str:
    """What a program prints. Raises Failed with what it complained of."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds_max, check=False
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} did not end within {seconds_max:.0f} s") from None
    if done.returncode:
        raise Failed(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout
