"""Metadata: the brokers, the topics, and who leads their partitions."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, String, Uuid

MetadataRequest = Message(
    "MetadataRequest",
    Field(
        "topics",
        Array(
            "MetadataRequestTopic",
            Field("topic_id", Uuid, "10+", ignorable=True),
            Field("name", String, nullable="10+"),
        ),
        nullable="1+",
    ),
    Field("allow_auto_topic_creation", Bool, "4+", default=True),
    Field("include_cluster_authorized_operations", Bool, "8-10"),
    Field("include_topic_authorized_operations", Bool, "8+"),
    api_key=3,
    versions="0-13",
    flexible="9+",
)

MetadataResponse = Message(
    "MetadataResponse",
    Field("throttle_time_ms", Int32, "3+", ignorable=True),
    Field(
        "brokers",
        Array(
            "MetadataResponseBroker",
            Field("node_id", Int32),
            Field("host", String),
            Field("port", Int32),
            Field("rack", String, "1+", nullable="1+", default=None, ignorable=True),
        ),
    ),
    Field("cluster_id", String, "2+", nullable="2+", default=None, ignorable=True),
    Field("controller_id", Int32, "1+", default=-1, ignorable=True),
    Field(
        "topics",
        Array(
            "MetadataResponseTopic",
            Field("error_code", Int16),
            Field("name", String, nullable="12+"),
            Field("topic_id", Uuid, "10+", ignorable=True),
            Field("is_internal", Bool, "1+", ignorable=True),
            Field(
                "partitions",
                Array(
                    "MetadataResponsePartition",
                    Field("error_code", Int16),
                    Field("partition_index", Int32),
                    Field("leader_id", Int32),
                    Field("leader_epoch", Int32, "7+", default=-1, ignorable=True),
                    Field("replica_nodes", Array(Int32)),
                    Field("isr_nodes", Array(Int32)),
                    Field("offline_replicas", Array(Int32), "5+", ignorable=True),
                ),
            ),
            Field("topic_authorized_operations", Int32, "8+", default=-0x80000000),
        ),
    ),
    Field("cluster_authorized_operations", Int32, "8-10", default=-0x80000000),
    Field("error_code", Int16, "13+", ignorable=True),
    api_key=3,
    versions="0-13",
    flexible="9+",
)
