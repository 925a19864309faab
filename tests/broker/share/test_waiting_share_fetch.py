"""A share fetch that waits is answered when its session ends, and locks nothing then."""

from __future__ import annotations

import random

from odradek.broker.share.share_partition_manager import ShareFetchParams, ShareFetchResults
from odradek.broker.share.share_sessions import SessionKey
from odradek.coordinator.share.operations import InitializeState, StateAnswer
from odradek.runtime.clock import ManualClock
from odradek.tools.simulation.share.broker import (
    GROUP,
    READ_PARTITION,
    RECORDS,
    SHARE_PARTITION,
    START_MS,
    SharingBroker,
)
from odradek.tools.simulation.share.network import StateNetwork
from odradek.tools.simulation.share.state_log import StateLog

BROKER = 1
KEY = SessionKey(GROUP, "waits")
OTHER_KEY = SessionKey(GROUP, "has-all")
HOUR_MS = 3_600_000


class LeadingBroker(SharingBroker):
    """One whose state log nobody else has to copy."""

    def __init__(self) -> None:
        rng = random.Random(1)
        self.log = StateLog(BROKER)
        super().__init__(BROKER, ManualClock(START_MS), rng, self.log, StateNetwork(rng))

    def settle(self) -> None:
        """All that can complete does."""
        super().settle()
        while (append := self.log.replicate()) is not None:
            append.view.complete(append)
        super().settle()


def leading_broker() -> LeadingBroker:
    """One that leads the topic and its state, and knows of the share group."""
    broker = LeadingBroker()
    broker.start()
    broker.fill()
    broker.lead_or_follow(BROKER, 1)
    broker.hear_of_coordinator(BROKER, 0)
    answers: list[StateAnswer] = []
    broker.persister.submit(InitializeState(SHARE_PARTITION, 1), answers.append)
    broker.settle()
    assert [answer.error for answer in answers] == [0]
    return broker


def fetch(broker: SharingBroker, key: SessionKey) -> list[ShareFetchResults]:
    """Fetch all there is, for an hour at most; the list gets the answer."""
    answers: list[ShareFetchResults] = []
    params = ShareFetchParams(*key, HOUR_MS, 1, 1 << 20, RECORDS, RECORDS)
    broker.manager.fetch(params, [READ_PARTITION], answers.append)
    broker.settle()
    return answers


def fetch_all(broker: SharingBroker, key: SessionKey) -> None:
    """Have a member hold every record: one fetch gives those of one segment."""
    last = -1
    while last < RECORDS - 1:
        ((_, taken),) = fetch(broker, key)[0]
        assert taken.acquired[0].first_offset == last + 1
        last = taken.acquired[-1].last_offset


def test_it_does_not_wait_for_its_time_when_nobody_waits_for_it() -> None:
    broker = leading_broker()
    for key in (OTHER_KEY, KEY):
        broker.manager.sessions.open(key, object(), [READ_PARTITION.id])
    fetch_all(broker, OTHER_KEY)
    waiting = fetch(broker, KEY)
    assert not waiting
    session = broker.manager.sessions.find(KEY)
    assert session is not None
    broker.manager.close_session(session, lambda: None)
    broker.settle()
    assert waiting == [[]]


def test_one_whose_member_began_another_session_is_over_too() -> None:
    broker = leading_broker()
    for key in (OTHER_KEY, KEY):
        broker.manager.sessions.open(key, object(), [READ_PARTITION.id])
    fetch_all(broker, OTHER_KEY)
    waiting = fetch(broker, KEY)
    broker.manager.sessions.open(KEY, object(), [READ_PARTITION.id])
    other = broker.manager.sessions.find(OTHER_KEY)
    assert other is not None
    broker.manager.close_session(other, lambda: None)  # its records may be handed out again
    broker.settle()
    assert waiting == [[]]
    ((_, taken),) = fetch(broker, KEY)[0]
    assert {each.delivery_count for each in taken.acquired} == {2}
