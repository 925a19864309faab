"""What a metadata answer makes of the snapshot (article 002, section 3; KIP-320, KIP-526)."""

from __future__ import annotations

import pytest
from support.client_parts import answer, leaders, make_metadata, partition, topic

from odradek.client.errors import AuthenticationError
from odradek.client.metadata.cluster import Cluster, Node, parse_bootstrap
from odradek.client.metadata.metadata import LeaderAndEpoch
from odradek.common.errors import ErrorCode, KafkaError

OLD_ID = bytes(15) + b"\1"
NEW_ID = bytes(15) + b"\2"


def test_bootstrap_addresses_are_nodes_with_negative_ids():
    cluster = make_metadata().cluster
    assert cluster.is_bootstrap
    assert [node.address for node in cluster.nodes.values()] == ["boot-1:9092", "boot-2:9092"]
    assert list(cluster.nodes) == [-1, -2]


def test_an_update_replaces_the_snapshot_as_a_whole_and_leaves_the_old_one_as_it_was():
    metadata = make_metadata("t", "u")
    metadata.update(answer(topic("t", partition(0, 1)), topic("u", partition(0, 2))), 0)
    before = metadata.cluster
    metadata.update(answer(topic("t", partition(0, 2, epoch=1)), nodes=(2, 3), controller=3), 0)
    after = metadata.cluster
    assert after is not before
    assert (before.leader_of("t", 0), after.leader_of("t", 0)) == (
        Node(1, "broker-1", 9092),
        Node(2, "broker-2", 9092),
    )
    assert (set(before.nodes), set(after.nodes)) == ({1, 2}, {2, 3})
    assert (set(before.topics), set(after.topics)) == ({"t", "u"}, {"t"})
    assert (before.controller_id, after.controller_id) == (1, 3)
    assert not after.is_bootstrap


def test_a_snapshot_cannot_be_changed():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, 1))), 0)
    cluster = metadata.cluster
    for mapping in (cluster.nodes, cluster.topics, cluster.topics["t"].partitions):
        with pytest.raises(TypeError):
            mapping[5] = None
    with pytest.raises(AttributeError):
        cluster.controller_id = 7


def test_a_partial_answer_is_merged_with_the_topics_known_and_replaces_the_brokers():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, 1))), 0)
    metadata.add_topic("new", 0)
    query = metadata.next_query(0)
    metadata.update(answer(topic("new", partition(0, 3)), nodes=(1, 3)), 0, query=query)
    assert leaders(metadata, "t") == {0: 1}
    assert leaders(metadata, "new") == {0: 3}
    assert set(metadata.cluster.nodes) == {1, 3}


def test_topics_that_nobody_requested_are_not_kept():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, 1)), topic("other", partition(0, 1))), 0)
    assert set(metadata.cluster.topics) == {"t"}


def test_all_that_is_said_of_a_partition_is_kept():
    metadata = make_metadata("t")
    said = partition(
        3, leader=2, epoch=9, replicas=[2, 1, 5], error=ErrorCode.REPLICA_NOT_AVAILABLE
    )
    said.isr_nodes = [2, 1]
    said.offline_replicas = [5]
    metadata.update(answer(topic("t", said, topic_id=OLD_ID)), 0)
    info = metadata.cluster.topic_by_id(OLD_ID)
    assert info is not None
    assert info.name == "t"
    kept = info.partitions[3]
    assert kept.leader_id == 2
    assert kept.leader_epoch == 9
    assert kept.replicas == (2, 1, 5)
    assert kept.isr == (2, 1)
    assert kept.offline_replicas == (5,)
    assert kept.error_code == ErrorCode.REPLICA_NOT_AVAILABLE


@pytest.mark.parametrize("controller", [-1, 9])
def test_a_controller_that_is_none_of_the_brokers_is_none(controller):
    metadata = make_metadata()
    metadata.update(answer(controller=controller), 0)
    assert metadata.cluster.controller is None


