"""Values of messages, and what their encoders refuse."""

from __future__ import annotations

import copy
import re
import subprocess
import sys

import pytest

from odradek.common.sentinels import ZERO_UUID
from odradek.protocol import (
    ApiKey,
    EncodeError,
    ErrorCode,
    UnsupportedVersionError,
    encode_body,
    internal,
    messages,
)


def test_fields_left_out_have_their_defaults() -> None:
    request = messages.FetchRequest()
    assert request.replica_id == -1
    assert request.max_bytes == 0x7FFFFFFF
    assert request.cluster_id is None
    assert request.topics == []
    assert request.replica_state == messages.FetchRequest.ReplicaState(replica_epoch=-1)
    assert messages.FetchRequest.FetchTopic().topic_id == ZERO_UUID


def test_values_do_not_share_their_arrays_and_structs() -> None:
    one, other = messages.FetchRequest(), messages.FetchRequest()
    one.topics.append(messages.FetchRequest.FetchTopic())
    one.replica_state.replica_id = 5
    assert other.topics == []
    assert other.replica_state.replica_id == -1


def test_a_struct_left_out_is_made_when_it_is_first_read() -> None:
    response = messages.FetchResponse
    written = b"".join(response.encoder(12)(response(responses=[topic_of_one_partition()])))
    for partition in (
        response.PartitionData(),
        response.decoder(12)(written, 0)[0].responses[0].partitions[0],
    ):
        assert partition.diverging_epoch == response.EpochEndOffset(epoch=-1, end_offset=-1)
        partition.diverging_epoch.epoch = 5
        assert partition.diverging_epoch.epoch == 5
        assert partition.snapshot_id is partition.snapshot_id
    assert response.PartitionData().diverging_epoch.epoch == -1


def test_a_struct_that_was_only_looked_at_is_not_written() -> None:
    response = messages.FetchResponse
    topic = topic_of_one_partition()
    encode = response.encoder(12)
    before = encode(response(responses=[topic]))
    partition = topic.partitions[0]
    assert partition.current_leader.leader_id == -1
    assert encode(response(responses=[topic])) == before
    partition.current_leader.leader_id = 3
    written = b"".join(encode(response(responses=[topic])))
    assert written != b"".join(before)
    read = response.decoder(12)(written, 0)[0].responses[0].partitions[0]
    assert read.current_leader == response.LeaderIdAndEpoch(leader_id=3)
    assert read == partition


def test_values_can_be_copied() -> None:
    topic = topic_of_one_partition()
    shallow, deep = copy.copy(topic), copy.deepcopy(topic)
    assert shallow == deep == topic
    assert shallow.partitions[0] is topic.partitions[0]
    deep.partitions[0].snapshot_id.epoch = 9
    assert deep != topic


def topic_of_one_partition() -> messages.FetchResponse.FetchableTopicResponse:
    partition = messages.FetchResponse.PartitionData(partition_index=1, records=b"")
    return messages.FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])


def test_a_tagged_struct_may_be_null_where_that_is_not_its_default() -> None:
    value = internal.ConsumerGroupMemberMetadataValue
    assert value().classic_member_metadata == value.ClassicMemberMetadata()
    for metadata in (None, value.ClassicMemberMetadata(session_timeout_ms=5)):
        encoded = encode_body(value(classic_member_metadata=metadata), 0)
        assert value.decoder(0)(encoded, 0)[0].classic_member_metadata == metadata
    encoded = encode_body(value(), 0)
    assert encoded == encode_body(value(classic_member_metadata=value.ClassicMemberMetadata()), 0)


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(TypeError, match="topicz"):
        messages.MetadataRequest(topicz=[])
    with pytest.raises(AttributeError):
        messages.MetadataRequest().topicz = []


def test_values_are_equal_by_their_fields() -> None:
    assert messages.HeartbeatRequest(group_id="g") == messages.HeartbeatRequest(group_id="g")
    assert messages.HeartbeatRequest(group_id="g") != messages.HeartbeatRequest(group_id="h")
    assert messages.HeartbeatRequest() != messages.HeartbeatResponse()


def test_a_value_shows_its_fields_and_tags() -> None:
    response = messages.HeartbeatResponse(error_code=27)
    assert repr(response) == "HeartbeatResponse(throttle_time_ms=0, error_code=27)"
    response.unknown_tags = {7: b"x"}
    assert repr(response).endswith("unknown_tags={7: b'x'})")


