"""Takes every metric's values from a running broker.

Each reader is a generator that goes over one package's objects. Whoever drives it may pause after
any value and let others run, so that a scrape of thousands of partitions holds up nobody; that
is why tables are copied before they are gone over.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from ...common.errors import KafkaError
from ...controller.context import ControllerContext, Topic
from ...controller.partitions.states import PartitionStatus
from ...coordinator.group.classic.states import ClassicGroupState
from ...coordinator.group.consumer.states import ConsumerGroupState
from ...coordinator.group.share.states import ShareGroupState
from ...coordinator.group.streams.states import StreamsGroupState
from ...protocol.messages import request_message
from ..request.request_metrics import BUCKETS, RequestTimes, quantiles
from .metric import Sample, Summary
from .source import MetricsContext

if TYPE_CHECKING:
    from ...replication.partition.partition import Partition
    from ...replication.topic_stats import TopicStats
    from ...security.quotas.rate import QuotaSensor, ThrottleTimes, TokenBucket
    from ..request.route import Route

KeyT = TypeVar("KeyT")
SensorT = TypeVar("SensorT", "QuotaSensor", "TokenBucket")
Reader = Callable[[MetricsContext], Iterator[Sample]]

SENSORS_MAX: Final = 1_000
"""So many of those that have a quota of a kind are shown: who used it last."""

_REPLICA_MANAGER = "kafka_server_replicamanager_"
_TOPICS = "kafka_server_brokertopicmetrics_"
_PARTITION = "kafka_cluster_partition_"
_LOG = "kafka_log_log_"
_PURGATORY = "kafka_server_delayedoperationpurgatory_"
_FETCH_SESSIONS = "kafka_server_fetchsessioncache_"
_NETWORK = "kafka_server_socket_server_metrics_"
_GROUPS = "kafka_coordinator_group_groupmetadatamanager_"
_GROUP_COORDINATOR = "kafka_server_group_coordinator_metrics_"
_SHARE_SESSIONS = "kafka_server_sharesessioncache_"
_SHARE_PARTITION = "kafka_server_sharepartitionmetrics_"

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

ACKNOWLEDGE_TYPES = {1: "Accept", 2: "Release", 3: "Reject", 4: "Renew"}
"""The numbers of `AcknowledgeType`, which is imported with the first share group."""

GROUP_STATES = (
    ("numgroupspreparingrebalance", ClassicGroupState.PREPARING_REBALANCE),
    ("numgroupscompletingrebalance", ClassicGroupState.COMPLETING_REBALANCE),
    ("numgroupsstable", ClassicGroupState.STABLE),
    ("numgroupsempty", ClassicGroupState.EMPTY),
    ("numgroupsdead", ClassicGroupState.DEAD),
)


def broker_samples(source: MetricsContext) -> Iterator[Sample]:
    """Who it is."""
    from importlib.metadata import version

    labels = (str(source.context.broker_id), source.context.cluster_id, version("odradek"))
    yield "odradek_broker_info", labels, 1
    yield "kafka_server_kafkaserver_brokerstate", (), source.state()
    for task, count in (source.supervisor.failures + source.timers.failures).items():
        yield "odradek_background_task_failures_total", (task,), count


def replica_samples(source: MetricsContext) -> Iterator[Sample]:
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


def topic_samples(source: MetricsContext) -> Iterator[Sample]:
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


def waiting_samples(source: MetricsContext) -> Iterator[Sample]:
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
    yield (_FETCH_SESSIONS + "incrementalfetchsessionevictions_total", (), sessions.evictions)


def network_samples(source: MetricsContext) -> Iterator[Sample]:
    """Connections by listener; one task serves them all, Kafka's network processor 0."""
    for listener, (now_open, accepted) in source.server.connection_counts().items():
        yield _NETWORK + "connection_count", (listener, "0"), now_open
        yield _NETWORK + "connection_creation_total", (listener, "0"), accepted
    for reason, count in source.server.quotas.refused.items():
        yield "odradek_connections_refused_total", (reason,), count
    yield from _connection_rate_samples(source)


