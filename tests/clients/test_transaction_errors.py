"""The error codes of the requests about transactions, that one broker can be brought to send.

All but those of brokers that only just started were seen of Apache Kafka 4.3.1, and are seen again
where `ODRADEK_TEST_BOOTSTRAP` names one. What takes several brokers is in
`tests/cluster/test_transaction_errors_of_clusters.py`; the table of all codes, and the reasons of
those that cannot come, in `support.transaction_errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.admin import UpdateFeaturesRequest, UpdateFeaturesResponse
from kafka.protocol.consumer import (
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from support.transaction_errors import DOCUMENTED, UNPROVOKED, provoked_in, provokes
from support.transaction_peer import (
    GROUP,
    READ_UNCOMMITTED,
    Answer,
    Marker,
    TransactionPeer,
    settled,
)

from odradek.common.errors import ErrorCode as E

pytestmark = pytest.mark.clients

NOBODY = 424_242
"""A producer id that nobody has."""
MISSING = "no-such-topic"
HERE = Path(__file__)
SUITES = (HERE, HERE.parents[1] / "cluster" / "test_transaction_errors_of_clusters.py")


@pytest.fixture
def peer(broker: Any, made: str) -> Iterator[TransactionPeer]:
    """A producer that is initialized, named after the topic, whose partitions have leaders."""
    peer = TransactionPeer(broker.port, made).start()
    for partition in range(2):
        peer.end_offset(made, partition, isolation=READ_UNCOMMITTED)
    yield peer
    peer.close()


def test_each_documented_error_is_provoked_or_has_a_reason() -> None:
    documented = {(api, error) for api, errors in DOCUMENTED.items() for error in errors}
    provoked = provoked_in(SUITES)
    assert documented == provoked | UNPROVOKED.keys()
    assert not provoked & UNPROVOKED.keys()


# --- A producer that is not, or no longer, what it says ------------------------------------------


@provokes("InitProducerId", E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH)
def test_a_producer_is_not_initialized_as_one_that_it_is_not(peer: TransactionPeer) -> None:
    newer = {"producer_id": peer.producer_id, "producer_epoch": peer.producer_epoch + 7}
    assert peer.init(**newer).error == E.PRODUCER_FENCED
    assert peer.init(**newer, version=3).error == E.INVALID_PRODUCER_EPOCH
    assert peer.init(producer_id=NOBODY, producer_epoch=0).error == E.PRODUCER_FENCED


@provokes("AddPartitionsToTxn", E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED)
@provokes("AddOffsetsToTxn", E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED)
@provokes("EndTxn", E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED)
@pytest.mark.parametrize("difference", [-1, 1])
def test_a_producer_with_another_epoch_is_fenced(
    peer: TransactionPeer, made: str, difference: int
) -> None:
    peer.start()
    who = {"producer_epoch": peer.producer_epoch + difference}
    for version, error in ((1, E.INVALID_PRODUCER_EPOCH), (2, E.PRODUCER_FENCED)):
        assert peer.add_partitions({made: [0]}, version, **who) == {(made, 0): error}
        assert peer.add_offsets("group", version, **who) == error
        assert peer.end(committed=True, version=version, **who) == Answer(error)
    assert peer.end(committed=True, version=5, **who) == Answer(E.PRODUCER_FENCED)
    assert peer.add_partitions_as_broker({made: [0]}, **who) == {(made, 0): E.PRODUCER_FENCED}
    assert peer.state == "Empty"


@provokes("AddPartitionsToTxn", E.INVALID_PRODUCER_ID_MAPPING)
@provokes("AddOffsetsToTxn", E.INVALID_PRODUCER_ID_MAPPING)
@provokes("EndTxn", E.INVALID_PRODUCER_ID_MAPPING)
@pytest.mark.parametrize("other", [{"producer_id": NOBODY}, {"transactional_id": "nobody's"}])
def test_a_producer_with_another_id_is_refused(
    peer: TransactionPeer, made: str, other: dict[str, Any]
) -> None:
    error = E.INVALID_PRODUCER_ID_MAPPING
    assert peer.add_partitions({made: [0]}, **other) == {(made, 0): error}
    assert peer.add_partitions_as_broker({made: [0]}, **other) == {(made, 0): error}
    assert peer.add_offsets("group", **other) == error
    assert peer.end(committed=True, **other) == Answer(error)


@provokes("InitProducerId", E.INVALID_REQUEST)
@provokes("AddPartitionsToTxn", E.INVALID_REQUEST)
@provokes("AddOffsetsToTxn", E.INVALID_REQUEST)
@provokes("EndTxn", E.INVALID_REQUEST)
@provokes("DescribeTransactions", E.INVALID_REQUEST)
def test_an_empty_transactional_id_is_refused(peer: TransactionPeer, made: str) -> None:
    none = {"transactional_id": ""}
    assert peer.init(**none).error == E.INVALID_REQUEST
    assert peer.add_partitions({made: [0]}, **none) == {(made, 0): E.INVALID_REQUEST}
    assert peer.add_partitions_as_broker({made: [0]}, **none) == {(made, 0): E.INVALID_REQUEST}
    assert peer.add_offsets("group", **none) == E.INVALID_REQUEST
    assert peer.end(committed=True, **none).error == E.INVALID_REQUEST
    assert peer.describe("").error_code == E.INVALID_REQUEST


@provokes("InitProducerId", E.INVALID_REQUEST)
@pytest.mark.parametrize("half", [{"producer_id": 5}, {"producer_epoch": 5}])
def test_half_of_a_producer_is_refused(peer: TransactionPeer, half: dict[str, int]) -> None:
    assert peer.init(**half).error == E.INVALID_REQUEST


@provokes("InitProducerId", E.INVALID_TRANSACTION_TIMEOUT)
@pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001])
def test_a_timeout_beyond_the_bounds_is_refused(peer: TransactionPeer, timeout_ms: int) -> None:
    assert peer.init(timeout_ms).error == E.INVALID_TRANSACTION_TIMEOUT


@provokes("DescribeTransactions", E.TRANSACTIONAL_ID_NOT_FOUND)
def test_an_unknown_transaction_is_not_found(peer: TransactionPeer) -> None:
    assert peer.describe("nobody's").error_code == E.TRANSACTIONAL_ID_NOT_FOUND
    assert peer.describe("nobody's").transaction_state == ""


# --- A transaction that cannot do that -----------------------------------------------------------


@provokes("EndTxn", E.INVALID_TXN_STATE)
def test_what_did_not_begin_cannot_end(peer: TransactionPeer) -> None:
    assert peer.end(committed=True) == Answer(E.INVALID_TXN_STATE)
    assert peer.end(committed=False) == Answer(E.INVALID_TXN_STATE)


@provokes("InitProducerId", E.CONCURRENT_TRANSACTIONS)
def test_a_successor_waits_until_its_predecessor_is_aborted(
    peer: TransactionPeer, made: str
) -> None:
    assert peer.write(made, version=12) == E.NONE
    former = peer.producer_epoch
    assert peer.init().error == E.CONCURRENT_TRANSACTIONS
    settled(peer.init)
    assert peer.producer_epoch > former + 1, "the epoch that fenced it is nobody's"
    assert peer.write(made, producer_epoch=former, version=12) == E.INVALID_PRODUCER_EPOCH


@provokes("AddPartitionsToTxn", E.UNKNOWN_TOPIC_OR_PARTITION, E.OPERATION_NOT_ATTEMPTED)
def test_partitions_are_added_together_or_not_at_all(peer: TransactionPeer, made: str) -> None:
    assert peer.add_partitions({made: [0, 2], MISSING: [0]}) == {
        (made, 0): E.OPERATION_NOT_ATTEMPTED,
        (made, 2): E.UNKNOWN_TOPIC_OR_PARTITION,
        (MISSING, 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert peer.state == "Empty"


@provokes("AddPartitionsToTxn", E.TRANSACTION_ABORTABLE)
@pytest.mark.parametrize("version", [4, 5])
def test_verification_finds_what_is_not_in_the_transaction(
    peer: TransactionPeer, made: str, version: int
) -> None:
    assert set(peer.add_partitions({made: [0]}).values()) == {E.NONE}
    assert peer.add_partitions_as_broker({made: [0, 1]}, version) == {
        (made, 0): E.NONE,
        (made, 1): E.TRANSACTION_ABORTABLE,
    }


# --- Offsets -------------------------------------------------------------------------------------


@pytest.fixture
def group(peer: TransactionPeer, made: str) -> str:
    """A group's id, whose coordinator is there."""
    peer.find_coordinator(GROUP, made)
    return made


