"""Reading a range without librdkafka, which makes an object of each record.

A leader's answers hold batches just as its files do, and whole batches become columns of Arrow at
once. This knows how that goes well, over PLAINTEXT; at whatever else comes it stops, and librdkafka
goes on from there: it knows what to do about leaders that move, records that are gone, and brokers
that are too old or not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...common.errors import KafkaError
from ...protocol.errors import ProtocolError
from ...protocol.records import RecordBatch, iter_batches, iter_records
from ...protocol.records.control import ControlRecordType, parse_end_transaction_marker
from ..errors import SparkConnectorError
from ..plain_connection import (
    FETCH_VERSION,
    PlainConnection,
    PlainFetch,
    PlainPeer,
    fetched_partition,
    leader_address,
)
from ..records.gathered_batches import GatheredBatches, RowBounds
from .columns import COLUMNS, HEADERS
from .fetch_sizes import FETCH_BYTES_MAX, OPTION
from .kafka_settings import BOOTSTRAP, Settings
from .offset_ranges import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

    from ...protocol.messages import FetchResponse

CLIENT_ID = "odradek-spark"
TIMEOUT_S = 10.0
READ_COMMITTED = "read_committed"

CONNECTIONS_MAX = 64
"""That a process keeps."""

RECORDS_PER_BATCH_MIN = 4
BATCHES_MIN = 64
"""A batch has its price here, a record almost none; an answer with so many batches that are smaller
on average is the last that is read so."""

UNDERSTOOD = frozenset(
    {
        BOOTSTRAP,
        OPTION,
        "auto.offset.reset",
        "client.id",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "isolation.level",
        "metadata.max.age.ms",
        "queued.max.messages.kbytes",
        "queued.min.messages",
    }
)
"""What is honoured here, or means nothing without librdkafka's queue. With any other setting, such
as one of security, librdkafka does it all."""


def reads_directly(settings: Settings) -> bool:
    """Whether a consumer's settings are all honoured here."""
    return settings.keys() <= UNDERSTOOD


class _Leaders:
    """Connections to partitions' leaders, kept for the next tasks of this process."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, PlainFetch, PlainPeer], PlainConnection] = {}

    def taken(self, bootstrap: str, fetch: PlainFetch, peer: PlainPeer) -> PlainConnection:
        """A connection that nobody else has; who is done gives it back, or closes it."""
        kept = self._kept.pop((bootstrap, fetch, peer), None)
        if kept is not None:
            return kept
        return PlainConnection(leader_address(bootstrap, fetch.topic, fetch.partition, peer), peer)

    def give_back(
        self, bootstrap: str, fetch: PlainFetch, peer: PlainPeer, connection: PlainConnection
    ) -> None:
        """All that was sent on it is answered."""
        while len(self._kept) >= CONNECTIONS_MAX:
            self._kept.pop(next(iter(self._kept))).close()
        self._kept[bootstrap, fetch, peer] = connection


_LEADERS = _Leaders()


class DirectReader:
    """One task's reading, as far as it goes well.

    Args:
        settings: of a consumer; `reads_directly` says whether they will do.
        offsets: what is read.
        columns: the names of the requested columns, in order.
        batch_bytes_max: how much a record batch of Arrow may have.
        timeout_ms: how long a broker is waited for, TIMEOUT_S at most.

    Attributes:
        position: what lies before it has been read.
    """

    def __init__(
        self,
        settings: Settings,
        offsets: OffsetRange,
        columns: Sequence[str],
        batch_bytes_max: int,
        timeout_ms: int,
    ) -> None:
        self._bootstrap = settings[BOOTSTRAP]
        self._range = offsets
        self._fetch = PlainFetch(
            offsets.topic,
            offsets.partition,
            int(settings.get(OPTION, FETCH_BYTES_MAX)),
            int(settings["fetch.wait.max.ms"]),
            isolation_level=int(settings["isolation.level"] == READ_COMMITTED),
        )
        self._peer = PlainPeer(
            settings.get("client.id", CLIENT_ID), min(TIMEOUT_S, timeout_ms / 1000)
        )
        known = {**COLUMNS, **HEADERS}
        self._gathered = GatheredBatches(
            {name: known[name] for name in columns},
            RowBounds(offsets.start, offsets.until),
            {"topic": offsets.topic, "partition": offsets.partition},
            batch_bytes_max,
            self._refuse,
        )
        self.position = offsets.start

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Until the end of the range, or up to where it does not go well.

        Raises:
            SparkConnectorError: a batch is damaged.
        """
        try:
            for batch in self._fetched():
                yield from self._gathered.add(batch)
        except (OSError, KafkaError, ProtocolError):
            pass  # whatever it is, librdkafka meets it, too
        yield from self._gathered.taken()

    def _fetched(self) -> Iterator[RecordBatch]:
        """The batches with records; the next request is under way before they are given."""
        if self.position >= self._range.until:
            return
        connection = _LEADERS.taken(self._bootstrap, self._fetch, self._peer)
        is_answered = False
        try:
            connection.send(self._fetch.at(self.position), FETCH_VERSION)
            while not is_answered:
                answer = fetched_partition(connection)
                batches = list(iter_batches(answer.records or b""))
                with_records = list(self._with_records(batches, answer))
                reached = batches[-1].next_offset if batches else self.position
                is_answered = (
                    reached >= self._range.until
                    or reached <= self.position
                    or _are_small(with_records)
                )
                self.position = max(reached, self.position)
                if not is_answered:
                    connection.send(self._fetch.at(self.position), FETCH_VERSION)
                yield from with_records
        finally:
            if is_answered:
                _LEADERS.give_back(self._bootstrap, self._fetch, self._peer, connection)
            else:
                connection.close()

    def _with_records(
        self, batches: Sequence[RecordBatch], answer: FetchResponse.PartitionData
    ) -> Iterator[RecordBatch]:
        """Neither markers nor what was aborted (Kafka's CompletedFetch).

        A broker names the aborted transactions to who reads only what is committed.
        """
        begins = sorted(
            (each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()
        )
        begins.reverse()
        aborted: set[int] = set()
        for batch in batches:
            while begins and begins[-1][0] <= batch.last_offset:
                aborted.add(begins.pop()[1])
            if batch.is_control:
                if batch.producer_id in aborted and _is_abort(batch):
                    aborted.remove(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborted):
                yield batch

    def _refuse(self, batch: RecordBatch, error: KafkaError) -> None:
        raise SparkConnectorError(
            f"partition {self._range.partition} of {self._range.topic!r} holds a damaged batch at"
            f" offset {batch.base_offset}: {error}"
        )


def _are_small(batches: Sequence[RecordBatch]) -> bool:
    records = sum(batch.records_count for batch in batches)
    return len(batches) >= BATCHES_MIN and records < RECORDS_PER_BATCH_MIN * len(batches)


def _is_abort(batch: RecordBatch) -> bool:
    marker = parse_end_transaction_marker(next(iter(iter_records(batch))))
    return marker is not None and marker.type is ControlRecordType.ABORT
