"""Fetching ahead: one request to each leader at any time, as long as little is buffered.

Source: Kafka's `AbstractFetch` and `FetchCollector`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import trio

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_EPOCH
from ..client import KafkaClient
from ..errors import ClientError, DisconnectedError
from ..metadata.cluster import Node
from ..network.backoff import ExponentialBackoff
from .assigned_partition import AssignedPartition, PreferredReplica
from .epoch_end_offsets import EpochEndOffset, RequestedEpoch, fetch_epoch_end_offsets
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
        on_truncated: is called for a partition whose new leader has not all that was handed out,
            with what it has.
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
        on_truncated: Callable[[AssignedPartition, EpochEndOffset], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._client = client
        self._fetcher = fetcher
        self._partitions = partitions
        self._buffered_bytes_max = buffered_bytes_max
        self._on_records = on_records
        self._on_out_of_range = on_out_of_range
        self._on_truncated = on_truncated
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
                    by_node, has_unknown = self._plan()
                    for node, partitions in by_node.items():
                        self._busy.add(node.id)
                        nursery.start_soon(self._serve, node, partitions)
                    if has_unknown:
                        nursery.start_soon(self._wait_for_metadata, self._has_news)
                    await self._has_news.wait()
        finally:
            for connection_id in self._connection_ids.values():
                self._client.network.forget(connection_id)

    def _plan(self) -> tuple[dict[Node, dict[AssignedPartition, int]], bool]:
        """What to fetch from which node, and whether some partition has no leader.

        Beside a partition is the epoch of a leader that may not have what was read before; -1:
        there is nothing to validate.
        """
        client = self._client
        now_ms = client.clock.monotonic_ms()
        by_node: dict[Node, dict[AssignedPartition, int]] = {}
        has_unknown = False
        for key, partition in self._partitions.items():
            if not partition.is_fetchable:
                continue
            client.metadata.topics.add(key[0], now_ms)
            leader = client.metadata.current_leader(*key)
            if leader is None:
                client.leader_unknown(key[0])
                has_unknown = True
                continue
            epoch = self._epoch_to_validate_in(partition)
            node = leader
            if epoch == NO_EPOCH:
                node = self._preferred_replica(partition, now_ms) or leader
            if node.id not in self._busy:
                by_node.setdefault(node, {})[partition] = epoch
        return {
            node: partitions
            for node, partitions in by_node.items()
            if sum(each.buffered_bytes for each in partitions) < self._buffered_bytes_max
        }, has_unknown

    def _preferred_replica(self, partition: AssignedPartition, now_ms: int) -> Node | None:
        """Where a partition is read, if it is not at its leader (KIP-392)."""
        preferred = partition.preferred_replica
        if preferred is None:
            return None
        node = self._client.cluster.nodes.get(preferred.node_id)
        if node is None or now_ms >= preferred.until_ms:
            partition.preferred_replica = None
            return None
        return node

    async def _wait_for_metadata(self, has_news: trio.Event) -> None:
        """Plan again when there is newer metadata, if nothing else comes before."""
        client = self._client
        try:
            await client.wait_for_metadata(client.metadata.update_version)
        except ClientError as error:
            self._on_failure(error)
        has_news.set()

    async def _serve(self, node: Node, partitions: Mapping[AssignedPartition, int]) -> None:
        """Fetch from one node, or first have it validate what was read before it led.

        Args:
            node: a leader, or a replica that it names.
            partitions: and the epochs to validate them in; -1: there is nothing to validate.
        """
        connection_id = self._connection_ids.get(node.id)
        if connection_id is None:
            connection_id = self._connection_ids[node.id] = self._client.own_connection_id()
        own_node = node._replace(id=connection_id)
        unvalidated = {each: epoch for each, epoch in partitions.items() if epoch != NO_EPOCH}
        try:
            if unvalidated:
                is_done = await self._validate(own_node, unvalidated)
            else:
                is_done = await self._fetch(own_node, partitions)
        except DisconnectedError:
            is_done = False
            for partition in partitions:
                partition.preferred_replica = None
        except (ClientError, KafkaError) as failure:
            is_done = False
            self._on_failure(failure)
        if is_done:
            self._failed.pop(node.id, None)
        else:
            failed = self._failed.get(node.id, 0)
            self._failed[node.id] = failed + 1
            await trio.sleep(self._backoff.wait_ms(failed) / 1000)
        self._busy.discard(node.id)
        self.wake()

    def _epoch_to_validate_in(self, partition: AssignedPartition) -> int:
        """The epoch of a leader that may not have what was read before; -1: there is nothing to
        validate."""
        info = self._client.metadata.current_partition(*partition.key)
        if info is None or info.leader_epoch is None:
            return NO_EPOCH
        return info.leader_epoch if partition.must_validate(info.leader_epoch) else NO_EPOCH

    async def _validate(self, leader: Node, epochs: Mapping[AssignedPartition, int]) -> bool:
        """Ask a new leader whether it has what was read; whether nothing was in the way."""
        read_before = {each: (each.fetch_offset or 0, each.fetch_epoch) for each in epochs}
        answers = await fetch_epoch_end_offsets(
            self._client,
            leader,
            {each.key: RequestedEpoch(epochs[each], each.fetch_epoch) for each in epochs},
        )
        is_done = True
        for partition, epoch in epochs.items():
            offset, fetch_epoch = read_before[partition]
            if (partition.fetch_offset, partition.fetch_epoch) != (offset, fetch_epoch):
                continue  # The caller has moved it.
            answer = None if answers is None else answers.get(partition.key)
            if answers is None:
                partition.validated_epoch = epoch
            elif answer is None:
                is_done = False
            elif answer.error:
                self._client.partition_error(*partition.key, answer.error)
                is_done = False
                if answer.error not in PASSING_ERRORS:
                    self._on_failure(answer.failure(partition.key))
            elif answer.leader_epoch != NO_EPOCH and answer.end_offset >= offset:
                partition.validated_epoch = epoch
            elif partition.position != offset:
                partition.fetch_again()  # Some was fetched ahead: is the position itself there?
            else:
                self._on_truncated(partition, answer)
        return is_done

    async def _fetch(self, node: Node, partitions: Iterable[AssignedPartition]) -> bool:
        positions = {each.key: each.fetch_offset or 0 for each in partitions}
        answer = await self._fetcher.fetch(node, positions)
        is_done = not answer.has_failed
        for fetched in answer.partitions:
            is_done &= self._take(fetched)
        return is_done

    def _take(self, fetched: FetchedPartition) -> bool:
        """Keep what was fetched of one partition; whether nothing was in the way."""
        partition = self._partitions.get((fetched.topic, fetched.partition))
        if partition is None or partition.fetch_offset != fetched.offset:
            return True  # The caller has moved it, or it is another member's.
        if fetched.error:
            read_from, partition.preferred_replica = partition.preferred_replica, None
            if read_from is not None:
                return False  # The leader knows better.
        elif fetched.preferred_read_replica >= 0:
            client = self._client
            partition.preferred_replica = PreferredReplica(
                fetched.preferred_read_replica,
                client.clock.monotonic_ms() + client.settings.metadata_max_age_ms,
            )
            return True
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
