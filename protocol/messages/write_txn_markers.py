"""WriteTxnMarkers: a coordinator ends a transaction in its partitions."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, Int64, String

WriteTxnMarkersRequest = Message(
    "WriteTxnMarkersRequest",
    Field(
        "markers",
        Array(
            "WritableTxnMarker",
            Field("producer_id", Int64),
            Field("producer_epoch", Int16),
            Field("transaction_result", Bool),
            Field(
                "topics",
                Array(
                    "WritableTxnMarkerTopic",
                    Field("name", String),
                    Field("partition_indexes", Array(Int32)),
                ),
            ),
            Field("coordinator_epoch", Int32),
            Field("transaction_version", Int8, "2+", ignorable=True),
        ),
    ),
    api_key=27,
    versions="0-2",
    flexible="1+",
)

WriteTxnMarkersResponse = Message(
    "WriteTxnMarkersResponse",
    Field(
        "markers",
        Array(
            "WritableTxnMarkerResult",
            Field("producer_id", Int64),
            Field(
                "topics",
                Array(
                    "WritableTxnMarkerTopicResult",
                    Field("name", String),
                    Field(
                        "partitions",
                        Array(
                            "WritableTxnMarkerPartitionResult",
                            Field("partition_index", Int32),
                            Field("error_code", Int16),
                        ),
                    ),
                ),
            ),
        ),
    ),
    api_key=27,
    versions="0-2",
    flexible="1+",
)
