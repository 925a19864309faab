"""Keys and values of control records: ends of transactions, and KRaft's own."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String, Struct, Uint16, Uuid

VOTER = Struct("Voter", Field("voter_id", Int32), Field("voter_directory_id", Uuid, "1+"))

ControlRecordTypeSchema = Message("ControlRecordTypeSchema", Field("type", Int16), versions="0")

EndTxnMarker = Message("EndTxnMarker", Field("coordinator_epoch", Int32), versions="0")

LeaderChangeMessage = Message(
    "LeaderChangeMessage",
    Field("version", Int16),
    Field("leader_id", Int32),
    Field("voters", Array(VOTER)),
    Field("granting_voters", Array(VOTER)),
    versions="0-1",
    flexible="0+",
)

SnapshotHeaderRecord = Message(
    "SnapshotHeaderRecord",
    Field("version", Int16),
    Field("last_contained_log_timestamp", Int64),
    versions="0",
    flexible="0+",
)

SnapshotFooterRecord = Message(
    "SnapshotFooterRecord", Field("version", Int16), versions="0", flexible="0+"
)

KRaftVersionRecord = Message(
    "KRaftVersionRecord",
    Field("version", Int16),
    Field("kraft_version", Int16),
    versions="0",
    flexible="0+",
)

VotersRecord = Message(
    "VotersRecord",
    Field("version", Int16),
    Field(
        "voters",
        Array(
            "Voter",
            Field("voter_id", Int32),
            Field("voter_directory_id", Uuid),
            Field(
                "endpoints",
                Array(
                    "Endpoint", Field("name", String), Field("host", String), Field("port", Uint16)
                ),
            ),
            Field(
                "kraft_version_feature",
                Struct(
                    "KRaftVersionFeature",
                    Field("min_supported_version", Int16),
                    Field("max_supported_version", Int16),
                ),
            ),
        ),
    ),
    versions="0",
    flexible="0+",
)
