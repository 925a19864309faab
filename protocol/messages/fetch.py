"""Fetch: read record batches of partitions, as a consumer or a follower."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, Int64, Records, String, Struct, Uuid

FetchRequest = Message(
    "FetchRequest",
    Field("cluster_id", String, "12+", nullable="12+", default=None, tag=0, ignorable=True),
    Field("replica_id", Int32, "0-14", default=-1),
    Field(
        "replica_state",
        Struct(
            "ReplicaState",
            Field("replica_id", Int32, "15+", default=-1),
            Field("replica_epoch", Int64, "15+", default=-1),
        ),
        "15+",
        tag=1,
    ),
    Field("max_wait_ms", Int32),
    Field("min_bytes", Int32),
    Field("max_bytes", Int32, "3+", default=0x7FFFFFFF, ignorable=True),
    Field("isolation_level", Int8, "4+", ignorable=True),
    Field("session_id", Int32, "7+", ignorable=True),
    Field("session_epoch", Int32, "7+", default=-1, ignorable=True),
    Field(
        "topics",
        Array(
            "FetchTopic",
            Field("topic", String, "0-12", ignorable=True),
            Field("topic_id", Uuid, "13+", ignorable=True),
            Field(
                "partitions",
                Array(
                    "FetchPartition",
                    Field("partition", Int32),
                    Field("current_leader_epoch", Int32, "9+", default=-1, ignorable=True),
                    Field("fetch_offset", Int64),
                    Field("last_fetched_epoch", Int32, "12+", default=-1),
                    Field("log_start_offset", Int64, "5+", default=-1, ignorable=True),
                    Field("partition_max_bytes", Int32),
                    Field("replica_directory_id", Uuid, "17+", tag=0, ignorable=True),
                    Field(
                        "high_watermark",
                        Int64,
                        "18+",
                        default=0x7FFFFFFFFFFFFFFF,
                        tag=1,
                        ignorable=True,
                    ),
                ),
            ),
        ),
    ),
    Field(
        "forgotten_topics_data",
        Array(
            "ForgottenTopic",
            Field("topic", String, "7-12", ignorable=True),
            Field("topic_id", Uuid, "13+", ignorable=True),
            Field("partitions", Array(Int32), "7+"),
        ),
        "7+",
    ),
    Field("rack_id", String, "11+", ignorable=True),
    api_key=1,
    versions="0-18",
    flexible="12+",
)

FetchResponse = Message(
    "FetchResponse",
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field("error_code", Int16, "7+", ignorable=True),
    Field("session_id", Int32, "7+"),
    Field(
        "responses",
        Array(
            "FetchableTopicResponse",
            Field("topic", String, "0-12", ignorable=True),
            Field("topic_id", Uuid, "13+", ignorable=True),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                    Field("high_watermark", Int64),
                    Field("last_stable_offset", Int64, "4+", default=-1, ignorable=True),
                    Field("log_start_offset", Int64, "5+", default=-1, ignorable=True),
                    Field(
                        "diverging_epoch",
                        Struct(
                            "EpochEndOffset",
                            Field("epoch", Int32, "12+", default=-1),
                            Field("end_offset", Int64, "12+", default=-1),
                        ),
                        "12+",
                        tag=0,
                    ),
                    Field(
                        "current_leader",
                        Struct(
                            "LeaderIdAndEpoch",
                            Field("leader_id", Int32, "12+", default=-1),
                            Field("leader_epoch", Int32, "12+", default=-1),
                        ),
                        "12+",
                        tag=1,
                    ),
                    Field(
                        "snapshot_id",
                        Struct(
                            "SnapshotId",
                            Field("end_offset", Int64, default=-1),
                            Field("epoch", Int32, default=-1),
                        ),
                        "12+",
                        tag=2,
                    ),
                    Field(
                        "aborted_transactions",
                        Array(
                            "AbortedTransaction",
                            Field("producer_id", Int64, "4+"),
                            Field("first_offset", Int64, "4+"),
                        ),
                        "4+",
                        nullable="4+",
                        ignorable=True,
                    ),
                    Field("preferred_read_replica", Int32, "11+", default=-1),
                    Field("records", Records, nullable="0+"),
                ),
            ),
        ),
    ),
    Field(
        "node_endpoints",
        Array(
            "NodeEndpoint",
            Field("node_id", Int32, "16+"),
            Field("host", String, "16+"),
            Field("port", Int32, "16+"),
            Field("rack", String, "16+", nullable="16+", default=None),
        ),
        "16+",
        tag=0,
    ),
    api_key=1,
    versions="0-18",
    flexible="12+",
)