def test_a_leader_whose_node_is_unknown_is_no_leader():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=9), partition(1, leader=-1))), 0)
    assert metadata.cluster.leader_of("t", 0) is None
    assert metadata.cluster.leader_of("t", 1) is None
    assert metadata.cluster.partition("t", 1).leader_id is None


def test_an_older_leader_epoch_is_not_accepted():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5), topic_id=OLD_ID)), 0)
    metadata.update(answer(topic("t", partition(0, leader=1, epoch=4), topic_id=OLD_ID)), 0)
    assert leaders(metadata, "t") == {0: 2}
    assert metadata.cluster.partition("t", 0).leader_epoch == 5


def test_the_same_leader_epoch_is_accepted_for_what_else_it_says():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, 2, epoch=5, replicas=[2, 1]))), 0)
    metadata.update(answer(topic("t", partition(0, 2, epoch=5, replicas=[2, 3]))), 0)
    assert metadata.cluster.partition("t", 0).replicas == (2, 3)


def test_a_topic_created_anew_begins_with_new_leader_epochs():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5), topic_id=OLD_ID)), 0)
    metadata.update(answer(topic("t", partition(0, leader=1, epoch=0), topic_id=NEW_ID)), 0)
    assert leaders(metadata, "t") == {0: 1}
    assert metadata.epochs.get("t", 0) == 0
    assert metadata.cluster.topic_by_id(OLD_ID) is None


def test_a_topic_created_anew_is_seen_after_its_old_id_was_lost_sight_of():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5), topic_id=OLD_ID)), 0)
    metadata.update(answer(topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), 0)
    metadata.update(answer(topic("t", partition(0, leader=1, epoch=0), topic_id=NEW_ID)), 0)
    assert leaders(metadata, "t") == {0: 1}


@pytest.mark.parametrize("lose_sight", ["an error", "beginning anew"])
def test_an_older_epoch_of_the_same_topic_is_not_believed_after_it_was_lost_sight_of(lose_sight):
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5), topic_id=OLD_ID)), 0)
    if lose_sight == "an error":
        metadata.update(answer(topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)), 0)
    else:
        metadata.rebootstrap()
    metadata.update(answer(topic("t", partition(0, leader=1, epoch=4), topic_id=OLD_ID)), 0)
    assert leaders(metadata, "t") == {}
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5), topic_id=OLD_ID)), 0)
    assert leaders(metadata, "t") == {0: 2}


def test_epochs_of_brokers_too_old_to_have_them_reliably_are_not_compared():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5))), 0)
    old = answer(topic("t", partition(0, leader=1, epoch=4)))
    metadata.update(old, 0, has_reliable_epochs=False)
    assert leaders(metadata, "t") == {0: 1}
    assert metadata.cluster.partition("t", 0).leader_epoch is None


def test_a_newer_epoch_in_another_answer_makes_what_is_known_of_the_leader_out_of_date():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5))), 0)
    assert metadata.note_leader_epoch("t", 0, 6)
    assert metadata.need_full_update
    assert metadata.current_leader("t", 0) is None
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5))), 0)
    assert metadata.current_leader("t", 0) is None
    metadata.update(answer(topic("t", partition(0, leader=1, epoch=6))), 0)
    assert metadata.current_leader("t", 0) == Node(1, "broker-1", 9092)


@pytest.mark.parametrize("epoch", [4, 5])
def test_an_epoch_no_newer_than_the_one_known_changes_nothing(epoch):
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5))), 0)
    assert not metadata.note_leader_epoch("t", 0, epoch)
    assert not metadata.need_full_update


def test_leaders_named_by_other_answers_are_taken_over():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5))), 0)
    seen = []
    metadata.listeners.append(seen.append)
    changed = metadata.update_leaders({("t", 0): LeaderAndEpoch(7, 6)}, [Node(7, "broker-7", 1)])
    assert changed == {("t", 0)}
    assert metadata.cluster.leader_of("t", 0) == Node(7, "broker-7", 1)
    assert metadata.current_leader("t", 0) == Node(7, "broker-7", 1)
    assert seen == [metadata.cluster]
    # An answer from before does not undo it.
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5)), nodes=(1, 2, 7)), 0)
    assert leaders(metadata, "t") == {0: 7}