def test_a_message_stands_for_the_class_of_its_values() -> None:
    request = messages.HeartbeatRequest()
    assert isinstance(request, messages.HeartbeatRequest)
    assert not isinstance(request, messages.HeartbeatResponse)
    topic = messages.FetchRequest.FetchTopic()
    assert isinstance(topic, messages.FetchRequest.FetchTopic)
    assert type(request) is messages.HeartbeatRequest


def test_a_struct_keeps_one_class_at_all_versions() -> None:
    topic = messages.MetadataResponse.MetadataResponseTopic(name="t")
    for version in messages.MetadataResponse.versions:
        encode = messages.MetadataResponse.encoder(version)
        encoded = b"".join(encode(messages.MetadataResponse(topics=[topic])))
        decoded = messages.MetadataResponse.decoder(version)(encoded, 0)[0]
        assert type(decoded.topics[0]) is type(topic)
        assert decoded.topics[0] == topic


def test_messages_are_found_by_api_key_and_by_name() -> None:
    assert messages.request_message(ApiKey.OFFSET_FOR_LEADER_EPOCH) is (
        messages.OffsetForLeaderEpochRequest
    )
    assert messages.response_message(1) is messages.FetchResponse
    with pytest.raises(ValueError, match="93"):
        messages.request_message(93)
    with pytest.raises(AttributeError, match="NoSuchRequest"):
        _ = messages.NoSuchRequest
    with pytest.raises(AttributeError, match="NoSuchTopic"):
        _ = messages.FetchRequest.NoSuchTopic


def test_a_version_that_there_is_not_is_refused() -> None:
    for version in (-1, 14):
        for find in (messages.ProduceRequest.decoder, messages.ProduceRequest.encoder):
            with pytest.raises(UnsupportedVersionError, match="ProduceRequest has versions 0-13"):
                find(version)


def test_codecs_are_made_once() -> None:
    assert messages.FetchRequest.decoder(12) is messages.FetchRequest.decoder(12)
    assert messages.FetchRequest.encoder(12) is messages.FetchRequest.encoder(12)
    assert messages.FetchRequest.version(12) is messages.FetchRequest.version(12)


def test_a_field_that_the_version_lacks_must_not_get_lost() -> None:
    response = messages.FetchResponse(session_id=5)
    assert messages.FetchResponse.encoder(7)(response)
    for build in (
        messages.FetchResponse.encoder(6),
        lambda value: messages.FetchResponse.build(value, version=6),
    ):
        with pytest.raises(EncodeError, match=r"FetchResponse\.session_id is not in v6"):
            build(response)


def test_a_field_that_may_get_lost_does() -> None:
    with_error = messages.FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    encode = messages.FetchResponse.encoder(6)
    assert encode(with_error) == encode(messages.FetchResponse())


def test_unknown_tagged_fields_survive_and_stay_in_order() -> None:
    response = messages.FetchResponse(
        node_endpoints=[messages.FetchResponse.NodeEndpoint(node_id=1, host="h", port=9)],
        unknown_tags={2**20: b"last", 7: b"first"},
    )
    encoded = b"".join(messages.FetchResponse.encoder(16)(response))
    assert encoded.index(b"first") < encoded.index(b"last")
    decoded = messages.FetchResponse.decoder(16)(encoded, 0)[0]
    assert decoded == response
    assert decoded.unknown_tags == {7: b"first", 2**20: b"last"}


def test_many_unknown_tagged_fields_survive() -> None:
    response = messages.HeartbeatResponse(unknown_tags=dict.fromkeys(range(300), b""))
    encoded = b"".join(messages.HeartbeatResponse.encoder(4)(response))
    assert messages.HeartbeatResponse.decoder(4)(encoded, 0)[0] == response


def test_unknown_tagged_fields_need_a_flexible_version() -> None:
    response = messages.HeartbeatResponse(unknown_tags={1: b"x"})
    with pytest.raises(EncodeError, match="no tagged fields in v3"):
        messages.HeartbeatResponse.encoder(3)(response)