@provokes("TxnOffsetCommit", E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE)
def test_offsets_of_a_group_that_was_not_added_are_refused(
    peer: TransactionPeer, made: str, group: str
) -> None:
    offsets = {(made, 0): 5}
    assert peer.commit_offsets(group, offsets, 3) == {(made, 0): E.INVALID_TXN_STATE}
    assert peer.commit_offsets(group, offsets, 4) == {(made, 0): E.TRANSACTION_ABORTABLE}
    assert peer.state == "Empty"
    assert peer.commit_offsets(group, offsets, 5) == {(made, 0): E.NONE}
    assert peer.state == "Ongoing", "from version 5 on a commit adds the group"


@provokes("TxnOffsetCommit", E.INVALID_PRODUCER_EPOCH, E.INVALID_PRODUCER_ID_MAPPING)
def test_offsets_of_another_producer_are_refused(
    peer: TransactionPeer, made: str, group: str
) -> None:
    offsets = {(made, 0): 5}
    peer.start()
    assert peer.add_offsets(group) == E.NONE
    for other, error in (
        ({"producer_epoch": peer.producer_epoch - 1}, E.INVALID_PRODUCER_EPOCH),
        ({"producer_epoch": peer.producer_epoch + 1}, E.INVALID_PRODUCER_EPOCH),
        ({"producer_id": NOBODY}, E.INVALID_PRODUCER_ID_MAPPING),
    ):
        assert peer.commit_offsets(group, offsets, **other) == {(made, 0): error}
    assert peer.commit_offsets(group, offsets) == {(made, 0): E.NONE}