def log_samples(source: MetricsContext) -> Iterator[Sample]:
    """Every log, and the directories they lie in."""
    for topic_partition, log in list(source.context.log_manager.logs.items()):
        labels = (topic_partition.topic, str(topic_partition.partition))
        yield _LOG + "logstartoffset", labels, log.log_start_offset
        yield _LOG + "logendoffset", labels, log.log_end_offset
        yield _LOG + "size", labels, log.size
        yield _LOG + "numlogsegments", labels, len(log.segments)
    offline = 0
    refused = source.context.replica_manager.refused_writes
    for directory in source.context.log_manager.directories:
        offline += not directory.is_online
        yield "kafka_log_logmanager_logdirectoryoffline", (directory.path,), not directory.is_online
        yield "odradek_log_directory_full", (directory.path,), refused.is_full(directory.path)
    for (error, path), count in list(refused.counts.items()):
        yield "odradek_refused_writes_total", (error.name, path), count
    yield "kafka_log_logmanager_offlinelogdirectorycount", (), offline


QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
"""Those that the exporter shows of Kafka's histograms, as it writes them."""

_SHARES = tuple(float(each) for each in QUANTILES)


def request_samples(source: MetricsContext) -> Iterator[Sample]:
    """Every API that was requested.

    A Fetch counts twice, as in Kafka: under its own name, and as FetchConsumer or FetchFollower.
    """
    times_of: dict[str, list[RequestTimes]] = defaultdict(list)
    errors: Counter[tuple[str, str]] = Counter()
    for route in source.dispatcher.routes:
        for name, times in _named_times(route):
            times_of[name].append(times)
        for name, count in _counts(route).items():
            labels = (name, str(route.api_version))
            yield "kafka_network_requestmetrics_requests_total", labels, count
        for error, count in route.errors.by_name():
            errors[_name(route), error] += count
    for request_and_error, count in errors.items():
        yield "kafka_network_requestmetrics_errors_total", request_and_error, count
    now_ms = source.context.clock.monotonic_ms()
    for name, several in times_of.items():
        yield "kafka_network_requestmetrics_totaltimems", (name,), _summary(several, now_ms)


def _name(route: Route) -> str:
    return request_message(route.api_key).name.removesuffix("Request")


def _named_times(route: Route) -> Iterator[tuple[str, RequestTimes]]:
    name = _name(route)
    yield name, route.times
    if route.follower_times is not None:
        yield name, route.follower_times
        yield f"{name}Consumer", route.times
        yield f"{name}Follower", route.follower_times


def _counts(route: Route) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for name, times in _named_times(route):
        counts[name] += times.count
    return counts


def _summary(several: list[RequestTimes], now_ms: int) -> Summary:
    buckets = [0] * BUCKETS
    for times in several:
        buckets = [a + b for a, b in zip(buckets, times.recent(now_ms), strict=True)]
    return Summary(
        sum(times.count for times in several),
        sum(times.sum_ms for times in several),
        tuple(zip(QUANTILES, quantiles(buckets, _SHARES), strict=True)),
    )


_FETCHERS = "kafka_server_replicafetchermanager_"
_CLIENT = ("Replica",)
"""Kafka's name for the fetchers of replicas, all together."""
_MOVES = "kafka_server_replicaalterlogdirsmanager_"
_MOVER = ("ReplicaAlterLogDirs",)


def fetcher_samples(source: MetricsContext) -> Iterator[Sample]:
    """All fetchers together, and each partition they follow."""
    fetchers = source.fetchers
    yield _FETCHERS + "maxlag", _CLIENT, fetchers.max_lag()
    yield _FETCHERS + "failedpartitionscount", _CLIENT, fetchers.failed_partitions_count
    yield _FETCHERS + "deadthreadcount", _CLIENT, fetchers.dead_threads_count
    moves = source.context.replica_manager.future_replicas
    yield _MOVES + "maxlag", _MOVER, moves.max_lag
    yield _MOVES + "failedpartitionscount", _MOVER, moves.failed_count
    for fetcher in list(fetchers):
        client = f"ReplicaFetcherThread-{fetcher.fetcher_id}-{fetcher.leader_id}"
        for topic_partition, lag in fetcher.lags().items():
            labels = (client, topic_partition.topic, str(topic_partition.partition))
            yield "kafka_server_fetcherlagmetrics_consumerlag", labels, lag


