"""The options of reading, all checked before any request to a cluster."""

from __future__ import annotations

import re
import uuid
from typing import NamedTuple

from ..batch_sizes import batch_bytes_max
from ..errors import SparkConnectorError
from ..option_values import Options, boolean_of, integer_of
from ..topic_selection import TopicSelection, selection_of
from .kafka_settings import Settings, consumer_settings, kafka_settings
from .offset_limits import OffsetLimit, ending_limit, refuse_ending, starting_limit

POLL_TIMEOUT_MS = 120_000
"""As long as Spark's own network timeout, which its source waits for by default."""

CLUSTER_TIMEOUT_MS = 60_000
"""`default.api.timeout.ms` of Java's clients."""

MAX_TRIGGER_DELAY_MS = 15 * 60 * 1000

_DURATION = re.compile(r"(?P<number>\d+)\s*(?P<unit>[a-z]*)")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class ReadOptions(NamedTuple):
    """What is read, and how."""

    selection: TopicSelection
    start: OffsetLimit
    end: OffsetLimit | None
    """None of a stream."""
    settings: Settings
    """For librdkafka's clients of any kind."""
    group_id: str
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    limit_first_batch: bool
    """Whether the first batch of a run keeps to the limit with a Spark before 4.2, too."""
    stop_at_latest: bool
    """Whether a stream gives only what is there when a run begins."""
    batch_bytes_max: int
    """How many bytes a record batch of Arrow may have."""
    poll_timeout_ms: int
    retries_max: int
    retry_interval_ms: int
    cluster_timeout_ms: int

    def consumer_settings(self) -> Settings:
        """What the executors' consumers are made with, but for the size of fetches.

        Whoever sets `kafka.max.partition.fetch.bytes` gets that; see `fetch_sizes`.
        """
        defaults = {
            # Java's default; librdkafka's own is to hide what is not committed.
            "isolation.level": "read_uncommitted",
            # Of decompressed records: beyond that nothing more is fetched.
            "queued.max.messages.kbytes": str(16 << 10),
            "queued.min.messages": "100000",
            # By itself librdkafka fetches nothing for a second once enough messages wait.
            "fetch.queue.backoff.ms": "5",
            # What a task reads is there already; waiting would only be for the end of the log.
            "fetch.wait.max.ms": "20",
        }
        return {
            **defaults,
            **consumer_settings(self.settings),
            "group.id": self.group_id,
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "error",
        }

    @property
    def reads_committed(self) -> bool:
        """Whether what was not committed is left out."""
        return self.settings.get("isolation.level") == "read_committed"


def read_options(options: Options, *, is_stream: bool) -> ReadOptions:
    """All options of a reader.

    Raises:
        SparkConnectorError: one cannot be honoured; the sentence names it.
    """
    selection = selection_of(options)
    settings = kafka_settings(options)
    if is_stream:
        refuse_ending(options)
    at_least, at_most = _offsets_per_trigger(options)
    return ReadOptions(
        selection=selection,
        start=starting_limit(options, is_stream=is_stream),
        end=None if is_stream else ending_limit(options),
        settings=settings,
        group_id=_group_id(options, settings),
        fail_on_data_loss=boolean_of(options, "failOnDataLoss", True),
        min_partitions=integer_of(options, "minPartitions", 1, None),
        max_records_per_partition=integer_of(options, "maxRecordsPerPartition", 1, None),
        min_offsets_per_trigger=at_least,
        max_offsets_per_trigger=at_most,
        max_trigger_delay_ms=_delay_ms(options),
        limit_first_batch=boolean_of(options, "limitFirstBatch", False),
        stop_at_latest=boolean_of(options, "stopAtLatest", False),
        batch_bytes_max=batch_bytes_max(options),
        poll_timeout_ms=_milliseconds(options, "kafkaConsumer.pollTimeoutMs", POLL_TIMEOUT_MS),
        retries_max=integer_of(options, "fetchOffset.numRetries", 1, 3) or 3,
        retry_interval_ms=_milliseconds(options, "fetchOffset.retryIntervalMs", 10),
        cluster_timeout_ms=_milliseconds(
            options, "kafka.default.api.timeout.ms", CLUSTER_TIMEOUT_MS
        ),
    )


def includes_headers(options: Options) -> bool:
    """Whether the column `headers` is included.

    Raises:
        SparkConnectorError: the option is neither true nor false.
    """
    return boolean_of(options, "includeHeaders", False)


def _milliseconds(options: Options, name: str, default: int) -> int:
    value = integer_of(options, name, 0, default)
    return default if value is None else value


def _offsets_per_trigger(options: Options) -> tuple[int | None, int | None]:
    at_most = integer_of(options, "maxOffsetsPerTrigger", 1, None)
    at_least = integer_of(options, "minOffsetsPerTrigger", 1, None)
    if at_most is not None and at_least is not None and at_least > at_most:
        raise SparkConnectorError(
            f"option 'minOffsetsPerTrigger' is {at_least}, above the {at_most} of"
            " 'maxOffsetsPerTrigger'"
        )
    return at_least, at_most


def _delay_ms(options: Options) -> int:
    text = options.get("maxTriggerDelay")
    if text is None:
        return MAX_TRIGGER_DELAY_MS
    match = _DURATION.fullmatch(text.strip().lower())
    unit = match["unit"] or "ms" if match else ""
    if match is None or unit not in _UNIT_MS:
        raise SparkConnectorError(
            f"option 'maxTriggerDelay' must be a time such as 15m or 30s, not {text!r}"
        )
    return int(match["number"]) * _UNIT_MS[unit]


def _group_id(options: Options, settings: Settings) -> str:
    """Nobody joins the group, but brokers may allow reading only to some."""
    prefix = options.get("groupIdPrefix") or "spark-odradek-source"
    return settings.get("group.id") or f"{prefix}-{uuid.uuid4()}"