@provokes("TxnOffsetCommit", E.OFFSET_METADATA_TOO_LARGE, E.UNKNOWN_TOPIC_OR_PARTITION)
def test_offsets_are_refused_one_by_one(peer: TransactionPeer, made: str, group: str) -> None:
    assert peer.add_offsets(group) == E.NONE
    offsets = {(made, 0): 5, (made, 7): 5, (MISSING, 0): 5}
    assert peer.commit_offsets(group, offsets) == {
        (made, 0): E.NONE,
        (made, 7): E.UNKNOWN_TOPIC_OR_PARTITION,
        (MISSING, 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    for size, error in ((4096, E.NONE), (4097, E.OFFSET_METADATA_TOO_LARGE)):
        answer = peer.commit_offsets(group, {(made, 0): 5}, metadata="x" * size)
        assert answer == {(made, 0): error}


@provokes("TxnOffsetCommit", E.INVALID_GROUP_ID)
def test_a_group_without_a_name_has_no_offsets(
    peer: TransactionPeer, made: str, group: str
) -> None:
    assert peer.commit_offsets("", {(made, 0): 5}) == {(made, 0): E.INVALID_GROUP_ID}


@provokes("TxnOffsetCommit", E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.FENCED_INSTANCE_ID)
def test_offsets_of_whoever_is_no_member_are_refused(
    peer: TransactionPeer, made: str, group: str
) -> None:
    member, generation = join(peer, group, "instance")
    assert peer.add_offsets(group) == E.NONE

    def commit(**who: Any) -> E:
        (error,) = peer.commit_offsets(group, {(made, 0): 5}, **who).values()
        return error

    good = {"member_id": member, "generation_id": generation, "group_instance_id": "instance"}
    assert commit(**good) == E.NONE
    assert commit(**{**good, "generation_id": generation + 1}) == E.ILLEGAL_GENERATION
    assert commit(**{**good, "member_id": "nobody"}) == E.FENCED_INSTANCE_ID
    assert commit(**{**good, "group_instance_id": "nobody"}) == E.UNKNOWN_MEMBER_ID
    assert commit(member_id="nobody", generation_id=generation) == E.UNKNOWN_MEMBER_ID
    assert commit() == E.NONE, "a producer that says nothing of a member, as before KIP-447"


def join(peer: TransactionPeer, group: str, instance: str) -> tuple[str, int]:
    """A static member of a group, its leader; returns its member id and the generation."""
    protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")]
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=protocols,
    )
    joined = peer.connection.ask(request, JoinGroupResponse, 5)
    assert joined.error_code == E.NONE
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance,
        assignments=[
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
        ],
    )
    assert peer.connection.ask(sync, SyncGroupResponse, 3).error_code == E.NONE
    return joined.member_id, joined.generation_id