_CONTROLLER = "kafka_controller_kafkacontroller_"


def controller_samples(source: MetricsContext) -> Iterator[Sample]:
    """What the controller sees of the cluster, if this broker is it."""
    try:
        context = source.context.controller.active.context
    except KafkaError:
        context = ControllerContext()  # NOT_CONTROLLER: an empty cluster, all zeros
    topics = [topic for topic in context.topics() if not topic.is_being_deleted]
    yield _CONTROLLER + "activecontrollercount", (), source.context.controller.is_active
    yield _CONTROLLER + "activebrokercount", (), len(context.live_brokers)
    yield _CONTROLLER + "globaltopiccount", (), len(topics)
    yield _CONTROLLER + "globalpartitioncount", (), sum(len(each.assignment) for each in topics)
    yield (
        _CONTROLLER + "offlinepartitionscount",
        (),
        sum(
            status is PartitionStatus.OFFLINE
            for topic in topics
            for status in topic.statuses.values()
        ),
    )
    yield (
        _CONTROLLER + "preferredreplicaimbalancecount",
        (),
        sum(map(imbalanced_partitions, topics)),
    )


def imbalanced_partitions(topic: Topic) -> int:
    """How many partitions of a topic are not led by the first of their replicas.

    One that is on its way to others counts only once its first replica is in sync (Kafka's
    ControllerContext.hasPreferredLeader).
    """
    count = 0
    for partition, state in topic.leaderships.items():
        replicas = topic.assignment.get(partition)
        if not replicas or state.leader == replicas[0]:
            continue
        reassignment = topic.reassignments.get(partition)
        is_coming = reassignment is not None and replicas[0] in reassignment.adding
        if not is_coming or replicas[0] in state.isr:
            count += 1
    return count


def group_samples(source: MetricsContext) -> Iterator[Sample]:
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
    streams_groups = source.context.coordinators.group.streams_groups
    streams_states = Counter(group.state for group in streams_groups)
    offsets += sum(len(group.offsets) for group in streams_groups)
    yield _GROUPS + "numoffsets", (), offsets
    yield _GROUP_COORDINATOR + "group_count", ("classic",), len(groups)
    yield _GROUP_COORDINATOR + "group_count", ("consumer",), len(consumer_groups)
    for consumer_state in ConsumerGroupState:
        labels = (consumer_state.value.lower(),)
        yield _GROUP_COORDINATOR + "consumer_group_count", labels, consumer_states[consumer_state]
    share_states = Counter(group.state for group in source.context.coordinators.group.share_groups)
    yield _GROUP_COORDINATOR + "group_count", ("share",), share_states.total()
    for share_state in ShareGroupState:
        labels = (share_state.value.lower(),)
        yield _GROUP_COORDINATOR + "share_group_count", labels, share_states[share_state]
    yield _GROUP_COORDINATOR + "group_count", ("streams",), len(streams_groups)
    for streams_state in StreamsGroupState:
        labels = (streams_state.value.lower(),)
        yield _GROUP_COORDINATOR + "streams_group_count", labels, streams_states[streams_state]


def share_samples(source: MetricsContext) -> Iterator[Sample]:
    """What share groups do with the partitions that are led here."""
    manager = source.context.coordinators.made_share_partitions
    sessions = () if manager is None else tuple(manager.sessions)
    yield _SHARE_SESSIONS + "sharesessionscount", (), len(sessions)
    yield (
        _SHARE_SESSIONS + "sharepartitionscount",
        (),
        sum(len(each.partitions) for each in sessions),
    )
    for number, name in ACKNOWLEDGE_TYPES.items():
        count = 0 if manager is None else manager.acknowledged[number]
        yield "kafka_server_sharegroupmetrics_recordacknowledgements_total", (name,), count
    for led in () if manager is None else list(manager.led):
        if led.records is not None:
            labels = (led.key.group_id, *map(str, led.requested.topic_partition))
            yield _SHARE_PARTITION + "inflightmessagecount", labels, led.records.in_flight
            yield _SHARE_PARTITION + "inflightbatchcount", labels, led.records.range_count
            yield _SHARE_PARTITION + "acquisitionlocktimeout_total", labels, led.lock_timeouts


