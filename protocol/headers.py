"""The headers of requests and responses.

A request begins with API key, version and correlation id, whatever follows: those eight
bytes can be read of any request. Client id comes next, always with a length of two bytes,
and from the API's first flexible version on tagged fields. A response begins with its
correlation id and, if flexible, tagged fields; but ApiVersions' never has them, since it
is read before versions are agreed upon (KIP-482, KIP-511).

Nothing here needs a schema, so a broker reads headers before it has imported any.
"""

from __future__ import annotations

import struct

from .api_keys import ApiKey
from .errors import ProtocolError
from .varints import Buffer, read_unsigned_varint

HEADER_TAGGED_FIELDS_MAX = 1000
"""There is none yet. Skipping one takes a third of a microsecond, and a frame can hold fifty
million of them."""

FLEXIBLE_FROM: dict[int, int] = {
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 12,
    ApiKey.LIST_OFFSETS: 6,
    ApiKey.METADATA: 9,
    ApiKey.LEADER_AND_ISR: 4,
    ApiKey.STOP_REPLICA: 2,
    ApiKey.UPDATE_METADATA: 6,
    ApiKey.CONTROLLED_SHUTDOWN: 3,
    ApiKey.OFFSET_COMMIT: 8,
    ApiKey.OFFSET_FETCH: 6,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.JOIN_GROUP: 6,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 4,
    ApiKey.SYNC_GROUP: 4,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.LIST_GROUPS: 3,
    ApiKey.API_VERSIONS: 3,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 4,
    ApiKey.DELETE_RECORDS: 2,
    ApiKey.INIT_PRODUCER_ID: 2,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.END_TXN: 3,
    ApiKey.WRITE_TXN_MARKERS: 1,
    ApiKey.TXN_OFFSET_COMMIT: 3,
    ApiKey.DESCRIBE_ACLS: 2,
    ApiKey.CREATE_ACLS: 2,
    ApiKey.DELETE_ACLS: 2,
    ApiKey.DESCRIBE_CONFIGS: 4,
    ApiKey.ALTER_CONFIGS: 2,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 2,
    ApiKey.DESCRIBE_LOG_DIRS: 2,
    ApiKey.SASL_AUTHENTICATE: 2,
    ApiKey.CREATE_PARTITIONS: 2,
    ApiKey.CREATE_DELEGATION_TOKEN: 2,
    ApiKey.RENEW_DELEGATION_TOKEN: 2,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 2,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 2,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.ELECT_LEADERS: 2,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: 0,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: 1,
    ApiKey.ALTER_CLIENT_QUOTAS: 1,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.VOTE: 0,
    ApiKey.BEGIN_QUORUM_EPOCH: 1,
    ApiKey.END_QUORUM_EPOCH: 1,
    ApiKey.DESCRIBE_QUORUM: 0,
    ApiKey.ALTER_PARTITION: 0,
    ApiKey.UPDATE_FEATURES: 0,
    ApiKey.ENVELOPE: 0,
    ApiKey.FETCH_SNAPSHOT: 0,
    ApiKey.DESCRIBE_CLUSTER: 0,
    ApiKey.DESCRIBE_PRODUCERS: 0,
    ApiKey.BROKER_REGISTRATION: 0,
    ApiKey.BROKER_HEARTBEAT: 0,
    ApiKey.UNREGISTER_BROKER: 0,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
    ApiKey.LIST_TRANSACTIONS: 0,
    ApiKey.ALLOCATE_PRODUCER_IDS: 0,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 0,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 0,
    ApiKey.CONTROLLER_REGISTRATION: 0,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: 0,
    ApiKey.PUSH_TELEMETRY: 0,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: 0,
    ApiKey.LIST_CONFIG_RESOURCES: 0,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: 0,
    ApiKey.SHARE_GROUP_HEARTBEAT: 0,
    ApiKey.SHARE_GROUP_DESCRIBE: 0,
    ApiKey.SHARE_FETCH: 0,
    ApiKey.SHARE_ACKNOWLEDGE: 0,
    ApiKey.ADD_RAFT_VOTER: 0,
    ApiKey.REMOVE_RAFT_VOTER: 0,
    ApiKey.UPDATE_RAFT_VOTER: 0,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: 0,
    ApiKey.READ_SHARE_GROUP_STATE: 0,
    ApiKey.WRITE_SHARE_GROUP_STATE: 0,
    ApiKey.DELETE_SHARE_GROUP_STATE: 0,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: 0,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 0,
    ApiKey.STREAMS_GROUP_DESCRIBE: 0,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: 0,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: 0,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: 0,
}
"""The first version with varint lengths and tagged fields, of the APIs that have one."""

