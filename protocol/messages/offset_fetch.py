"""OffsetFetch: how far groups have read."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, Int64, String, Uuid

OffsetFetchRequest = Message(
    "OffsetFetchRequest",
    Field("group_id", String, "0-7"),
    Field(
        "topics",
        Array(
            "OffsetFetchRequestTopic",
            Field("name", String, "0-7"),
            Field("partition_indexes", Array(Int32), "0-7"),
        ),
        "0-7",
        nullable="2-7",
    ),
    Field(
        "groups",
        Array(
            "OffsetFetchRequestGroup",
            Field("group_id", String, "8+"),
            Field("member_id", String, "9+", nullable="9+", default=None, ignorable=True),
            Field("member_epoch", Int32, "9+", default=-1, ignorable=True),
            Field(
                "topics",
                Array(
                    "OffsetFetchRequestTopics",
                    Field("name", String, "8-9", ignorable=True),
                    Field("topic_id", Uuid, "10+", ignorable=True),
                    Field("partition_indexes", Array(Int32), "8+"),
                ),
                "8+",
                nullable="8+",
            ),
        ),
        "8+",
    ),
    Field("require_stable", Bool, "7+"),
    api_key=9,
    versions="0-10",
    flexible="6+",
)

OffsetFetchResponse = Message(
    "OffsetFetchResponse",
    Field("throttle_time_ms", Int32, "3+", ignorable=True),
    Field(
        "topics",
        Array(
            "OffsetFetchResponseTopic",
            Field("name", String, "0-7"),
            Field(
                "partitions",
                Array(
                    "OffsetFetchResponsePartition",
                    Field("partition_index", Int32, "0-7"),
                    Field("committed_offset", Int64, "0-7"),
                    Field("committed_leader_epoch", Int32, "5-7", default=-1, ignorable=True),
                    Field("metadata", String, "0-7", nullable="0-7"),
                    Field("error_code", Int16, "0-7"),
                ),
                "0-7",
            ),
        ),
        "0-7",
    ),
    Field("error_code", Int16, "2-7", ignorable=True),
    Field(
        "groups",
        Array(
            "OffsetFetchResponseGroup",
            Field("group_id", String, "8+"),
            Field(
                "topics",
                Array(
                    "OffsetFetchResponseTopics",
                    Field("name", String, "8-9", ignorable=True),
                    Field("topic_id", Uuid, "10+", ignorable=True),
                    Field(
                        "partitions",
                        Array(
                            "OffsetFetchResponsePartitions",
                            Field("partition_index", Int32, "8+"),
                            Field("committed_offset", Int64, "8+"),
                            Field(
                                "committed_leader_epoch", Int32, "8+", default=-1, ignorable=True
                            ),
                            Field("metadata", String, "8+", nullable="8+"),
                            Field("error_code", Int16, "8+"),
                        ),
                        "8+",
                    ),
                ),
                "8+",
            ),
            Field("error_code", Int16, "8+"),
        ),
        "8+",
    ),
    api_key=9,
    versions="0-10",
    flexible="6+",
)
