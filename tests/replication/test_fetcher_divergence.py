"""Seeded histories of unclean elections: whoever follows has the leader's log in the end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.scripted_leader import (
    FOLLOWER,
    NOW_MS,
    Followers,
    Replica,
    ScriptedLeader,
    batch,
    tp,
)
from support.selection import short

from odradek.replication.fetcher.plans import WaitPlan
from odradek.replication.fetcher.settings import FetcherSettings
from odradek.replication.fetcher.truncation import Truncation

T0 = tp(0)
ELECTIONS = 12
BATCH_BYTES = 150
"""So that a fetch brings two small batches or one larger one."""


class History:
    """Three logs that lead and follow each other as a seed says, without regard to ISRs."""

    def __init__(self, folder: Path, truncation: Truncation, seed: int) -> None:
        self.random = random.Random(seed)
        self.replicas = [Replica(folder / str(index), T0) for index in range(3)]
        self.settings = FetcherSettings(
            FOLLOWER, truncation=truncation, fetch_max_bytes=BATCH_BYTES
        )
        self.numbers = iter(range(1_000_000))
        self.epoch = -1

    def elect(self, appends: int) -> tuple[Replica, ScriptedLeader]:
        """Any of them leads, and appends as many batches of one to three records."""
        self.epoch += 1
        leader = self.random.choice(self.replicas)
        leader.lead(self.epoch)
        for _ in range(appends):
            count = self.random.randint(1, 3)
            values = [b"%d" % next(self.numbers) for _ in range(count)]
            leader.log.append_as_leader(batch(*values), leader_epoch=self.epoch, now_ms=NOW_MS)
            leader.log.flush_appends()
        known = leader.partition.high_watermark
        leader.commit(self.random.randint(known, leader.log.log_end_offset))
        return leader, ScriptedLeader({T0: leader}, self.epoch)

    def follow_for_a_while(self, replica: Replica, leader: ScriptedLeader) -> None:
        """A few requests, and then something else happens."""
        following = self.following(replica)
        for _ in range(self.random.randint(0, 6)):
            plan = following.fetcher.next_request(0)
            if isinstance(plan, WaitPlan):
                break
            leader.answer(following.fetcher, plan)
        assert following.fetcher.failed == set()

    def following(self, replica: Replica) -> Followers:
        following = Followers({T0: replica}, self.settings)
        following.follow(self.epoch)
        return following


@pytest.mark.parametrize("seed", short(range(15), 6))
@pytest.mark.parametrize("truncation", [Truncation.FETCH, Truncation.EPOCH_REQUEST])
def test_followers_get_the_leaders_log_after_any_elections(
    tmp_path: Path, truncation: Truncation, seed: int
) -> None:
    history = History(tmp_path, truncation, seed)
    for _ in range(ELECTIONS):
        leader, answering = history.elect(history.random.randint(0, 3))
        for replica in history.replicas:
            if replica is not leader:
                history.follow_for_a_while(replica, answering)
    leader, answering = history.elect(1)
    for replica in history.replicas:
        if replica is not leader:
            following = history.following(replica)
            following.catch_up(answering)
            assert following.fetcher.failed == set()
            assert replica.raw == leader.raw
            assert replica.log.epochs.entries == leader.log.epochs.entries
