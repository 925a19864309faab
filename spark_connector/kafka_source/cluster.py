"""What the driver asks of a cluster: which partitions there are, and their offsets.

A Kafka admin client answers all of it, as in Spark's own source: no consumer group is joined.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterable
from typing import Any

from ...common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ..errors import SparkConnectorError
from ..topic_selection import TopicSelection
from .kafka_settings import admin_settings
from .offset_limits import OffsetLimit, TopicPartition
from .options import ReadOptions

Offsets = dict[TopicPartition, int]

QUIET = 5
"""librdkafka's log level for what needs attention: it remarks on every admin client that ends."""

DESCRIBE_S = 5.0
"""librdkafka asks the controller of topics, and learns only from a full list who that is now."""

LIST_OFFSETS_S = 10.0
"""How long one ListOffsets waits; it is sent again while leaders move, until the timeout."""

LOOK_AGAIN_S = 0.1

TRANSIENT_ERRORS = (
    "_TIMED_OUT",
    "_TRANSPORT",
    "FENCED_LEADER_EPOCH",
    "KAFKA_STORAGE_ERROR",
    "LEADER_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "NOT_LEADER_FOR_PARTITION",
    "OFFSET_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "REQUEST_TIMED_OUT",
    "UNKNOWN_LEADER_EPOCH",
)
"""Errors of a partition whose leader is moving, by confluent-kafka's names: what Java's admin
client, and so Spark's own source, asks again after."""

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Spark's own source reads none of these, even where an option names one."""


class UnknownTopicError(SparkConnectorError):
    """What an option names is not in the cluster."""


class UnansweredError(SparkConnectorError):
    """No broker answers, or not the one that could."""


