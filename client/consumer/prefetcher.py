"""Fetching ahead: one request to each leader at any time, as long as little is buffered.

Source: Kafka's `AbstractFetch` and `FetchCollector`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio

from ...common.errors import ErrorCode, KafkaError
from ..client import KafkaClient
from ..errors import ClientError, DisconnectedError
from ..metadata.cluster import Node
from ..network.backoff import ExponentialBackoff
from .assigned_partition import AssignedPartition
from .fetcher import PASSING_ERRORS, FetchedPartition, Fetcher
from .offsets import TopicPartition

BUFFERED_ANSWERS = 2
"""While the caller has one answer, as large as a partition's may be, the next one is fetched."""


class Prefetcher:
    """Fetches what a consumer reads next.

    A request to a leader names all its partitions that are read, so that its session stays as it
    is; while more than `buffered_bytes_max` of them are buffered, there is none. Requests go by
    connections of their own: they wait at the broker, and nothing else may wait behind them.

    Args:
        client: is open, and stays so.
        fetcher: makes the requests.
        partitions: all that are assigned; looked at again whenever `wake` is called.
        buffered_bytes_max: of one leader's partitions, beyond which nothing is requested.
        on_records: is called when there is something new in a partition.
        on_out_of_range: is called for a partition that has no record at its position.
        on_failure: is called with what the caller must hear of.
    """

    def __init__(
        self,
        client: KafkaClient,
        fetcher: Fetcher,
        partitions: Mapping[TopicPartition, AssignedPartition],
        buffered_bytes_max: int,
        *,
        on_records: Callable[[], None],
        on_out_of_range: Callable[[AssignedPartition, KafkaError], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._client = client
        self._fetcher = fetcher
        self._partitions = partitions
        self._buffered_bytes_max = buffered_bytes_max
        self._on_records = on_records
        self._on_out_of_range = on_out_of_range
        self._on_failure = on_failure
        self._connection_ids: dict[int, int] = {}
        self._busy: set[int] = set()
        self._failed: dict[int, int] = {}
        """How often in a row the fetches from a leader have failed."""
        self._has_news = trio.Event()
        settings = client.settings
        self._backoff = ExponentialBackoff(
            settings.retry_backoff_ms, settings.retry_backoff_max_ms, client.random
        )

    def wake(self) -> None:
        """Partitions came or went, or less is buffered."""
        self._has_news.set()

    async def run(self) -> None:
        """Fetch until cancelled."""
        try:
            async with trio.open_nursery() as nursery:
                while True:
                    self._has_news = trio.Event()
                    by_leader, has_unknown = self._plan()
                    for node, partitions in by_leader.items():
                        self._busy.add(node.id)
                        nursery.start_soon(self._fetch, node, partitions)
                    if has_unknown:
                        nursery.start_soon(self._wait_for_metadata, self._has_news)
                    await self._has_news.wait()
        finally:
            for connection_id in self._connection_ids.values():
                self._client.network.forget(connection_id)

    def _plan(self) -> tuple[dict[Node, list[AssignedPartition]], bool]:
        """What to fetch from which leader, and whether some partition has none."""
        client = self._client
        now_ms = client.clock.monotonic_ms()
        by_leader: dict[Node, list[AssignedPartition]] = {}
        has_unknown = False
        for key, partition in self._partitions.items():
            if not partition.is_fetchable:
                continue
            client.metadata.topics.add(key[0], now_ms)
            leader = client.metadata.current_leader(*key)
            if leader is None:
                client.leader_unknown(key[0])
                has_unknown = True
            elif leader.id not in self._busy:
                by_leader.setdefault(leader, []).append(partition)
        return {
            leader: partitions
            for leader, partitions in by_leader.items()
            if sum(each.buffered_bytes for each in partitions) < self._buffered_bytes_max
        }, has_unknown

    async def _wait_for_metadata(self, has_news: trio.Event) -> None:
        """Plan again when there is newer metadata, if nothing else comes before."""
        client = self._client
        try:
            await client.wait_for_metadata(client.metadata.update_version)
        except ClientError as error:
            self._on_failure(error)
        has_news.set()

    async def _fetch(self, leader: Node, partitions: list[AssignedPartition]) -> None:
        connection_id = self._connection_ids.get(leader.id)
        if connection_id is None:
            connection_id = self._connection_ids[leader.id] = self._client.own_connection_id()
        positions = {each.key: each.fetch_offset or 0 for each in partitions}
        has_failed = True
        try:
            answer = await self._fetcher.fetch(leader._replace(id=connection_id), positions)
        except DisconnectedError:
            pass
        except (ClientError, KafkaError) as failure:
            self._on_failure(failure)
        else:
            has_failed = answer.has_failed
            for fetched in answer.partitions:
                has_failed |= not self._take(fetched)
        if has_failed:
            failed = self._failed.get(leader.id, 0)
            self._failed[leader.id] = failed + 1
            await trio.sleep(self._backoff.wait_ms(failed) / 1000)
        else:
            self._failed.pop(leader.id, None)
        self._busy.discard(leader.id)
        self.wake()

    def _take(self, fetched: FetchedPartition) -> bool:
        """Keep what was fetched of one partition; whether nothing was in the way."""
        partition = self._partitions.get((fetched.topic, fetched.partition))
        if partition is None or partition.fetch_offset != fetched.offset:
            return True  # The caller has moved it, or it is another member's.
        if fetched.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            if partition.position != fetched.offset:
                partition.fetch_again()  # Some was fetched ahead: is the position itself there?
            else:
                self._on_out_of_range(partition, fetched.failure())
            return False
        if fetched.error:
            if fetched.error not in PASSING_ERRORS:
                self._on_failure(fetched.failure())
            return False
        try:
            partition.add(fetched)
        except KafkaError as failure:
            self._on_failure(failure)
            return False
        if partition.has_records:
            self._on_records()
        return True
