"""Every metric there is: name, type, labels, Kafka's MBean, and what it says.

The names are those that the JMX exporter makes of Kafka's MBeans by the rules which its own
repository keeps for Kafka (`examples/kafka-2_0_0.yml`): domain, type and name in lower case, and
`..PerSec` meters as counters that end in `_total`. What those rules do not name, the network's
metrics, has the exporter's default form. So dashboards made for Kafka work here.
"""

from __future__ import annotations

from .metric import Metric, MetricType

_COUNTER = MetricType.COUNTER
_GAUGE = MetricType.GAUGE
_SUMMARY = MetricType.SUMMARY

_TOPIC = ("topic",)
_PARTITION = ("topic", "partition")
_CLIENT = ("clientId",)


def _metric(
    type_: MetricType, mbean: str, help_: str, labels: tuple[str, ...] = ()
) -> tuple[str, Metric]:
    """A metric by the exporter's rules, from `domain:type,name`."""
    domain, _, rest = mbean.partition(":")
    bean_type, _, name = rest.partition(",")
    base = name.removesuffix("PerSec") if type_ is _COUNTER else name
    prometheus = "_".join([*domain.split("."), bean_type, base]).lower()
    if type_ is _COUNTER:
        prometheus += "_total"
    full = f"{domain}:type={bean_type},name={name}"
    return prometheus, Metric(prometheus, type_, labels, full, help_)


def _topic_metric(name: str, help_: str) -> tuple[str, Metric]:
    mbean = f"kafka.server:BrokerTopicMetrics,{name}PerSec"
    return _metric(_COUNTER, mbean, f"{help_} Without a topic: all together.", _TOPIC)


def _broker_metric(name: str, help_: str) -> tuple[str, Metric]:
    return _metric(_COUNTER, f"kafka.server:BrokerTopicMetrics,{name}PerSec", help_)


def _replica_manager(name: str, help_: str) -> tuple[str, Metric]:
    type_ = _COUNTER if name.endswith("PerSec") else _GAUGE
    return _metric(type_, f"kafka.server:ReplicaManager,{name}", help_)


def _fetcher_manager(name: str, help_: str) -> tuple[str, Metric]:
    return _metric(_GAUGE, f"kafka.server:ReplicaFetcherManager,{name}", help_, _CLIENT)


def _moves(name: str, help_: str) -> tuple[str, Metric]:
    return _metric(_GAUGE, f"kafka.server:ReplicaAlterLogDirsManager,{name}", help_, _CLIENT)


def _partition(name: str, help_: str) -> tuple[str, Metric]:
    return _metric(_GAUGE, f"kafka.cluster:Partition,{name}", help_, _PARTITION)


def _log(name: str, help_: str) -> tuple[str, Metric]:
    return _metric(_GAUGE, f"kafka.log:Log,{name}", help_, _PARTITION)


def _controller(name: str, help_: str) -> tuple[str, Metric]:
    return _metric(_GAUGE, f"kafka.controller:KafkaController,{name}", help_)


def _groups(name: str, help_: str) -> tuple[str, Metric]:
    return _metric(_GAUGE, f"kafka.coordinator.group:GroupMetadataManager,{name}", help_)


def _share_partition(name: str, type_: MetricType, help_: str) -> tuple[str, Metric]:
    mbean = f"kafka.server:SharePartitionMetrics,{name}"
    return _metric(type_, mbean, help_, ("group", *_PARTITION))


def _group_coordinator(attribute: str, label: str, help_: str) -> tuple[str, Metric]:
    bean = "kafka.server:type=group-coordinator-metrics"
    prometheus = f"kafka_server_group_coordinator_metrics_{attribute.replace('-', '_')}"
    mbean = f"{bean}, attribute {attribute}"
    return prometheus, Metric(prometheus, _GAUGE, (label,), mbean, help_)


def _network(name: str, type_: MetricType, attribute: str, help_: str) -> tuple[str, Metric]:
    prometheus = f"kafka_server_socket_server_metrics_{name}"
    mbean = f"kafka.server:type=socket-server-metrics, attribute {attribute}"
    return prometheus, Metric(prometheus, type_, ("listener", "networkProcessor"), mbean, help_)


