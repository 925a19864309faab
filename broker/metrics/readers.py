"""Takes every metric's values from a running broker.

Each reader is a generator that goes over one package's objects. Whoever drives it may pause after
any value and let others run, so that a scrape of thousands of partitions holds up nobody; that
is why tables are copied before they are gone over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ...coordinator.group.classic.states import ClassicGroupState
from ...coordinator.group.consumer.states import ConsumerGroupState
from .controller_reader import controller_samples
from .fetcher_reader import fetcher_samples
from .metric import Sample
from .request_reader import request_samples
from .source import MetricsSource

if TYPE_CHECKING:
    from ...replication.partition.partition import Partition
    from ...replication.topic_stats import TopicStats

Reader = Callable[[MetricsSource], Iterator[Sample]]

RUNNING = 3
"""Kafka's BrokerState.RUNNING; before and after it nobody is answered here."""

_REPLICA_MANAGER = "kafka_server_replicamanager_"
_TOPICS = "kafka_server_brokertopicmetrics_"
_PARTITION = "kafka_cluster_partition_"
_LOG = "kafka_log_log_"
_PURGATORY = "kafka_server_delayedoperationpurgatory_"
_FETCH_SESSIONS = "kafka_server_fetchsessioncache_"
_NETWORK = "kafka_server_socket_server_metrics_"
_GROUPS = "kafka_coordinator_group_groupmetadatamanager_"
_GROUP_COORDINATOR = "kafka_server_group_coordinator_metrics_"

PER_TOPIC = (
    ("messagesin_total", "messages_in"),
    ("bytesin_total", "bytes_in"),
    ("bytesout_total", "bytes_out"),
    ("bytesrejected_total", "bytes_rejected"),
    ("totalproducerequests_total", "total_produce_requests"),
    ("failedproducerequests_total", "failed_produce_requests"),
    ("totalfetchrequests_total", "total_fetch_requests"),
    ("failedfetchrequests_total", "failed_fetch_requests"),
)
"""The end of a metric's name, and the counter of `TopicStats` that it shows."""

OF_THE_BROKER = (
    ("replicationbytesin_total", "replication_bytes_in"),
    ("replicationbytesout_total", "replication_bytes_out"),
    ("reassignmentbytesin_total", "reassignment_bytes_in"),
    ("reassignmentbytesout_total", "reassignment_bytes_out"),
)

ISR_CHANGES = (
    ("isrshrinks_total", "isr_shrinks"),
    ("isrexpands_total", "isr_expands"),
    ("failedisrupdates_total", "failed_isr_updates"),
)

GROUP_STATES = (
    ("numgroupspreparingrebalance", ClassicGroupState.PREPARING_REBALANCE),
    ("numgroupscompletingrebalance", ClassicGroupState.COMPLETING_REBALANCE),
    ("numgroupsstable", ClassicGroupState.STABLE),
    ("numgroupsempty", ClassicGroupState.EMPTY),
    ("numgroupsdead", ClassicGroupState.DEAD),
)


def broker_samples(source: MetricsSource) -> Iterator[Sample]:
    """Who it is."""
    from importlib.metadata import version

    labels = (str(source.context.broker_id), source.context.cluster_id, version("odradek"))
    yield "odradek_broker_info", labels, 1
    yield "kafka_server_kafkaserver_brokerstate", (), RUNNING


def replica_samples(source: MetricsSource) -> Iterator[Sample]:
    """Partitions one by one, and how many of them are in which state."""
    partitions = source.context.replica_manager.partitions
    counts: Counter[str] = Counter()
    for partition in list(partitions.values()):
        labels = (partition.topic_partition.topic, str(partition.topic_partition.partition))
        for name, value in _partition_values(partition):
            yield _PARTITION + name, labels, value
        counts["leadercount"] += partition.is_leader
        counts["underreplicatedpartitions"] += partition.is_under_replicated
        counts["underminisrpartitioncount"] += partition.is_under_min_isr
        counts["atminisrpartitioncount"] += partition.is_at_min_isr
        counts["reassigningpartitions"] += partition.is_leader and partition.is_reassigning
    offline = len(partitions.offline)
    yield _REPLICA_MANAGER + "partitioncount", (), len(partitions) + offline
    yield _REPLICA_MANAGER + "offlinereplicacount", (), offline
    for name in (
        "leadercount",
        "underreplicatedpartitions",
        "underminisrpartitioncount",
        "atminisrpartitioncount",
        "reassigningpartitions",
    ):
        yield _REPLICA_MANAGER + name, (), counts[name]


