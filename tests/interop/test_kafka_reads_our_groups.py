"""Kafka's DumpLogSegments decodes what groups of both generations leave in our log."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.dump_log_segments import (
    DecodedRecord,
    decoded_offsets_of_kafka,
    decoded_offsets_of_odradek,
    dump_log_segments,
)
from support.group_peer import GroupPeer
from support.java_tools import JavaTools

from odradek.cli.main import main
from odradek.common.errors import ErrorCode
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

Capsys = pytest.CaptureFixture[str]

OFFSET_COMMIT, GROUP_METADATA = "1", "2"
CONSUMER_GROUP_METADATA, CONSUMER_MEMBER, CONSUMER_TARGET = "3", "5", "6"
CONSUMER_TARGET_MEMBER, CONSUMER_CURRENT, CONSUMER_EXPRESSION = "7", "8", "16"
"""Kinds of records, by the versions of their keys in CoordinatorRecordType."""
PARTITIONS = 4
LEAVING = -1


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The `.log` files that groups of both generations have filled."""
    folder = tmp_path_factory.mktemp("ours") / "data"
    settings = {
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.assignment.interval.ms": "0",
    }
    with BrokerProcess(folder, settings=settings) as broker, GroupPeer(broker.port) as peer:
        peer.wait_for_coordinator("classic")
        peer.create_topic("orders", PARTITIONS)
        fill_classic(peer)
        fill_consumer(peer)
    return sorted(folder.glob("__consumer_offsets-*/*.log"))


def fill_classic(peer: GroupPeer) -> None:
    """A stable group with a static member and commits; one that is deleted with its offset."""
    joined = peer.join("classic", instance="the-one")
    peer.sync("classic", joined.member_id, joined.generation_id, instance="the-one", leads=True)
    who = {"member": joined.member_id, "generation": joined.generation_id, "instance": "the-one"}
    done = peer.commit("classic", {("orders", 1): 41}, metadata="forty one", **who)
    assert done == {("orders", 1): ErrorCode.NONE}
    peer.commit("deleted", {("orders", 0): 1})
    assert peer.delete("deleted") == ErrorCode.NONE


def fill_consumer(peer: GroupPeer) -> None:
    """One that two members share and one of them leaves; one that subscribes to an expression."""
    epoch = peer.join_consumer_group("modern", "stays", rack_id="a", instance_id="static")
    peer.commit("modern", {("orders", 2): 7}, member="stays", generation=epoch)
    peer.join_consumer_group("modern", "leaves", server_assignor="range")
    assert peer.beat("modern", "leaves", LEAVING).error_code == ErrorCode.NONE
    # The group's next heartbeat finds that it has to be assigned anew.
    assert peer.beat("modern", "stays", epoch).error_code == ErrorCode.NONE
    requested = {"subscribed_topic_names": None, "subscribed_topic_regex": "ord.*"}
    epoch = peer.join_consumer_group("matching", "m", **requested)

    def is_assigned() -> bool:
        nonlocal epoch
        answer = peer.beat("matching", "m", epoch)
        assert answer.error_code == ErrorCode.NONE
        epoch = answer.member_epoch
        members = peer.describe_consumer_group("matching").members
        return bool(members[0].assignment.topic_partitions)

    wait_until(is_assigned)


@pytest.fixture(scope="module")
def decoded(logs: list[Path], tools: JavaTools) -> list[DecodedRecord]:
    """What Kafka's tool says of every record, in the order of the log."""
    dumped = dump_log_segments(tools, logs, "--offsets-decoder")
    assert dumped.complaints == ""
    return decoded_offsets_of_kafka(dumped.output)


def values_of(records: list[DecodedRecord], kind: str, **key: object) -> list[dict | None]:
    """The values of one kind of record whose keys have these fields; None: a tombstone."""
    return [
        value
        for number, fields, _, value in records
        if number == kind and fields.items() >= key.items()
    ]


def test_every_kind_of_record_is_decoded(decoded: list[DecodedRecord]) -> None:
    assert {kind for kind, *_ in decoded} == {
        *(OFFSET_COMMIT, GROUP_METADATA, CONSUMER_GROUP_METADATA, CONSUMER_MEMBER),
        *(CONSUMER_TARGET, CONSUMER_TARGET_MEMBER, CONSUMER_CURRENT, CONSUMER_EXPRESSION),
    }


def test_records_of_classic_groups_are_what_happened(decoded: list[DecodedRecord]) -> None:
    latest = values_of(decoded, GROUP_METADATA, group="classic")[-1]
    assert latest is not None
    assert (latest["protocoltype"], latest["protocol"], latest["generation"]) == (
        "consumer",
        "range",
        1,
    )
    (member,) = latest["members"]
    assert member["groupinstanceid"] == "the-one"
    assert member["memberid"] == latest["leader"]
    (commit,) = values_of(decoded, OFFSET_COMMIT, group="classic", topic="orders", partition=1)
    assert commit is not None
    assert (commit["offset"], commit["metadata"]) == (41, "forty one")
    kept, deleted = values_of(decoded, OFFSET_COMMIT, group="deleted")
    assert kept is not None
    assert (kept["offset"], deleted) == (1, None)


def test_records_of_consumer_groups_are_what_happened(decoded: list[DecodedRecord]) -> None:
    first, *_ = values_of(decoded, CONSUMER_MEMBER, groupid="modern", memberid="stays")
    assert first is not None
    assert (first["rackid"], first["instanceid"]) == ("a", "static")
    assert first["subscribedtopicnames"] == ["orders"]
    assert first["clientid"] == "group-peer"
    came, went = values_of(decoded, CONSUMER_MEMBER, groupid="modern", memberid="leaves")
    assert came is not None
    assert (came["serverassignor"], went) == ("range", None)
    for kind in (CONSUMER_TARGET_MEMBER, CONSUMER_CURRENT):
        assert values_of(decoded, kind, groupid="modern", memberid="leaves")[-1] is None
    target = values_of(decoded, CONSUMER_TARGET_MEMBER, groupid="modern", memberid="stays")[-1]
    assert target is not None
    (topic,) = target["topicpartitions"]
    assert sorted(topic["partitions"]) == list(range(PARTITIONS))
    epochs = [
        value["epoch"]
        for value in values_of(decoded, CONSUMER_GROUP_METADATA, groupid="modern")
        if value is not None
    ]
    assert epochs == sorted(set(epochs))
    (commit,) = values_of(decoded, OFFSET_COMMIT, group="modern", topic="orders", partition=2)
    assert commit is not None
    assert commit["offset"] == 7


def test_resolved_expressions_are_what_happened(decoded: list[DecodedRecord]) -> None:
    key = {"groupid": "matching", "regularexpression": "ord.*"}
    resolved = values_of(decoded, CONSUMER_EXPRESSION, **key)[-1]
    assert resolved is not None
    assert resolved["topics"] == ["orders"]
    member = values_of(decoded, CONSUMER_MEMBER, groupid="matching", memberid="m")[-1]
    assert member is not None
    assert member["subscribedtopicregex"] == "ord.*"


def test_our_dump_says_the_same(
    decoded: list[DecodedRecord], logs: list[Path], capsys: Capsys
) -> None:
    arguments = ["log", "dump", "--records", "--json", "--offsets", *map(str, logs)]
    assert main(arguments) == 0
    assert decoded_offsets_of_odradek(capsys.readouterr().out.splitlines()) == decoded