class KafkaOffsetReader:
    """A connection of the driver's, made at first use.

    Args:
        options: of the reader.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._admin: Any = None

    def partitions(self) -> list[TopicPartition]:
        """The partitions that the options select, as they are now.

        Raises:
            UnknownTopicError: one that is named is not there.
            SparkConnectorError: no broker answers.
        """
        selection = self._options.selection
        if selection.topics is None and selection.partitions is None:
            return sorted(self._matching(selection))
        names = selection.topics or {topic for topic, _ in selection.partitions or ()}
        there = self._described(names)
        selected = set(selection.partitions or there)
        found = {each for each in selected & there if each[0] not in INTERNAL_TOPICS}
        if found != selected:
            left_out = ", ".join(f"{topic}-{partition}" for topic, partition in selected - found)
            warnings.warn(
                f"option {selection.option!r}: left out, as by Spark's own source, which reads no"
                f" internal topics and no partitions that are not there: {left_out}",
                stacklevel=2,
            )
        return sorted(found)

    def _matching(self, selection: TopicSelection) -> Iterable[TopicPartition]:
        metadata = self._call(lambda admin, s: admin.list_topics(timeout=s))
        for topic in metadata.topics.values():
            if topic.topic not in INTERNAL_TOPICS and selection.covers(topic.topic, 0):
                for partition in topic.partitions:
                    yield topic.topic, partition

    def _described(self, names: Collection[str]) -> set[TopicPartition]:
        from confluent_kafka import TopicCollection

        topics = TopicCollection(sorted(names))
        wait_s = min(DESCRIBE_S, self._options.cluster_timeout_ms / 2000)
        futures = self._call(lambda admin, s: admin.describe_topics(topics, request_timeout=wait_s))
        found: set[TopicPartition] = set()
        for name, future in futures.items():
            try:
                partitions = self._result(future, f"topic {name!r}").partitions
            except UnansweredError:
                return self._found_in_all(names)
            found.update((name, partition.id) for partition in partitions)
        return found

    def _found_in_all(self, names: Collection[str]) -> set[TopicPartition]:
        """As `_described`, from a list of all topics, which any broker gives."""
        listed = self._call(lambda admin, s: admin.list_topics(timeout=s)).topics
        missing = sorted(set(names) - set(listed))
        if missing:
            raise self._unknown(f"topic {missing[0]!r}")
        return {(name, partition) for name in names for partition in listed[name].partitions}

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offset of each."""
        return self._listed(dict.fromkeys(partitions, EARLIEST_TIMESTAMP))

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The offset behind the last of each; the last stable one where committed is read."""
        return self._listed(dict.fromkeys(partitions, LATEST_TIMESTAMP))

    def resolved(
        self, limit: OffsetLimit, partitions: Collection[TopicPartition], *, is_start: bool
    ) -> Offsets:
        """The offsets that a limit stands for.

        Args:
            limit: what the options say.
            partitions: all that are read; a limit by partition has to name each and no other.
            is_start: whether this is the start.

        Raises:
            SparkConnectorError: it names other partitions, or begins behind the last record's
                time.
        """
        if limit.everywhere is not None:
            return self._listed(dict.fromkeys(partitions, limit.everywhere))
        if limit.offsets is not None:
            _require_same(limit.option, limit.offsets, partitions)
            ends = {each: number for each, number in limit.offsets.items() if number < 0}
            return {**limit.offsets, **self._listed(ends)}
        times = limit.timestamps_ms
        if times is None:
            times = dict.fromkeys(partitions, limit.timestamp_ms or 0)
        _require_same(limit.option, times, partitions)
        found = self._listed(times)
        missing = sorted(each for each, offset in found.items() if offset < 0)
        if missing and is_start and not limit.latest_if_none_as_late:
            topic, partition = missing[0]
            raise SparkConnectorError(
                f"option {limit.option!r}: partition {partition} of {topic!r} has no record as"
                f" late as {times[missing[0]]}; 'startingOffsetsByTimestampStrategy' set to"
                " latest would begin at its end"
            )
        return {**found, **self.latest(missing)}

    def _listed(self, requested: dict[TopicPartition, int]) -> Offsets:
        """ListOffsets: the offset at a time in ms, at the start or at the end; -1 if none."""
        if not requested:
            return {}
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka import admin as kafka_admin

        spec: Any = kafka_admin.OffsetSpec  # type: ignore[attr-defined]  # it is not in its __all__
        specs = {LATEST_TIMESTAMP: spec.latest(), EARLIEST_TIMESTAMP: spec.earliest()}
        missing = {
            TopicPartition(topic, partition): specs.get(number) or spec.for_timestamp(number)
            for (topic, partition), number in requested.items()
        }
        isolation = (
            IsolationLevel.READ_COMMITTED
            if self._options.reads_committed
            else IsolationLevel.READ_UNCOMMITTED
        )
        found: Offsets = {}
        deadline = time.monotonic() + self._options.cluster_timeout_ms / 1000
        while True:
            left_s = deadline - time.monotonic()
            found |= self._listed_once(missing, isolation, left_s)
            if len(found) == len(requested):
                return found
            missing = {
                each: spec
                for each, spec in missing.items()
                if (each.topic, each.partition) not in found
            }
            # librdkafka asks those again whom it remembers as leaders; a new client remembers none.
            self._admin = None
            time.sleep(LOOK_AGAIN_S)

    def _listed_once(self, requested: dict[Any, Any], isolation: Any, left_s: float) -> Offsets:
        """The offsets known now; a leader without an answer is an error once no time is left."""
        wait_s = max(min(LIST_OFFSETS_S, left_s), LOOK_AGAIN_S)
        futures = self._call(
            lambda admin, s: admin.list_offsets(
                requested, isolation_level=isolation, request_timeout=wait_s
            )
        )
        found: Offsets = {}
        for each, future in futures.items():
            try:
                result = self._result(future, f"partition {each.partition} of {each.topic!r}")
            except UnansweredError:
                if left_s <= 0:
                    raise
            except UnknownTopicError:
                # A broker that has just started leads partitions that it has not heard of yet.
                if left_s <= 0 or not self._is_listed(each.topic, each.partition):
                    raise
            else:
                found[each.topic, each.partition] = result.offset
        return found

    def _is_listed(self, topic: str, partition: int) -> bool:
        """Whether the cluster's metadata have a partition."""
        topics = self._call(lambda admin, s: admin.list_topics(timeout=s)).topics
        return topic in topics and partition in topics[topic].partitions

    def latest_after(self, known: Offsets, partitions: Collection[TopicPartition]) -> Offsets:
        """The latest offsets, listed again where one lies before what was seen.

        A broker that has just become leader may answer from before it knew all (KAFKA-7703).
        """
        found = self.latest(partitions)
        for _ in range(self._options.retries_max - 1):
            if all(found[each] >= known.get(each, 0) for each in found):
                break
            time.sleep(self._options.retry_interval_ms / 1000)
            found = self.latest(partitions)
        return found

    def _call(self, ask: Any) -> Any:
        from confluent_kafka import KafkaException

        try:
            return ask(self._connected(), self._options.cluster_timeout_ms / 1000)
        except KafkaException as error:
            raise self._unanswered(error) from None

    def _result(self, future: Any, what: str) -> Any:
        from confluent_kafka import KafkaError, KafkaException

        try:
            return future.result()
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise self._unknown(what) from None
            if code in [getattr(KafkaError, name) for name in TRANSIENT_ERRORS]:
                raise self._unanswered(error) from None
            raise SparkConnectorError(
                f"the cluster refuses to tell of {what}: {error.args[0].str()}"
            ) from None

    def _unknown(self, what: str) -> UnknownTopicError:
        return UnknownTopicError(
            f"option {self._options.selection.option!r} names {what}, which the cluster does not"
            " have (UNKNOWN_TOPIC_OR_PARTITION)"
        )

    def _unanswered(self, error: Any) -> UnansweredError:
        return UnansweredError(
            f"no broker answers at option 'kafka.bootstrap.servers',"
            f" {self._options.settings['bootstrap.servers']!r}: {error.args[0].str()}"
        )

    def _connected(self) -> Any:
        if self._admin is None:
            self._admin = admin_client(self._options.settings)
        return self._admin


def admin_client(settings: dict[str, str]) -> Any:
    """An admin client of confluent-kafka.

    Raises:
        SparkConnectorError: it is not installed, or does not know a setting.
    """
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        raise SparkConnectorError(
            "confluent-kafka is not installed; install it with: pip install 'odradek[spark]'"
        ) from None
    try:
        return AdminClient({"log_level": QUIET, **admin_settings(settings)})
    except KafkaException as error:
        raise SparkConnectorError(
            f"a 'kafka.' option cannot be honoured: {error.args[0].str()}"
        ) from None


def _require_same(
    option: str, named: Collection[TopicPartition], partitions: Collection[TopicPartition]
) -> None:
    if set(named) != set(partitions):
        missing = sorted(set(partitions) - set(named))
        topic, partition = (missing or sorted(set(named) - set(partitions)))[0]
        verb = "leaves out" if missing else "names"
        raise SparkConnectorError(
            f"option {option!r} must name the partitions that are read, all and no others, but"
            f" {verb} partition {partition} of {topic!r}"
        )