def _partition_values(partition: Partition) -> Iterator[tuple[str, int]]:
    is_leader = partition.is_leader
    yield "underreplicated", partition.is_under_replicated
    yield "underminisr", partition.is_under_min_isr
    yield "atminisr", partition.is_at_min_isr
    yield "replicascount", len(partition.replicas) if is_leader else 0
    yield "insyncreplicascount", len(partition.isr) if is_leader else 0
    yield "laststableoffsetlag", max(partition.high_watermark - partition.last_stable_offset, 0)


def topic_samples(source: MetricsSource) -> Iterator[Sample]:
    """What went in and out: all topics together, and each that had anything."""
    table = source.context.replica_manager.topic_stats
    total = table.total()
    for name, counter in (*PER_TOPIC, *OF_THE_BROKER):
        yield _TOPICS + name, (), getattr(total, counter)
    for name, counter in ISR_CHANGES:
        yield _REPLICA_MANAGER + name, (), getattr(total, counter)
    for topic, stats in table.by_topic():
        yield from _of_topic(topic, stats)


def _of_topic(topic: str, stats: TopicStats) -> Iterator[Sample]:
    """Those that were ever counted, as Kafka makes its meters when they are first used."""
    for name, counter in PER_TOPIC:
        value = getattr(stats, counter)
        if value:
            yield _TOPICS + name, (topic,), value


def waiting_samples(source: MetricsSource) -> Iterator[Sample]:
    """Purgatories and fetch sessions."""
    manager = source.context.replica_manager
    for kind, purgatory in (
        ("Produce", manager.delayed_produce),
        ("Fetch", manager.delayed_fetch),
        ("DeleteRecords", manager.delayed_delete_records),
    ):
        waiting, entries = purgatory.sizes()
        yield _PURGATORY + "numdelayedoperations", (kind,), waiting
        yield _PURGATORY + "purgatorysize", (kind,), entries
    sessions = source.context.fetch_sessions
    cached = sum(len(session.partitions) for session in sessions)
    yield _FETCH_SESSIONS + "numincrementalfetchsessions", (), len(sessions)
    yield _FETCH_SESSIONS + "numincrementalfetchpartitionscached", (), cached
    yield (
        _FETCH_SESSIONS + "incrementalfetchsessionevictions_total",
        (),
        sessions.evictions,
    )


def network_samples(source: MetricsSource) -> Iterator[Sample]:
    """Connections by listener; one task serves them all, Kafka's network processor 0."""
    for listener, (now_open, accepted) in source.server.connection_counts().items():
        yield _NETWORK + "connection_count", (listener, "0"), now_open
        yield _NETWORK + "connection_creation_total", (listener, "0"), accepted


def log_samples(source: MetricsSource) -> Iterator[Sample]:
    """Every log, and the directories they lie in."""
    for topic_partition, log in list(source.context.log_manager.logs.items()):
        labels = (topic_partition.topic, str(topic_partition.partition))
        yield _LOG + "logstartoffset", labels, log.log_start_offset
        yield _LOG + "logendoffset", labels, log.log_end_offset
        yield _LOG + "size", labels, log.size
        yield _LOG + "numlogsegments", labels, len(log.segments)
    offline = 0
    for directory in source.context.log_manager.directories:
        offline += not directory.is_online
        yield "kafka_log_logmanager_logdirectoryoffline", (directory.path,), not directory.is_online
    yield "kafka_log_logmanager_offlinelogdirectorycount", (), offline


def group_samples(source: MetricsSource) -> Iterator[Sample]:
    """Groups by state, and the offsets they committed."""
    states: Counter[ClassicGroupState] = Counter()
    offsets = 0
    groups = source.context.coordinators.group.groups
    for group in groups:
        states[group.state] += 1
        offsets += len(group.offsets)
    yield _GROUPS + "numgroups", (), len(groups)
    for name, state in GROUP_STATES:
        yield _GROUPS + name, (), states[state]
    consumer_groups = source.context.coordinators.group.consumer_groups
    consumer_states = Counter(group.state for group in consumer_groups)
    offsets += sum(len(group.offsets) for group in consumer_groups)
    yield _GROUPS + "numoffsets", (), offsets
    yield _GROUP_COORDINATOR + "group_count", ("classic",), len(groups)
    yield _GROUP_COORDINATOR + "group_count", ("consumer",), len(consumer_groups)
    for consumer_state in ConsumerGroupState:
        labels = (consumer_state.value.lower(),)
        yield _GROUP_COORDINATOR + "consumer_group_count", labels, consumer_states[consumer_state]


READERS: tuple[Reader, ...] = (
    broker_samples,
    replica_samples,
    fetcher_samples,
    topic_samples,
    request_samples,
    waiting_samples,
    network_samples,
    log_samples,
    controller_samples,
    group_samples,
)