@pytest.mark.parametrize(
    ("key", "leader"),
    [
        (("t", 0), LeaderAndEpoch(1, 5)),  # no newer
        (("t", 0), LeaderAndEpoch(-1, 6)),  # incomplete
        (("t", 0), LeaderAndEpoch(1, -1)),  # incomplete
        (("t", 0), LeaderAndEpoch(9, 6)),  # an unknown node
        (("t", 1), LeaderAndEpoch(1, 6)),  # an unknown partition
        (("u", 0), LeaderAndEpoch(1, 6)),  # an unknown topic
    ],
)
def test_leaders_that_are_no_news_or_incomplete_are_left_out(key, leader):
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, leader=2, epoch=5))), 0)
    before = metadata.cluster
    assert metadata.update_leaders({key: leader}, []) == set()
    assert metadata.cluster is before


def test_a_topic_with_an_error_is_known_with_its_error_and_without_partitions():
    metadata = make_metadata("t")
    metadata.update(answer(topic("t", partition(0, 1))), 0)
    metadata.update(answer(topic("t", error=ErrorCode.LEADER_NOT_AVAILABLE)), 0)
    info = metadata.cluster.topics["t"]
    assert info.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert not info.partitions


@pytest.mark.parametrize(
    "code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION]
)
def test_invalid_and_unauthorized_topics_are_raised_to_their_callers_once(code):
    metadata = make_metadata("bad", "good")
    metadata.update(answer(topic("bad", error=code), topic("good", partition(0, 1))), 0)
    with pytest.raises(KafkaError) as raised:
        metadata.raise_topic_error("bad")
    assert raised.value.code == code
    assert raised.value.message == "bad"
    metadata.raise_topic_error("bad")


def test_the_error_of_a_topic_is_not_raised_to_callers_of_another():
    metadata = make_metadata("bad", "good")
    metadata.update(answer(topic("bad", error=ErrorCode.INVALID_TOPIC_EXCEPTION)), 0)
    metadata.raise_topic_error("good")


def test_any_topics_error_is_raised_to_who_asks_for_any():
    metadata = make_metadata("a", "b")
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    metadata.update(answer(topic("b", error=code), topic("a", error=code)), 0)
    with pytest.raises(KafkaError, match="a, b"):
        metadata.raise_topic_error()


def test_a_fatal_error_is_raised_once():
    metadata = make_metadata()
    metadata.fatal_error(AuthenticationError("refused"))
    with pytest.raises(AuthenticationError, match="refused"):
        metadata.raise_fatal_error()
    metadata.raise_fatal_error()


def test_a_topic_requested_by_an_id_that_nobody_knows_is_passed_over():
    metadata = make_metadata("t")
    unknown = topic(None, topic_id=NEW_ID, error=ErrorCode.UNKNOWN_TOPIC_ID)
    metadata.update(answer(unknown, topic("t", partition(0, 1))), 0)
    assert set(metadata.cluster.topics) == {"t"}


@pytest.mark.parametrize(
    ("given", "addresses"),
    [
        ("a:1", [("a", 1)]),
        ("a:1, b:65535,", [("a", 1), ("b", 65535)]),
        (["a:1", "b:2"], [("a", 1), ("b", 2)]),
        ("[::1]:9092", [("::1", 9092)]),
    ],
)
def test_a_bootstrap_list_is_read(given, addresses):
    assert parse_bootstrap(given) == addresses


@pytest.mark.parametrize("given", ["", "a", ":1", "a:", "a:0", "a:65536", "a:x", "::1:9092", []])
def test_a_bootstrap_list_that_is_none_is_refused(given):
    with pytest.raises(ValueError, match="bootstrap"):
        parse_bootstrap(given)


def test_an_ipv6_address_is_shown_in_brackets():
    cluster = Cluster.bootstrap([("::1", 9092)])
    assert cluster.nodes[-1].address == "[::1]:9092"
