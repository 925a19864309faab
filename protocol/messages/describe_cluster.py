"""DescribeCluster: brokers or controllers, cluster id and permitted operations."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, String

DescribeClusterRequest = Message(
    "DescribeClusterRequest",
    Field("include_cluster_authorized_operations", Bool),
    Field("endpoint_type", Int8, "1+", default=1),
    Field("include_fenced_brokers", Bool, "2+"),
    api_key=60,
    versions="0-2",
    flexible="0+",
)

DescribeClusterResponse = Message(
    "DescribeClusterResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field("endpoint_type", Int8, "1+", default=1),
    Field("cluster_id", String),
    Field("controller_id", Int32, default=-1),
    Field(
        "brokers",
        Array(
            "DescribeClusterBroker",
            Field("broker_id", Int32),
            Field("host", String),
            Field("port", Int32),
            Field("rack", String, nullable="0+", default=None),
            Field("is_fenced", Bool, "2+"),
        ),
    ),
    Field("cluster_authorized_operations", Int32, default=-0x80000000),
    api_key=60,
    versions="0-2",
    flexible="0+",
)
