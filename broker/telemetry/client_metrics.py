"""The clients that push metrics: what each is to push, when, and what it has pushed last.

Source: KIP-714; Kafka's ClientMetricsManager and ClientMetricsInstance. A client that was not
heard of for three intervals is forgotten with its values; Kafka forgets it with its connection.
"""

from __future__ import annotations

import random
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ...config.broker_config import BrokerConfig
from ...protocol.compression.codecs import Compression
from ...protocol.compression.decompression import iter_decompressed
from ...runtime.clock import Clock
from ...runtime.rng import random_uuid, uuid_to_text
from ...runtime.steps import ITEMS_AT_LEAST, Steps, count_items
from .subscriptions import RequestedMetrics, Subscription, read_subscription, requested_of

if TYPE_CHECKING:
    from .otlp import Labels, Point

ID_BYTES = 16
RESERVED_IDS = frozenset(number.to_bytes(ID_BYTES, "big") for number in (0, 1))
"""Uuid.RESERVED."""

CLIENTS_MAX = 16_384
"""The one heard of longest ago is forgotten, as in Kafka."""

FORGET_AFTER_MS = 60_000
"""At least; else three times the interval in which it pushes."""

SERIES_OF_CLIENT_MAX = 2_000
SERIES_MAX = 100_000
"""Of all clients. What is more is dropped, and counted."""

DECOMPRESSED_BYTES_MAX = 4 << 20
"""Of one push: what a thousand partitions measure, several times."""

NEVER_MS = -(1 << 62)

