"""BrokerRegistration: a broker registers with a KRaft controller."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, Int64, String, Uint16, Uuid

BrokerRegistrationRequest = Message(
    "BrokerRegistrationRequest",
    Field("broker_id", Int32),
    Field("cluster_id", String),
    Field("incarnation_id", Uuid),
    Field(
        "listeners",
        Array(
            "Listener",
            Field("name", String),
            Field("host", String),
            Field("port", Uint16),
            Field("security_protocol", Int16),
        ),
    ),
    Field(
        "features",
        Array(
            "Feature",
            Field("name", String),
            Field("min_supported_version", Int16),
            Field("max_supported_version", Int16),
        ),
    ),
    Field("rack", String, nullable="0+"),
    Field("is_migrating_zk_broker", Bool, "1+"),
    Field("log_dirs", Array(Uuid), "2+", ignorable=True),
    Field("previous_broker_epoch", Int64, "3+", default=-1, ignorable=True),
    api_key=62,
    versions="0-4",
    flexible="0+",
)

BrokerRegistrationResponse = Message(
    "BrokerRegistrationResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("broker_epoch", Int64, default=-1),
    api_key=62,
    versions="0-4",
    flexible="0+",
)
