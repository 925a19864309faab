"""UpdateMetadata: the controller tells a broker about the cluster (until Kafka 3.9)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, Int64, String, Struct, Uuid

UPDATE_METADATA_PARTITION_STATE = Struct(
    "UpdateMetadataPartitionState",
    Field("topic_name", String, "0-4", ignorable=True),
    Field("partition_index", Int32),
    Field("controller_epoch", Int32),
    Field("leader", Int32),
    Field("leader_epoch", Int32),
    Field("isr", Array(Int32)),
    Field("zk_version", Int32),
    Field("replicas", Array(Int32)),
    Field("offline_replicas", Array(Int32), "4+", ignorable=True),
)

UpdateMetadataRequest = Message(
    "UpdateMetadataRequest",
    Field("controller_id", Int32),
    Field("is_kraft_controller", Bool, "8+"),
    Field("type", Int8, "8+", tag=0),
    Field("controller_epoch", Int32),
    Field("broker_epoch", Int64, "5+", default=-1, ignorable=True),
    Field("ungrouped_partition_states", Array(UPDATE_METADATA_PARTITION_STATE), "0-4"),
    Field(
        "topic_states",
        Array(
            "UpdateMetadataTopicState",
            Field("topic_name", String, "5+"),
            Field("topic_id", Uuid, "7+", ignorable=True),
            Field("partition_states", Array(UPDATE_METADATA_PARTITION_STATE), "5+"),
        ),
        "5+",
    ),
    Field(
        "live_brokers",
        Array(
            "UpdateMetadataBroker",
            Field("id", Int32),
            Field("v0_host", String, "0", ignorable=True),
            Field("v0_port", Int32, "0", ignorable=True),
            Field(
                "endpoints",
                Array(
                    "UpdateMetadataEndpoint",
                    Field("port", Int32, "1+"),
                    Field("host", String, "1+"),
                    Field("listener", String, "3+", ignorable=True),
                    Field("security_protocol", Int16, "1+"),
                ),
                "1+",
                ignorable=True,
            ),
            Field("rack", String, "2+", nullable="0+", ignorable=True),
        ),
    ),
    api_key=6,
    versions="0-8",
    flexible="6+",
)

UpdateMetadataResponse = Message(
    "UpdateMetadataResponse", Field("error_code", Int16), api_key=6, versions="0-8", flexible="6+"
)
