"""Keys and values of control records: ends of transactions, and KRaft's own."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string, struct, uint16, uuid


class ControlRecordTypeSchema(Message, versions="0"):
    type: int = int16()


class EndTxnMarker(Message, versions="0"):
    coordinator_epoch: int = int32()


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    version: int = int16()
    leader_id: int = int32()
    voters: list[Voter] = array()
    granting_voters: list[Voter] = array()

    class Voter(Struct):
        voter_id: int = int32()
        voter_directory_id: bytes = uuid("1+")


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    version: int = int16()
    last_contained_log_timestamp: int = int64()


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    version: int = int16()


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    version: int = int16()
    kraft_version: int = int16()


class VotersRecord(Message, versions="0", flexible="0+"):
    version: int = int16()
    voters: list[Voter] = array()

    class Voter(Struct):
        voter_id: int = int32()
        voter_directory_id: bytes = uuid()
        endpoints: list[VotersRecord.Endpoint] = array()
        kraft_version_feature: VotersRecord.KRaftVersionFeature = struct()

    class Endpoint(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()

    class KRaftVersionFeature(Struct):
        min_supported_version: int = int16()
        max_supported_version: int = int16()
