"""Moves on their way: how far they are, and the end of their throttle."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ..common.show import note
from ..topics.partition_names import TopicPartition
from .plan import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS

if TYPE_CHECKING:
    from ...client.admin.admin import Admin
    from ...client.admin.partition_admin import LogDirectory, PartitionAdmin, Reassignment
    from ...client.client import KafkaClient

POLL_SECONDS = 0.5
NOTE_SECONDS = 5


class Copy(NamedTuple):
    """A replica that is being made.

    Attributes:
        partition: of which.
        broker: makes it.
        copied: how many bytes of it are there.
        size: how many it will have.
    """

    partition: TopicPartition
    broker: int
    copied: int
    size: int


async def copies_of(
    client: KafkaClient, admin: PartitionAdmin, moving: dict[TopicPartition, Reassignment]
) -> list[Copy]:
    """How far the replicas are that reassignments add."""
    brokers = {broker for each in moving.values() for broker in each.replicas}
    sizes: dict[tuple[int, TopicPartition], int] = {}
    for broker in sorted(brokers & client.cluster.nodes.keys()):
        for partition, size in current_sizes(await admin.describe_log_dirs(broker)).items():
            sizes[broker, partition] = size
    copies = []
    for partition, each in sorted(moving.items()):
        size = max(sizes.get((broker, partition), 0) for broker in each.replicas)
        copies += [
            Copy(partition, broker, sizes.get((broker, partition), 0), size)
            for broker in each.adding
        ]
    return copies


def current_sizes(directories: Iterable[LogDirectory]) -> dict[TopicPartition, int]:
    """How large a broker's replicas are, without those that are to take the place of others."""
    return {
        partition: replica.size
        for directory in directories
        for partition, replica in directory.replicas.items()
        if not replica.is_future
    }


async def follow(look: Callable[[], Awaitable[list[Copy] | None]], total: int) -> None:
    """Show how far copies are, until there are none.

    Args:
        look: the copies that are not finished; None when all is done.
        total: how many bytes there are to be copied in all, those that are finished included.
    """
    import trio

    with _progress(total) as show:
        while (copies := await look()) is not None:
            left = sum(max(each.size - each.copied, 0) for each in copies)
            show(max(total - left, 0), len(copies))
            await trio.sleep(POLL_SECONDS)
        show(total, 0)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int, int], None]]:
    """A bar where a terminal is looking, else a line now and then."""
    import time

    if not sys.stderr.isatty():
        noted_s = time.monotonic()

        def show(copied: int, left: int) -> None:
            nonlocal noted_s
            if left and time.monotonic() - noted_s >= NOTE_SECONDS:
                noted_s = time.monotonic()
                note(f"{copied:,} of {total:,} bytes copied; {left} replicas are not in sync yet")

        yield show
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    bar = Progress(
        TextColumn("{task.fields[left]} replicas left"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task("copy", total=total or 1, left=0)
        yield lambda copied, left: bar.update(task, completed=copied, left=left)


async def remove_throttle(
    client: KafkaClient, admin: Admin, cancelled: Container[str] = ()
) -> bool:
    """Take from topics which replicas are throttled, and then the rates from brokers.

    What somebody throttles for good, a topic's `*` or a rate without such lists, stays.

    Args:
        client: knows the brokers.
        admin: of the same.
        cancelled: topics that were being moved a moment ago: the broker that is asked may not
            have heard yet that they are throttled.

    Returns whether there was anything to be taken.
    """
    from ...client.admin.admin import BROKER_RESOURCE

    throttled = False
    for topic in await admin.describe_topics():
        settings = await admin.describe_configs(topic, own_only=True)
        names = [
            name
            for name in (LEADER_REPLICAS, FOLLOWER_REPLICAS)
            if settings.get(name) not in (("*",) if topic in cancelled else (None, "", "*"))
        ]
        if names:
            await admin.alter_configs(topic, dict.fromkeys(names))
            throttled = True
    for node in sorted(client.cluster.nodes) if throttled else ():
        rates: dict[str, str | None] = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE))
        await admin.alter_configs(str(node), rates, BROKER_RESOURCE)
    return throttled