CLIENT_ID_BYTES_MAX = 0x7FFF

_NEVER = 0x8000
_unpack_start = struct.Struct(">hhi").unpack_from
_unpack_header = struct.Struct(">hhih").unpack_from
_unpack_correlation_id = struct.Struct(">i").unpack_from
_pack_header = struct.Struct(">hhih").pack
_pack_start = struct.Struct(">hhi").pack
_pack_correlation_id = struct.Struct(">i").pack


def request_header_version(api_key: int, api_version: int) -> int:
    """0, without a client id, for ControlledShutdown v0; 1; or 2, with tagged fields."""
    if api_version >= FLEXIBLE_FROM.get(api_key, _NEVER):
        return 2
    return 0 if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0 else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """0, or 1 with tagged fields."""
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if api_version >= FLEXIBLE_FROM.get(api_key, _NEVER) else 0


def read_request_start(frame: Buffer) -> tuple[int, int, int]:
    """API key, version and correlation id of any request, however unknown.

    Raises:
        ProtocolError: it is shorter than that.
    """
    try:
        start: tuple[int, int, int] = _unpack_start(frame)
    except struct.error:
        raise ProtocolError(f"a request of {len(frame)} bytes has no whole header") from None
    return start


def read_request_header(frame: Buffer) -> tuple[int, str | None, int]:
    """Correlation id, client id, and the position of the body.

    Raises:
        ProtocolError: the header is cut off or malformed.
    """
    try:
        api_key, api_version, correlation_id, size = _unpack_header(frame)
        if api_version == 0 and api_key == ApiKey.CONTROLLED_SHUTDOWN:
            return correlation_id, None, 8
        position = 10
        if size >= 0:
            position += size
            client_id = str(frame[10:position], "utf-8")
        else:
            client_id = None  # Kafka takes any negative length for it
        if api_version >= FLEXIBLE_FROM.get(api_key, _NEVER):
            # Mostly no tagged fields: one zero byte.
            if frame[position]:
                position = skip_tagged_fields(frame, position)
            else:
                position += 1
    except (struct.error, IndexError):
        raise _cut_off(frame) from None
    except UnicodeDecodeError as error:
        raise ProtocolError(f"a client id is not UTF-8: {error.reason}") from None
    if position > len(frame):
        raise _cut_off(frame)
    return correlation_id, client_id, position


def request_header(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The bytes of a request's header.

    Raises:
        ValueError: the client id is too long.
    """
    version = request_header_version(api_key, api_version)
    if version == 0:
        return _pack_start(api_key, api_version, correlation_id)
    encoded = b"" if client_id is None else client_id.encode()
    if len(encoded) > CLIENT_ID_BYTES_MAX:
        raise ValueError(f"a client id of {len(encoded)} bytes is too long")
    size = -1 if client_id is None else len(encoded)
    header = _pack_header(api_key, api_version, correlation_id, size) + encoded
    return header + b"\0" if version == 2 else header


def read_response_header(frame: Buffer, api_key: int, api_version: int) -> tuple[int, int]:
    """Correlation id, and the position of the body.

    Args:
        frame: the response.
        api_key: of the request that it answers.
        api_version: of that request.

    Raises:
        ProtocolError: the header is cut off or malformed.
    """
    try:
        correlation_id: int = _unpack_correlation_id(frame)[0]
        position = 4
        if response_header_version(api_key, api_version) == 1:
            position = skip_tagged_fields(frame, position)
    except (struct.error, IndexError):
        raise _cut_off(frame) from None
    return correlation_id, position


def response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The bytes of a response's header."""
    start = _pack_correlation_id(correlation_id)
    return start + b"\0" if response_header_version(api_key, api_version) == 1 else start


def skip_tagged_fields(frame: Buffer, position: int) -> int:
    """The position after a section of tagged fields, of which no header has a known one.

    Raises:
        ProtocolError: a field goes past the end, a varint is malformed, or there are too many.
        IndexError: the frame ends within a varint.
    """
    count, position = read_unsigned_varint(frame, position)
    if 2 * count > len(frame) - position:
        raise _cut_off(frame)
    if count > HEADER_TAGGED_FIELDS_MAX:
        raise ProtocolError(f"a header announces {count} tagged fields")
    for _ in range(count):
        _, position = read_unsigned_varint(frame, position)
        size, position = read_unsigned_varint(frame, position)
        position += size
        if position > len(frame):
            raise _cut_off(frame)
    return position


def _cut_off(frame: Buffer) -> ProtocolError:
    return ProtocolError(f"a frame of {len(frame)} bytes ends within its header")
