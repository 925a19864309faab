"""Each transition of a consumer group and of its members that one broker can show, over TCP.

Groups that die because another broker leads their partition are in
`tests/cluster/test_consumer_groups_move.py`. All of it was seen of Apache Kafka 4.3.1.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.consumer_group_peer import Peer

from odradek.common.errors import ErrorCode as E
from odradek.coordinator.group.consumer.states import (
    GROUP_TRANSITIONS,
    MEMBER_TRANSITIONS,
    ConsumerGroupState,
    MemberState,
)

pytestmark = pytest.mark.clients

EMPTY, ASSIGNING, RECONCILING, STABLE, DEAD = ConsumerGroupState
PATIENT_MS = "15000"
"""A target stands so long, far longer than a test needs."""

group_numbers = itertools.count()


class Topic:
    """A topic of four partitions."""

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.id = topic_id


@pytest.fixture
def peer(broker: Any) -> Iterator[Peer]:
    """A peer of a group whose targets are computed at once."""
    peer = Peer(broker.port, f"moves-{os.getpid()}-{next(group_numbers)}")
    peer.find_coordinator()
    peer.configure(assignment_interval_ms="0")
    yield peer
    peer.close()


@pytest.fixture(scope="module")
def topic(broker: Any) -> Topic:
    peer = Peer(broker.port, f"moves-{os.getpid()}")
    name = f"orders-{peer.group_id}"
    made = Topic(name, peer.create_topic(name, 4))
    peer.close()
    return made


def empty(peer: Peer, topic: Topic) -> None:
    peer.join("m1", topic.name)
    peer.leave("m1")


def assigning(peer: Peer, topic: Topic) -> None:
    peer.join("m1", topic.name)
    peer.configure(assignment_interval_ms=PATIENT_MS)
    peer.join("m2", topic.name)


def reconciling(peer: Peer, topic: Topic) -> None:
    peer.join("m1", topic.name)
    peer.join("m2", topic.name)


def stable(peer: Peer, topic: Topic) -> None:
    peer.join("m1", topic.name)


def classic(peer: Peer, topic: Topic) -> None:
    """A classic group with a member that owns all partitions; for who looks it is no other."""
    joined = peer.classic_join("", topic.name)
    everything = {joined.member_id: {topic.name: range(4)}}
    error, _ = peer.classic_sync(joined.member_id, joined.generation_id, everything)
    assert error == E.NONE


def join(member_id: str) -> Callable[[Peer, Topic], None]:
    def change(peer: Peer, topic: Topic) -> None:
        assert peer.join(member_id, topic.name).error == E.NONE

    return change


def join_patiently(peer: Peer, topic: Topic) -> None:
    peer.configure(assignment_interval_ms=PATIENT_MS)
    peer.join("m3", topic.name)


def leave(*member_ids: str) -> Callable[[Peer, Topic], None]:
    def change(peer: Peer, topic: Topic) -> None:
        for member_id in member_ids:
            assert peer.leave(member_id).error == E.NONE

    return change


def beat_impatiently(peer: Peer, topic: Topic) -> None:
    peer.configure(assignment_interval_ms="0")
    assert peer.heartbeat("m1", 2).error == E.NONE


def leave_and_beat(peer: Peer, topic: Topic) -> None:
    peer.leave("m2")
    beat_impatiently(peer, topic)


def finish(peer: Peer, topic: Topic) -> None:
    peer.heartbeat("m1", 2, owned={topic.id: [0, 1]})
    peer.heartbeat("m2", 3)


def delete(peer: Peer, topic: Topic) -> None:
    assert peer.delete() == E.NONE


CHANGES = {
    (EMPTY, ASSIGNING): (empty, join_patiently),
    (EMPTY, RECONCILING): (classic, join("m2")),
    (EMPTY, STABLE): (empty, join("m1")),
    (EMPTY, DEAD): (empty, delete),
    (ASSIGNING, EMPTY): (assigning, leave("m1", "m2")),
    (ASSIGNING, RECONCILING): (assigning, beat_impatiently),
    (ASSIGNING, STABLE): (assigning, leave_and_beat),
    (RECONCILING, EMPTY): (reconciling, leave("m1", "m2")),
    (RECONCILING, ASSIGNING): (reconciling, join_patiently),
    (RECONCILING, STABLE): (reconciling, finish),
    (STABLE, EMPTY): (stable, leave("m1")),
    (STABLE, ASSIGNING): (stable, join_patiently),
    (STABLE, RECONCILING): (stable, join("m2")),
}


def test_every_transition_but_those_of_moving_groups_is_shown() -> None:
    moving = {(state, DEAD) for state in (ASSIGNING, RECONCILING, STABLE)}
    assert set(CHANGES) | moving == set(GROUP_TRANSITIONS.by_target)


@pytest.mark.parametrize(("before", "after"), CHANGES, ids=lambda state: state.value)
def test_a_group_goes_from_one_state_to_another(
    peer: Peer, topic: Topic, before: ConsumerGroupState, after: ConsumerGroupState
) -> None:
    begin, change = CHANGES[before, after]
    begin(peer, topic)
    if begin is not classic:
        assert peer.state == before.value
    change(peer, topic)
    if after is DEAD:
        assert peer.describe().error_code == E.GROUP_ID_NOT_FOUND
    else:
        assert peer.state == after.value


# -- members: their states are seen by what heartbeats tell --------------------------------


def test_a_member_gives_up_and_is_stable_again(peer: Peer, topic: Topic) -> None:
    reconciling(peer, topic)
    reported = peer.heartbeat("m1", 2)  # stable, must revoke
    assert (reported.epoch, reported.assignment) == (2, {topic.id: {0, 1}})
    assert peer.heartbeat("m1", 2, owned={topic.id: [0, 1, 2]}).epoch == 2  # unrevoked still
    assert peer.heartbeat("m1", 2, owned={topic.id: [0, 1]}).epoch == 3  # unrevoked, has all


def test_a_member_waits_and_gets_what_becomes_free(peer: Peer, topic: Topic) -> None:
    reconciling(peer, topic)  # m2 was stable and must wait
    assert peer.heartbeat("m2", 3).assignment is None  # unreleased, must wait
    peer.heartbeat("m1", 2, owned={topic.id: [0, 1]})
    assert peer.heartbeat("m2", 3).assignment == {topic.id: {2, 3}}  # unreleased, has all


def test_a_stable_member_gets_more_at_once_where_it_is_free(peer: Peer, topic: Topic) -> None:
    reconciling(peer, topic)
    finish(peer, topic)
    peer.leave("m2")
    reported = peer.heartbeat("m1", 3)  # stable, has all
    assert (reported.epoch, reported.assignment) == (4, {topic.id: {0, 1, 2, 3}})


def test_a_member_that_gives_up_has_to_give_up_more_when_the_target_moves_on(
    peer: Peer, topic: Topic
) -> None:
    reconciling(peer, topic)
    assert peer.heartbeat("m1", 2).assignment == {topic.id: {0, 1}}
    for name in ("m3", "m4"):
        peer.join(name, topic.name)
    reported = peer.heartbeat("m1", 2, owned={topic.id: [0, 1]})  # unrevoked, must revoke
    assert reported.epoch == 2
    assert len((reported.assignment or {})[topic.id]) == 1


def test_a_member_that_gave_up_waits_for_what_the_next_target_gives_it(
    peer: Peer, topic: Topic
) -> None:
    for name in ("m1", "m2"):
        peer.join(name, topic.name, assignor="range")
    peer.heartbeat("m1", 2)
    finish(peer, topic)
    peer.join("m0", topic.name, assignor="range")  # it stands first: 0 and 1 for it, 2 for m1
    reported = peer.heartbeat("m1", 3)
    assert (reported.epoch, reported.assignment) == (3, {})
    given_up = peer.heartbeat("m1", 3, owned={})  # unrevoked, must wait: 2 is m2's still
    assert (given_up.epoch, given_up.assignment) == (4, None)
    assert peer.heartbeat("m2", 3).assignment == {topic.id: {3}}
    assert peer.heartbeat("m2", 3, owned={topic.id: [3]}).epoch == 4
    assert peer.heartbeat("m1", 4).assignment == {topic.id: {2}}
    assert peer.heartbeat("m0", 4).assignment == {topic.id: {0, 1}}


def test_a_member_that_waits_gives_up_when_the_target_moves_on(peer: Peer, topic: Topic) -> None:
    for name in ("m1", "m2", "m3"):
        peer.join(name, topic.name, assignor="range")
    peer.heartbeat("m1", 2)
    peer.heartbeat("m1", 2, owned={topic.id: [0, 1]})
    assert peer.heartbeat("m2", 3).assignment == {topic.id: {2}}
    assert peer.heartbeat("m3", 4).assignment == {topic.id: {3}}
    peer.leave("m1")  # 0 and 1 for m2, which has 2 still; 2 and 3 for m3
    assert peer.heartbeat("m2", 4).assignment == {}
    waiting = peer.heartbeat("m3", 4)
    assert (waiting.epoch, waiting.assignment) == (5, None)  # it waits for 2
    for name in ("m4", "m5"):
        peer.join(name, topic.name, assignor="range")  # one for each: m3 has 1
    reported = peer.heartbeat("m3", 5)  # unreleased, must revoke
    assert (reported.epoch, reported.assignment) == (5, {})
    assert peer.heartbeat("m3", 5, owned={}).assignment == {topic.id: {1}}


def test_every_state_of_a_member_has_its_transitions_here() -> None:
    # A member of an unknown state takes a newer broker's record: see the tests of the machine.
    assert {state for state, _ in MEMBER_TRANSITIONS.by_event} == set(MemberState)
