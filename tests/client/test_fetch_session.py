"""Fetch sessions as a client keeps them (KIP-227)."""

from __future__ import annotations

from odradek.client.consumer.fetch_session import EPOCH_MAX, FetchSession, SessionPartition

A_ID, B_ID = b"a" * 16, b"b" * 16


def at(offset: int, partition: int = 0, topic_id: bytes = A_ID, epoch: int = 3) -> SessionPartition:
    return SessionPartition("t", partition, topic_id, offset, epoch)


def begun(*partitions: SessionPartition) -> FetchSession:
    session = FetchSession()
    session.next_request(partitions)
    session.answered(77)
    return session


def test_a_session_begins_with_all_its_partitions():
    request = FetchSession().next_request([at(0), at(5, 1)])
    assert (request.session_id, request.epoch, request.is_full) == (0, 0, True)
    assert request.partitions == [at(0), at(5, 1)]


def test_then_only_what_changed_is_sent():
    session = begun(at(0), at(5, 1), at(9, 2))
    request = session.next_request([at(0), at(6, 1)])
    assert (request.session_id, request.epoch, request.is_full) == (77, 1, False)
    assert request.partitions == [at(6, 1)]
    assert request.forgotten == [at(9, 2)]
    session.answered(77)
    assert session.next_request([at(0), at(6, 1)])[1:4] == (2, [], [])


def test_another_leader_epoch_is_a_change():
    assert begun(at(0)).next_request([at(0, epoch=4)]).partitions == [at(0, epoch=4)]


def test_a_topic_that_was_created_anew_is_forgotten_and_read():
    request = begun(at(0)).next_request([at(0, topic_id=B_ID)])
    assert (request.partitions, request.forgotten) == ([at(0, topic_id=B_ID)], [at(0)])


def test_a_broker_without_a_session_is_sent_everything_each_time():
    session = FetchSession()
    session.next_request([at(0)])
    session.answered(0)
    request = session.next_request([at(0)])
    assert (request.session_id, request.epoch, request.partitions) == (0, 0, [at(0)])


def test_after_a_failure_the_session_begins_anew_and_ends_the_old_one():
    session = begun(at(0))
    session.next_request([at(1)])
    session.reset()
    request = session.next_request([at(1)])
    assert (request.session_id, request.epoch, request.is_full) == (77, 0, True)


def test_epochs_go_round_without_the_one_that_begins_a_session():
    session = begun(at(0))
    session._epoch = EPOCH_MAX
    session.answered(77)
    assert session.next_request([at(0)]).epoch == 1