def _rate(attribute: str, labels: tuple[str, ...], help_: str) -> tuple[str, Metric]:
    prometheus = f"kafka_server_socket_server_metrics_{attribute.replace('-', '_')}"
    mbean = f"kafka.server:type=socket-server-metrics, attribute {attribute}"
    return prometheus, Metric(prometheus, _GAUGE, labels, mbean, help_)


def _quota(kind: str, attribute: str, help_: str) -> tuple[str, Metric]:
    prometheus = f"kafka_server_{kind.lower()}_{attribute.replace('-', '_')}"
    mbean = f"kafka.server:type={kind}, attribute {attribute}"
    return prometheus, Metric(prometheus, _GAUGE, ("user", "client_id"), mbean, help_)


def _own(
    name: str, labels: tuple[str, ...], help_: str, type_: MetricType = _GAUGE
) -> tuple[str, Metric]:
    return name, Metric(name, type_, labels, "", help_)


METRICS: dict[str, Metric] = dict(
    [
        _own(
            "odradek_broker_info",
            ("broker", "cluster_id", "version"),
            "Which broker this is, always 1.",
        ),
        _own(
            "odradek_background_task_failures_total",
            ("task",),
            "How often a background task failed; those that are to last were begun again.",
            _COUNTER,
        ),
        _metric(
            _GAUGE,
            "kafka.server:KafkaServer,BrokerState",
            "1 while it starts, 3 while it serves, 6 and 7 while it stops.",
        ),
        # -- replicas ------------------------------------------------------------------
        _replica_manager("LeaderCount", "Partitions that this broker leads."),
        _replica_manager("PartitionCount", "Partitions that this broker has a replica of."),
        _replica_manager(
            "OfflineReplicaCount", "Replicas whose log directory has failed on this broker."
        ),
        _replica_manager(
            "UnderReplicatedPartitions",
            "Partitions led here that have replicas which are not in sync.",
        ),
        _replica_manager(
            "UnderMinIsrPartitionCount",
            "Partitions led here with fewer replicas in sync than min.insync.replicas.",
        ),
        _replica_manager(
            "AtMinIsrPartitionCount",
            "Partitions led here with just min.insync.replicas replicas in sync.",
        ),
        _replica_manager(
            "ReassigningPartitions", "Partitions led here that are on their way to other brokers."
        ),
        _replica_manager("IsrShrinksPerSec", "Replicas were taken from an ISR."),
        _replica_manager("IsrExpandsPerSec", "Replicas were taken into an ISR."),
        _replica_manager("FailedIsrUpdatesPerSec", "A change of an ISR could not be written."),
        _fetcher_manager(
            "MaxLag", "The most that any replica here is behind its leader, in records."
        ),
        _fetcher_manager(
            "FailedPartitionsCount", "Partitions that are fetched no more after an error."
        ),
        _fetcher_manager("DeadThreadCount", "Fetchers that have ended though they should not."),
        _moves(
            "MaxLag", "The most that a copy in another log directory is behind its log, in records."
        ),
        _moves("FailedPartitionsCount", "Moves to another log directory that get on no more."),
        _metric(
            _GAUGE,
            "kafka.server:FetcherLagMetrics,ConsumerLag",
            "How far this broker's replica of a partition is behind its leader, in records.",
            ("clientId", *_PARTITION),
        ),
        _partition("UnderReplicated", "1 if led here and not all replicas are in sync."),
        _partition("UnderMinIsr", "1 if led here and fewer are in sync than min.insync.replicas."),
        _partition("AtMinIsr", "1 if led here and just min.insync.replicas are in sync."),
        _partition("ReplicasCount", "How many replicas it has, if led here; else 0."),
        _partition("InSyncReplicasCount", "How many of them are in sync, if led here; else 0."),
        _partition(
            "LastStableOffsetLag",
            "From the last stable offset to the high watermark: what open transactions hold back.",
        ),
        # -- traffic -------------------------------------------------------------------
        _topic_metric("MessagesIn", "Records appended by producers and coordinators."),
        _topic_metric("BytesIn", "Bytes of record batches appended by them."),
        _topic_metric("BytesOut", "Bytes of record batches sent to consumers."),
        _topic_metric("BytesRejected", "Bytes of batches larger than max.message.bytes."),
        _topic_metric(
            "TotalProduceRequests", "Produce requests, each partition in them counted once."
        ),
        _topic_metric("FailedProduceRequests", "Those refused for a reason that is not common."),
        _topic_metric("TotalFetchRequests", "Fetch requests, each partition in them counted once."),
        _topic_metric("FailedFetchRequests", "Those refused for a reason that is not common."),
        _broker_metric("ReplicationBytesIn", "Bytes of record batches fetched from leaders."),
        _broker_metric("ReplicationBytesOut", "Bytes of record batches sent to followers."),
        _broker_metric(
            "ReassignmentBytesIn", "Bytes fetched by replicas that a reassignment adds here."
        ),
        _broker_metric(
            "ReassignmentBytesOut", "Bytes sent to replicas that a reassignment adds elsewhere."
        ),
        # -- requests ------------------------------------------------------------------
        _metric(
            _COUNTER,
            "kafka.network:RequestMetrics,RequestsPerSec",
            "Requests answered, by API and version.",
            ("request", "version"),
        ),
        _metric(
            _COUNTER,
            "kafka.network:RequestMetrics,ErrorsPerSec",
            "Error codes in answers, NONE among them; each partition's counts.",
            ("request", "error"),
        ),
        _metric(
            _SUMMARY,
            "kafka.network:RequestMetrics,TotalTimeMs",
            "From a request's arrival to its answer, in ms; quantiles of the last minutes.",
            ("request",),
        ),
        _metric(
            _GAUGE,
            "kafka.server:DelayedOperationPurgatory,NumDelayedOperations",
            "Operations that wait, by their kind.",
            ("delayedOperation",),
        ),
        _metric(
            _GAUGE,
            "kafka.server:DelayedOperationPurgatory,PurgatorySize",
            "Entries in the lists of what is waited for; one operation may have several.",
            ("delayedOperation",),
        ),
        _metric(
            _GAUGE,
            "kafka.server:FetchSessionCache,NumIncrementalFetchSessions",
            "Fetch sessions that are open.",
        ),
        _metric(
            _GAUGE,
            "kafka.server:FetchSessionCache,NumIncrementalFetchPartitionsCached",
            "Partitions in those sessions.",
        ),
        _metric(
            _COUNTER,
            "kafka.server:FetchSessionCache,IncrementalFetchSessionEvictionsPerSec",
            "Sessions that were evicted for others.",
        ),
        _network("connection_count", _GAUGE, "connection-count", "Connections that are open."),
        _network(
            "connection_creation_total",
            _COUNTER,
            "connection-creation-total",
            "Connections accepted.",
        ),
        _own(
            "odradek_connections_refused_total",
            ("reason",),
            "Connections that were closed since there were too many, by what bounds them.",
            _COUNTER,
        ),
        _rate("broker-connection-accept-rate", (), "Connections accepted a second, in all."),
        _rate("connection-accept-rate", ("listener",), "The same of a listener with a bound."),
        _rate("ip-connection-accept-rate", ("ip",), "The same of an address with a quota."),
        _rate(
            "connection-accept-throttle-time",
            ("listener",),
            "For how many ms a listener accepted nothing, on average of the times that it had to.",
        ),
        # -- quotas; of those that have some, at most a thousand for each ----------------
        _own(
            "odradek_quota_throttles_total",
            ("quota",),
            "How often somebody was made to wait for that, by Kafka's name of the quota.",
            _COUNTER,
        ),
        _own(
            "odradek_quota_throttle_milliseconds_total",
            ("quota",),
            "For how many ms, in all.",
            _COUNTER,
        ),
        _own(
            "odradek_connections_throttled",
            (),
            "Connections whose requests wait for a throttle time to end; Kafka's queue-size.",
        ),
        _quota("Produce", "byte-rate", "Bytes a second of Produce requests."),
        _quota("Produce", "throttle-time", "Average ms of those that were throttled for that."),
        _quota("Fetch", "byte-rate", "Bytes a second of answers to consumers."),
        _quota("Fetch", "throttle-time", "Average ms of those that were throttled for that."),
        _quota("Request", "request-time", "Percent of the broker's time."),
        _quota("Request", "throttle-time", "Average ms of those that were throttled for that."),
        _quota("ControllerMutation", "tokens", "Partitions that may be created or deleted now."),
        _quota(
            "ControllerMutation",
            "throttle-time",
            "Average ms of those that were throttled for that.",
        ),
        # -- logs ----------------------------------------------------------------------
        _log("LogStartOffset", "The first offset that may be read."),
        _log("LogEndOffset", "The offset that the next record will have."),
        _log("Size", "Bytes in its segments."),
        _log("NumLogSegments", "How many segments it has."),
        _metric(
            _GAUGE, "kafka.log:LogManager,OfflineLogDirectoryCount", "Log directories that failed."
        ),
        _metric(
            _GAUGE,
            "kafka.log:LogManager,LogDirectoryOffline",
            "1 if this log directory has failed.",
            ("logDirectory",),
        ),
        _own(
            "odradek_log_directory_full",
            ("logDirectory",),
            "1 if this log directory has refused a write for want of space in the last minute.",
        ),
        _own(
            "odradek_refused_writes_total",
            ("error", "logDirectory"),
            "Writes that partitions here refused, to producers, coordinators and followers.",
            _COUNTER,
        ),
        # -- the controller ------------------------------------------------------------
        _controller("ActiveControllerCount", "1 on the cluster's controller, 0 on the others."),
        _controller("ActiveBrokerCount", "Brokers that are alive; 0 but on the controller."),
        _controller("GlobalTopicCount", "Topics of the cluster; 0 but on the controller."),
        _controller("GlobalPartitionCount", "Their partitions; 0 but on the controller."),
        _controller(
            "OfflinePartitionsCount", "Partitions without a leader; 0 but on the controller."
        ),
        _controller(
            "PreferredReplicaImbalanceCount",
            "Partitions not led by their first replica; 0 but on the controller.",
        ),
        # -- groups --------------------------------------------------------------------
        _groups("NumGroups", "Classic groups that this broker coordinates."),
        _groups("NumGroupsPreparingRebalance", "Of those: members may join."),
        _groups("NumGroupsCompletingRebalance", "Of those: the assignment is being made."),
        _groups("NumGroupsStable", "Of those: members work."),
        _groups("NumGroupsEmpty", "Of those: offsets, and no members."),
        _groups("NumGroupsDead", "Of those: about to go."),
        _groups("NumOffsets", "Committed offsets that this broker keeps."),
        _group_coordinator("group-count", "protocol", "Groups coordinated here, by protocol."),
        _group_coordinator(
            "consumer-group-count", "state", "Those of the consumer protocol, by state."
        ),
        _group_coordinator("share-group-count", "state", "Share groups, by state."),
        _group_coordinator("streams-group-count", "state", "Streams groups, by state."),
        # -- share groups; of the partitions that are led here -----------------------------
        _metric(
            _COUNTER,
            "kafka.server:ShareGroupMetrics,RecordAcknowledgementsPerSec",
            "Records that members acknowledged, by how.",
            ("ackType",),
        ),
        _share_partition(
            "InFlightMessageCount",
            _GAUGE,
            "Records from the start offset on to the last one that was handed out.",
        ),
        _share_partition("InFlightBatchCount", _GAUGE, "Ranges of them that are in one state."),
        _share_partition(
            "AcquisitionLockTimeoutPerSec",
            _COUNTER,
            "Records whose lock expired, since the group began to read here.",
        ),
        _metric(
            _GAUGE,
            "kafka.server:ShareSessionCache,ShareSessionsCount",
            "Share sessions that are open.",
        ),
        _metric(
            _GAUGE,
            "kafka.server:ShareSessionCache,SharePartitionsCount",
            "Partitions in those sessions.",
        ),
        # -- what clients push (KIP-714); the values themselves are named as clients name them ----
        _own("odradek_client_metrics_clients", (), "Clients that push metrics to this broker."),
        _own("odradek_client_metrics_series", (), "Values that are kept of what they pushed."),
        _own(
            "odradek_client_metrics_dropped_series_total",
            (),
            "Values that were dropped because there were too many.",
            _COUNTER,
        ),
    ]
)
"""By name, in the order in which they are shown."""