def _connection_rate_samples(source: MetricsContext) -> Iterator[Sample]:
    """How fast connections are accepted, where that is bounded."""
    rates = source.server.quotas.rates
    if rates is None:
        return
    now_ms = source.context.clock.monotonic_ms()
    for listener, sensor in rates.listeners.items():
        name = "connection_accept_rate" if listener else "broker_connection_accept_rate"
        yield _NETWORK + name, (listener,) if listener else (), sensor.rate(now_ms)
        if listener:
            throttled = _NETWORK + "connection_accept_throttle_time"
            yield throttled, (listener,), sensor.throttle_ms_average
    for ip, sensor in _used_last(rates.ips):
        yield _NETWORK + "ip_connection_accept_rate", (ip,), sensor.rate(now_ms)
    yield from _throttle_samples("max.connection.creation.rate", rates.listener_throttles)
    yield from _throttle_samples("connection_creation_rate", rates.ip_throttles)


def _used_last(sensors: Mapping[KeyT, SensorT]) -> list[tuple[KeyT, SensorT]]:
    """Those that are shown: whoever makes up client ids or addresses makes no endless page."""
    items = list(sensors.items())
    if len(items) <= SENSORS_MAX:
        return items
    return heapq.nlargest(SENSORS_MAX, items, key=lambda item: item[1].last_ms)


def _throttle_samples(quota: str, times: ThrottleTimes) -> Iterator[Sample]:
    yield "odradek_quota_throttles_total", (quota,), times.throttle_count
    yield "odradek_quota_throttle_milliseconds_total", (quota,), times.throttle_ms_sum


def quota_samples(source: MetricsContext) -> Iterator[Sample]:
    """What clients with quotas have used of them, and who has to wait for that."""
    stage = source.context.quotas.stage
    if stage is None:
        return
    yield "odradek_connections_throttled", (), source.dispatcher.throttled
    now_ms = source.context.clock.monotonic_ms()
    managers = stage.managers
    for kind, name, manager in (
        ("produce", "byte_rate", managers.produce),
        ("fetch", "byte_rate", managers.fetch),
        ("request", "request_time", managers.request),
    ):
        yield from _throttle_samples(manager.key, manager.throttles)
        for sharing, sensor in _used_last(manager.sensors):
            yield f"kafka_server_{kind}_{name}", sharing, sensor.rate(now_ms)
            yield f"kafka_server_{kind}_throttle_time", sharing, sensor.throttle_ms_average
    yield from _throttle_samples(managers.mutation.key, managers.mutation.throttles)
    for sharing, bucket in _used_last(managers.mutation.sensors):
        yield "kafka_server_controllermutation_tokens", sharing, bucket.tokens(now_ms)
        throttle_ms = bucket.throttle_ms_average
        yield "kafka_server_controllermutation_throttle_time", sharing, throttle_ms


def client_samples(source: MetricsContext) -> Iterator[Sample]:
    """How many clients push metrics, and how much of that is kept."""
    metrics = source.context.client_metrics
    clients = list(metrics.clients())
    yield "odradek_client_metrics_clients", (), len(clients)
    yield "odradek_client_metrics_series", (), sum(len(each.series) for each in clients)
    yield "odradek_client_metrics_dropped_series_total", (), metrics.dropped_series


READERS: tuple[Reader, ...] = (
    broker_samples,
    replica_samples,
    fetcher_samples,
    topic_samples,
    request_samples,
    waiting_samples,
    network_samples,
    quota_samples,
    log_samples,
    controller_samples,
    group_samples,
    share_samples,
    client_samples,
)
