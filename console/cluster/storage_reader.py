"""What all brokers keep in their log directories, read anew when it is old."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ...client.error_kinds import error_name
from .gathering import gather_what_answers
from .kept import Kept

if TYPE_CHECKING:
    import trio

    from ...client.admin.partition_admin import LogDirectory, PartitionAdmin
    from ...client.client import KafkaClient

FRESH_MS: Final = 3_000
WARM_MS: Final = 30_000
UNKNOWN_BYTES: Final = -1


class DirectoryRow(NamedTuple):
    """A directory of a broker; `error` is None where it is well."""

    broker: int
    path: str
    error: str | None
    replicas: int
    size: int
    total: int | None
    usable: int | None


class ReplicaRow(NamedTuple):
    """A replica in it."""

    size: int
    topic: str
    partition: int
    broker: int
    path: str
    lag: int
    is_future: bool


class Storage(NamedTuple):
    """All of it.

    Attributes:
        replicas: the largest first.
        failures: why brokers did not say.
    """

    directories: list[DirectoryRow]
    replicas: list[ReplicaRow]
    failures: Mapping[int, Exception]


class StorageReader:
    """Reads it through a client, which is open.

    Args:
        client: of the cluster.
        partitions: asks them.
        nursery: where they are asked.
    """

    def __init__(
        self,
        client: KafkaClient,
        partitions: PartitionAdmin,
        nursery: trio.Nursery,
    ) -> None:
        self._client = client
        self._partitions = partitions
        self._kept = Kept(nursery, client.clock, self._ask, FRESH_MS, WARM_MS)

    @property
    def is_at_hand(self) -> bool:
        """Whether it was read a moment ago."""
        return self._kept.is_at_hand

    async def read(self) -> Storage:
        """What there is, or was a moment ago.

        Raises:
            ClientError: no broker could be reached.
        """
        return await self._kept.get()

    async def _ask(self) -> Storage:
        alive = [node.id for node in await self._client.live_brokers()]
        answers = await gather_what_answers(
            *(lambda broker=broker: self._partitions.describe_log_dirs(broker) for broker in alive)
        )
        directories: list[DirectoryRow] = []
        replicas: list[ReplicaRow] = []
        failures: dict[int, Exception] = {}
        for broker, answer in zip(alive, answers, strict=True):
            if isinstance(answer, Exception):
                failures[broker] = answer
                continue
            for directory in answer:
                directories.append(_row(broker, directory))
                replicas += [
                    ReplicaRow(
                        each.size,
                        topic,
                        partition,
                        broker,
                        directory.path,
                        each.lag,
                        each.is_future,
                    )
                    for (topic, partition), each in directory.replicas.items()
                ]
        replicas.sort(key=lambda row: (-row.size, row.topic, row.partition, row.broker))
        return Storage(directories, replicas, failures)


def _row(broker: int, directory: LogDirectory) -> DirectoryRow:
    total, usable = directory.total_bytes, directory.usable_bytes
    return DirectoryRow(
        broker,
        directory.path,
        error_name(directory.error_code) if directory.error_code else None,
        len(directory.replicas),
        sum(each.size for each in directory.replicas.values()),
        None if total == UNKNOWN_BYTES else total,
        None if usable == UNKNOWN_BYTES else usable,
    )