# --- Markers, producers, listings ----------------------------------------------------------------


@provokes("WriteTxnMarkers", E.UNKNOWN_TOPIC_OR_PARTITION)
@provokes("WriteTxnMarkers", E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED)
def test_markers_are_refused_one_by_one(peer: TransactionPeer, made: str) -> None:
    peer.start()
    assert peer.write(made, version=12) == E.NONE
    mine = Marker(peer.producer_id, peer.producer_epoch, False, {made: [0]})
    older = mine._replace(producer_epoch=mine.producer_epoch - 1)
    assert peer.write_markers(older) == {(made, 0): E.INVALID_PRODUCER_EPOCH}
    elsewhere = mine._replace(partitions={made: [0, 7], MISSING: [0]})
    assert peer.write_markers(elsewhere) == {
        (made, 0): E.NONE,
        (made, 7): E.UNKNOWN_TOPIC_OR_PARTITION,
        (MISSING, 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    former = mine._replace(coordinator_epoch=-1)
    assert peer.write_markers(former) == {(made, 0): E.TRANSACTION_COORDINATOR_FENCED}


@provokes("WriteTxnMarkers", E.MESSAGE_TOO_LARGE)
def test_a_marker_beyond_a_topics_limit_is_refused(
    broker: Any, peer: TransactionPeer, topic: str
) -> None:
    small = f"{topic}-small"
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        settings = {"configs": {"max.message.bytes": "60"}}
        requested = {"num_partitions": 1, "replication_factor": 1, **settings}
        admin.create_topics({small: requested}, wait_for_metadata=True)
    marker = Marker(peer.producer_id, peer.producer_epoch, True, {small: [0]})
    assert peer.write_markers(marker) == {(small, 0): E.MESSAGE_TOO_LARGE}


@provokes("DescribeProducers", E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_TOPIC_EXCEPTION)
def test_producers_of_what_is_no_topic_are_not_described(peer: TransactionPeer, made: str) -> None:
    for topic, partition, error in (
        (MISSING, 0, E.UNKNOWN_TOPIC_OR_PARTITION),
        (made, 7, E.UNKNOWN_TOPIC_OR_PARTITION),
        ("no name!", 0, E.INVALID_TOPIC_EXCEPTION),
        (made, 0, E.NONE),
    ):
        assert peer.describe_producers(topic, partition).error_code == error


@provokes("ListTransactions", E.INVALID_REGULAR_EXPRESSION)
def test_a_pattern_that_is_none_lists_nothing(peer: TransactionPeer) -> None:
    answer = peer.list_transactions(transactional_id_pattern="(")
    assert answer.error_code == E.INVALID_REGULAR_EXPRESSION
    assert answer.transaction_states == []


@provokes("UpdateFeatures", E.INVALID_UPDATE_VERSION)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type"),
    [
        ("transaction.version", 3, 1),
        ("transaction.version", -1, 1),
        ("transaction.version", -1, 2),
        ("transaction.version", 1, 1),
        ("transaction.version", 0, 1),
        ("transaction.version", 1, 9),
        ("no.such.feature", 1, 1),
    ],
)
def test_levels_of_features_are_not_moved_there(
    peer: TransactionPeer, version: int, feature: str, level: int, upgrade_type: int
) -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature, max_version_level=level, upgrade_type=upgrade_type
    )
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=False)
    answer = peer.connection.ask(request, UpdateFeaturesResponse, version)
    assert answer.error_code == E.INVALID_UPDATE_VERSION


# --- Brokers that only just started --------------------------------------------------------------