ACCEPTED_COMPRESSIONS = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""The best first."""

SeriesKey: TypeAlias = "tuple[str, Labels]"


class Series(NamedTuple):
    """The newest value of something that a client measures.

    Attributes:
        is_counter: it is a sum that never falls.
    """

    value: float
    is_counter: bool


class PushingClient:
    """One client that pushes.

    Attributes:
        id: its client instance id.
        attributes: what subscriptions' `match` looks at.
        requested: what it is to push.
        version: of the subscriptions from which that follows.
        subscription_id: names `requested` in requests.
        series: what it has pushed.
    """

    __slots__ = (
        "attributes",
        "heard_ms",
        "id",
        "is_terminating",
        "last_get_ms",
        "last_push_ms",
        "requested",
        "series",
        "subscription_id",
        "version",
    )

    def __init__(self, client_id: bytes, attributes: Mapping[str, str]) -> None:
        self.id = client_id
        self.attributes = attributes
        self.series: dict[SeriesKey, Series] = {}
        self.heard_ms = 0
        self.version = -1

    def subscribe(self, requested: RequestedMetrics, version: int) -> None:
        """Begin anew with what is requested now; what was pushed stays."""
        self.requested = requested
        self.version = version
        text = f"{sorted(requested.metrics)}{requested.interval_ms}".encode()
        number = zlib.crc32(text) ^ zlib.crc32(self.id)
        self.subscription_id = number - (1 << 32) if number >> 31 else number
        self.last_get_ms = self.last_push_ms = NEVER_MS
        self.is_terminating = False

    @property
    def forget_after_ms(self) -> int:
        """How long it may be silent."""
        return max(FORGET_AFTER_MS, 3 * self.requested.interval_ms)

    def may_get(self, now_ms: int) -> bool:
        """Whether it may ask for its subscription now; notes that it did."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.requested.interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Whether it may push now; notes that it did. The first push after it got its subscription
        may come at any time: clients spread theirs."""
        if (
            self.last_get_ms <= self.last_push_ms
            and now_ms - self.last_push_ms < self.requested.interval_ms
        ):
            return False
        self.last_push_ms = now_ms
        return True


class ClientMetrics:
    """All subscriptions, and the clients that push to this broker.

    Args:
        config: the broker's settings.
        clock: for intervals.
        rng: client instance ids are drawn from it.

    Attributes:
        overrides: the settings of each subscription, by its name.
        dropped_series: how many values were dropped because there were too many.
    """

    def __init__(self, config: BrokerConfig, clock: Clock, rng: random.Random) -> None:
        self.overrides: dict[str, Mapping[str, str]] = {}
        self.dropped_series = 0
        self._config = config
        self._clock = clock
        self._rng = rng
        self._version = 0
        self._subscriptions: dict[str, Subscription] = {}
        self._clients: OrderedDict[bytes, PushingClient] = OrderedDict()
        """Those heard of last at the end."""
        self._series_count = 0

    def change(self, name: str, overrides: Mapping[str, str]) -> None:
        """A subscription is made, altered, or, without any settings, deleted."""
        self.overrides.pop(name, None)
        self._subscriptions.pop(name, None)
        if overrides:
            self.overrides[name] = overrides
            self._subscriptions[name] = read_subscription(overrides)
        self._version += 1

    def clients(self) -> Iterator[PushingClient]:
        """Those that are not forgotten, as they are now."""
        now_ms = self._clock.monotonic_ms()
        for client in list(self._clients.values()):
            if now_ms - client.heard_ms > client.forget_after_ms:
                self._forget(client)
            else:
                yield client

    def get(self, client_id: bytes, attributes: Mapping[str, str]) -> PushingClient:
        """GetTelemetrySubscriptions: what a client is to push.

        Args:
            client_id: zeros: it gets one.
            attributes: of the client.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED, it asks too often. That holds after a push with
                an old subscription id, too, as in Kafka, where a condition is always true.
        """
        if not any(client_id):
            client_id = self._new_id()
        client = self._client(client_id, attributes)
        if not client.may_get(self._clock.monotonic_ms()):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        return client

    def push(
        self,
        client_id: bytes,
        attributes: Mapping[str, str],
        subscription_id: int,
        compression_type: int,
        metrics: bytes,
        *,
        is_terminating: bool,
    ) -> Steps[None]:
        """PushTelemetry: take what a client has measured.

        Args:
            metrics: OpenTelemetry's MetricsData, compressed.
            is_terminating: it is the client's last push, which may come at any time.

        Raises:
            KafkaError: INVALID_REQUEST, THROTTLING_QUOTA_EXCEEDED, UNKNOWN_SUBSCRIPTION_ID,
                UNSUPPORTED_COMPRESSION_TYPE, TELEMETRY_TOO_LARGE, or INVALID_RECORD for what
                cannot be read.
        """
        from .otlp import read_points  # most brokers are never pushed anything

        if client_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        client = self._client(client_id, attributes)
        was_terminating, client.is_terminating = client.is_terminating, is_terminating
        if was_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not client.may_push(self._clock.monotonic_ms()) and not is_terminating:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if subscription_id != client.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        try:
            compression = Compression(compression_type)
        except ValueError:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE) from None
        if len(metrics) > self._config["telemetry.max.bytes"]:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)
        try:
            pieces = []
            for piece in iter_decompressed(compression, metrics, DECOMPRESSED_BYTES_MAX):
                pieces.append(piece)
                yield from count_items(ITEMS_AT_LEAST)  # a piece takes some hundred microseconds
            yield from read_points(b"".join(pieces), partial(self._put, client))
        except (KafkaError, ValueError):
            raise KafkaError(ErrorCode.INVALID_RECORD) from None

    def _put(self, client: PushingClient, point: Point) -> None:
        measure = point.measure
        key = measure.name, tuple(sorted(dict(point.labels).items()))
        known = client.series.get(key)
        if known is None:
            if len(client.series) >= SERIES_OF_CLIENT_MAX or self._series_count >= SERIES_MAX:
                self.dropped_series += 1
                return
            self._series_count += self._clients.get(client.id) is client
        before = known.value if known is not None and measure.is_delta else 0.0
        client.series[key] = Series(before + point.value, measure.is_monotonic)

    def _client(self, client_id: bytes, attributes: Mapping[str, str]) -> PushingClient:
        client = self._clients.get(client_id)
        now_ms = self._clock.monotonic_ms()
        if client is not None and now_ms - client.heard_ms > client.forget_after_ms:
            self._forget(client)
            client = None
        if client is None:
            if len(self._clients) >= CLIENTS_MAX:
                self._forget(next(iter(self._clients.values())))
            client = PushingClient(client_id, attributes)
            self._clients[client_id] = client
        if client.version != self._version:
            named = {**client.attributes, "client_instance_id": uuid_to_text(client_id)}
            requested = requested_of(self._subscriptions.values(), named)
            client.subscribe(requested, self._version)
        client.heard_ms = now_ms
        self._clients.move_to_end(client_id)
        return client

    def _forget(self, client: PushingClient) -> None:
        self._series_count -= len(client.series)
        del self._clients[client.id]

    def _new_id(self) -> bytes:
        while True:
            client_id = random_uuid(self._rng)
            if client_id not in self._clients:
                return client_id