def test_an_unknown_tag_must_not_be_a_known_one() -> None:
    state = messages.FetchRequest.ReplicaState(replica_id=1)
    request = messages.FetchRequest(replica_state=state, unknown_tags={1: b"x"})
    for build in (
        messages.FetchRequest.encoder(15),
        lambda value: messages.FetchRequest.build(value, version=15),
    ):
        with pytest.raises(EncodeError, match="tag 1 is both known and unknown"):
            build(request)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (messages.HeartbeatRequest(group_id=None), "group_id"),
        (messages.HeartbeatRequest(generation_id=2**31), "generation_id"),
        (messages.HeartbeatRequest(member_id=b"bytes"), "member_id"),
        (messages.HeartbeatRequest(member_id="m" * 0x8000), "member_id"),
        (messages.HeartbeatRequest(member_id="\ud800"), "member_id"),
    ],
    ids=["null", "too large", "of another type", "too long", "not UTF-8"],
)
@pytest.mark.parametrize("version", [3, 4])
def test_what_cannot_be_encoded_is_named(
    value: messages.HeartbeatRequest, place: str, version: int
) -> None:
    with pytest.raises(EncodeError, match=place):
        messages.HeartbeatRequest.encoder(version)(value)


@pytest.mark.parametrize("uuid", [b"", bytes(15), bytes(17), "0" * 16])
def test_a_uuid_has_sixteen_bytes(uuid: bytes) -> None:
    topic = messages.FetchRequest.FetchTopic(topic_id=uuid)
    with pytest.raises(EncodeError, match="topic_id"):
        messages.FetchRequest.encoder(13)(messages.FetchRequest(topics=[topic]))


def test_records_are_a_view_of_the_frame() -> None:
    request = messages.ProduceRequest
    partition = request.PartitionProduceData(index=1, records=b"a batch of records")
    topic = request.TopicProduceData(name="t", partition_data=[partition])
    for version in (3, 9):
        frame = bytearray(b"".join(request.encoder(version)(request(topic_data=[topic]))))
        records = request.decoder(version)(frame, 0)[0].topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        assert records == b"a batch of records"
        frame[frame.index(b"batch")] = ord("B")
        assert bytes(records) == b"a Batch of records"
        records[0] = ord("A")
        assert b"A Batch" in frame


class Slice:
    """Something with a length that is no buffer, as a part of a segment file is."""

    def __len__(self) -> int:
        return 1000


def test_records_are_handed_through_as_they_are() -> None:
    first, second = Slice(), memoryview(b"records")
    response = messages.FetchResponse
    partitions = [
        response.PartitionData(partition_index=0, records=first),
        response.PartitionData(partition_index=1, records=second),
        response.PartitionData(partition_index=2, records=b""),
        response.PartitionData(partition_index=3, records=None),
    ]
    topic = response.FetchableTopicResponse(topic="t", partitions=partitions)
    for version in (11, 12):
        buffers = response.encoder(version)(response(responses=[topic]))
        assert len(buffers) == 5
        assert buffers[1] is first
        assert buffers[3] is second
        whole = b"".join([buffers[0], bytes(1000), *buffers[2:]])
        decoded = response.decoder(version)(whole, 0)[0].responses[0].partitions
        assert [part.records and len(part.records) for part in decoded] == [1000, 7, b"", None]


def test_a_value_cannot_be_encoded_without_descriptors_either() -> None:
    """What names the place is not imported yet."""
    code = (
        "import resource, sys; from odradek.protocol import EncodeError, messages; "
        "make = messages.HeartbeatRequest; encode = make.encoder(4); encode(make()); "
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE); "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))\n"
        "try: encode(make(generation_id='one'))\n"
        "except EncodeError as error: print(error, 'construct' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert re.match("HeartbeatRequest v4 cannot be encoded: .+ False\n", run.stdout), run.stdout


def test_only_the_plain_constructs_import_construct() -> None:
    """The fast codecs do without: it takes 10 ms of a broker's start."""
    code = (
        "import sys, odradek.protocol, odradek.protocol.messages, odradek.protocol.headers; "
        "request = odradek.protocol.messages.HeartbeatRequest; "
        "[encoded] = request.encoder(4)(request(group_id='g')); "
        "assert request.decoder(4)(encoded, 0)[0] == request(group_id='g'); "
        "assert 'construct' not in sys.modules; "
        "assert request.parse(encoded, version=4) == request(group_id='g'); "
        "assert 'construct' in sys.modules; "
        "found = [name for name in sys.modules if name.startswith('odradek.protocol.messages.')]; "
        "assert found == ['odradek.protocol.messages.heartbeat'], found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