@provokes("InitProducerId", E.NOT_COORDINATOR)
@provokes("AddPartitionsToTxn", E.NOT_COORDINATOR)
@provokes("AddOffsetsToTxn", E.NOT_COORDINATOR)
@provokes("EndTxn", E.NOT_COORDINATOR)
@provokes("DescribeTransactions", E.NOT_COORDINATOR)
def test_nobody_coordinates_before_the_internal_topics_are_there(
    start_broker: Callable[..., Any],
) -> None:
    broker = start_broker()
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics({"topic": {"num_partitions": 1, "replication_factor": 1}})
    peer = TransactionPeer(broker.port, "early")
    peer.end_offset("topic", isolation=READ_UNCOMMITTED)
    error = E.NOT_COORDINATOR
    assert peer.init().error == error
    assert peer.add_partitions_as_broker({"topic": [0]}, producer_id=1, producer_epoch=0) == {
        ("topic", 0): error
    }
    assert peer.add_offsets("group") == error
    assert peer.end(committed=True).error == error
    assert peer.describe().error_code == error


LOADED_RECORDS = 8_000
LOADED_AT_ONCE = 500
LOADS_MAX = 10
"""A test that stands still while a broker starts comes too late to see it load."""


@provokes("InitProducerId", E.COORDINATOR_LOAD_IN_PROGRESS)
@provokes("AddPartitionsToTxn", E.COORDINATOR_LOAD_IN_PROGRESS)
@provokes("AddOffsetsToTxn", E.COORDINATOR_LOAD_IN_PROGRESS)
@provokes("EndTxn", E.COORDINATOR_LOAD_IN_PROGRESS)
@provokes("DescribeTransactions", E.COORDINATOR_LOAD_IN_PROGRESS)
@provokes("ListTransactions", E.COORDINATOR_LOAD_IN_PROGRESS)
@pytest.mark.slow  # there must be much to load
def test_a_coordinator_that_is_loading_says_so(start_broker: Callable[..., Any]) -> None:
    broker = start_broker(settings={"transaction.state.log.num.partitions": "1"})
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics({"topic": {"num_partitions": 1, "replication_factor": 1}})
    peer = TransactionPeer(broker.port, "loaded").start()
    peer.end_offset("topic", isolation=READ_UNCOMMITTED)
    for _ in range(LOADED_RECORDS // LOADED_AT_ONCE):
        peer.init_often(LOADED_AT_ONCE)
    peer.close()
    seen: dict[str, set[E]] = {}
    for start in range(LOADS_MAX):
        broker.kill()
        broker.start()
        later = TransactionPeer(broker.port, "loaded")
        for api, errors in answers_of_a_start(later, peer.producer_id, start).items():
            seen.setdefault(api, set()).update(errors)
        assert later.describe().producer_epoch == LOADED_RECORDS, "every record was loaded"
        later.close()
        if all(E.COORDINATOR_LOAD_IN_PROGRESS in errors for errors in seen.values()):
            return
    raise AssertionError(seen)


def answers_of_a_start(later: TransactionPeer, producer_id: int, first: int) -> dict[str, set[E]]:
    """Ask everything again and again until its answer is that of a coordinator at work.

    Loading may be over after the first question, so another one is the first at each start.
    """
    who = {"producer_id": producer_id, "producer_epoch": 0}
    asks: dict[str, Callable[[], E]] = {
        "InitProducerId": lambda: later.init(keep=False, producer_id=NOBODY, producer_epoch=0)[0],
        "AddPartitionsToTxn": lambda: later.add_partitions({"topic": [0]}, **who)["topic", 0],
        "AddOffsetsToTxn": lambda: later.add_offsets("group", **who),
        "EndTxn": lambda: later.end(committed=True, keep=False, **who).error,
        "DescribeTransactions": lambda: E(later.describe().error_code),
        "ListTransactions": lambda: E(later.list_transactions().error_code),
    }
    passing = {E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, E.UNKNOWN_TOPIC_OR_PARTITION}
    seen: dict[str, set[E]] = {api: set() for api in asks}
    order = sorted(asks)
    first %= len(order)
    order = order[first:] + order[:first]
    left = set(asks)
    while left:
        for api in [each for each in order if each in left]:
            error = asks[api]()
            seen[api].add(error)
            if error not in passing and not seen["DescribeTransactions"] <= passing:
                left.discard(api)
    return seen
