"""Seeded lives of a group with members of both protocols, which changes its type on the way.

Members come, go, vanish and are told errors; brokers restart, and appends fail. Classic members
give everything up before they join, or are cooperative: they keep what they have, and their
leader gives nobody what another has still. So nothing may ever be owned twice, and when the group
is left alone everything is owned once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from support.consumer_bench import GROUP, ORDERS
from support.mixed_bench import MixedBench, assigned, assignment, subscription
from support.pending import Pending
from support.selection import short

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.classic.messages import (
    JoinAnswer,
    JoinedMember,
    JoinRequest,
    MemberProtocol,
    SyncAnswer,
    SyncRequest,
)
from odradek.coordinator.group.consumer.heartbeat_request import HeartbeatAnswer
from odradek.coordinator.group.consumer_protocol import read_subscription
from odradek.runtime.steps import run_at_once

STEPS = 150
PARTITIONS = 4
SILENT_MS_MAX = 9_000
"""Whoever was not heard of for longer may have been given up: it does not work on by then."""

JOIN_ANEW = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
}


class NewClient:
    """A member on the consumer protocol."""

    def __init__(self, bench: MixedBench, name: str) -> None:
        self._bench = bench
        self.name = name
        self.owned: set[int] = set()
        self.epoch = 0
        self.heard_ms = bench.clock.monotonic_ms()
        self._pending: Pending[HeartbeatAnswer] | None = None

    def act(self) -> None:
        """Take an answer, or send the next heartbeat."""
        if self._pending is None:
            reported: dict[str, Any] = {"owned": {ORDERS: set(self.owned)} if self.owned else {}}
            reported.update(topics=["orders"], rebalance_timeout_ms=30_000)
            self._pending = self._bench.send(self.name, self.epoch, **reported)
        if not self._pending.is_waiting:
            answer, self._pending = self._pending.answer, None
            self._take(answer)

    def _take(self, answer: HeartbeatAnswer) -> None:
        if answer.error is ErrorCode.NONE:
            self.heard_ms = self._bench.clock.monotonic_ms()
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = set(answer.assignment.get(ORDERS, ()))
        elif answer.error in JOIN_ANEW or answer.error is ErrorCode.GROUP_ID_NOT_FOUND:
            self.epoch, self.owned = 0, set()

    def lose_connection(self) -> None:
        self._pending = None

    def lose_all(self) -> None:
        """The group may not count with the member any more."""
        self.epoch, self.owned = 0, set()

    def leave(self) -> None:
        self.owned = set()
        self._bench.send(self.name, -1)


class ClassicClient:
    """A member on the classic protocol."""

    def __init__(self, bench: MixedBench, name: str, *, is_cooperative: bool) -> None:
        self._bench = bench
        self._is_cooperative = is_cooperative
        self.name = name
        self.owned: set[int] = set()
        self._claimed: set[int] = set()
        self.member_id = ""
        self.generation_id = -1
        self.heard_ms = bench.clock.monotonic_ms()
        self._joining: Pending[JoinAnswer] | None = None
        self._syncing: Pending[SyncAnswer] | None = None

    def act(self) -> None:
        """Take an answer, or send the next request."""
        if self._joining is not None:
            if not self._joining.is_waiting:
                answer, self._joining = self._joining.answer, None
                self._take_join(answer)
        elif self._syncing is not None:
            if not self._syncing.is_waiting:
                synced, self._syncing = self._syncing.answer, None
                self._take_sync(synced)
        elif self.generation_id < 0:
            self._join()
        else:
            error = self._beat()
            if error is ErrorCode.REBALANCE_IN_PROGRESS:
                self.generation_id = -1
            elif error not in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR):
                self.lose_all(error)

    def _beat(self) -> ErrorCode:
        """Send a Heartbeat: the only request that is sure to prolong the session.

        A JoinGroup or SyncGroup that a stable group answers at once does not, here as in Kafka.
        """
        error = self._bench.classic_beat(self.member_id, self.generation_id)
        self._bench.log.flush()
        if error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self.heard_ms = self._bench.clock.monotonic_ms()
        return error

    def lose_all(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """The group does not count with the member any more, nor it with what it had."""
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self.generation_id, self.owned = -1, set()

    def _join(self) -> None:
        if not self._is_cooperative:
            self.owned = set()
        self._joining = Pending()
        self._claimed = set(self.owned)
        owned = {"orders": self._claimed} if self._claimed else {}
        request = JoinRequest(
            GROUP,
            self.member_id,
            None,
            self.name,
            "/127.0.0.3",
            10_000,
            60_000,
            "consumer",
            [MemberProtocol("range", subscription("orders", owned=owned))],
            requires_known_member_id=True,
        )
        try:
            self._bench.coordinator.join_group(request, self._joining)
        except KafkaError:
            self._joining = None
        self._bench.log.flush()

    def _take_join(self, answer: JoinAnswer) -> None:
        if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif answer.error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.lose_all(answer.error)
        if answer.error is not ErrorCode.NONE:
            return
        self.member_id, self.generation_id = answer.member_id, answer.generation_id
        self._beat()  # as a client's heartbeats go on from here; what is wrong the sync tells too
        shares = self._assign(answer.members)
        self._syncing = Pending()
        request = SyncRequest(
            GROUP,
            self.generation_id,
            self.member_id,
            None,
            "consumer",
            "range",
            {name: assignment({"orders": share}) for name, share in shares.items()},
        )
        try:
            self._bench.coordinator.sync_group(request, self._syncing)
        except KafkaError:
            self._syncing, self.generation_id = None, -1
        self._bench.log.flush()

    def _assign(self, members: Sequence[JoinedMember]) -> dict[str, set[int]]:
        """What the leader gives everybody; what another has still comes with the next round."""
        owners = {
            number: member.member_id
            for member in members
            for number in read_subscription(member.metadata).owned.get("orders", ())
        }
        return {
            member.member_id: {
                number
                for number in range(index, PARTITIONS, len(members))
                if owners.get(number, member.member_id) == member.member_id
            }
            for index, member in enumerate(members)
        }

    def _take_sync(self, answer: SyncAnswer) -> None:
        if answer.error is ErrorCode.NONE:
            share = assigned(answer.assignment).get("orders", set())
            if self._claimed - share:
                # It gave something up, which others wait for: by now, or while it joined.
                self.generation_id = -1
            self.owned = share
        elif answer.error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.generation_id = -1
        else:
            self.lose_all(answer.error)

    def lose_connection(self) -> None:
        if self._joining is not None or self._syncing is not None:
            self._joining = self._syncing = None
            self.generation_id = -1

    def leave(self) -> None:
        self.owned = set()
        try:
            if self.member_id:
                self._bench.classic_leave(self.member_id)
        except KafkaError:
            pass  # its session will end


class Life:
    """One group and its clients."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.bench = MixedBench(
            migration_policy=self.rng.choice(("bidirectional",) * 3 + ("upgrade", "downgrade"))
        )
        self.clients: list[NewClient | ClassicClient] = []
        self.is_cooperative = self.rng.random() < 0.5
        self.has_lost_writes = False
        self._names = 0

    def step(self) -> None:
        rng, bench = self.rng, self.bench
        what = rng.random()
        if what < 0.08 and len(self.clients) < 6:
            self._names += 1
            name = f"client-{self._names}"
            if rng.random() < 0.5:
                self.clients.append(NewClient(bench, name))
            else:
                client = ClassicClient(bench, name, is_cooperative=self.is_cooperative)
                self.clients.append(client)
        elif what < 0.12 and self.clients:
            self.clients.pop(rng.randrange(len(self.clients))).leave()
        elif what < 0.14 and self.clients:
            self.clients.pop(rng.randrange(len(self.clients)))  # it vanishes
        elif what < 0.16:
            self.has_lost_writes = True
            bench.log.fail_with = rng.choice(
                (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)
            )
        elif what < 0.22:
            bench.log.fail_with = ErrorCode.NONE
        elif what < 0.23 and not bench.log.fail_with:
            bench.restart()
            for client in self.clients:
                client.lose_connection()
        elif what < 0.35:
            bench.advance(rng.choice((0, 100, 1_000, 3_000)))
        elif self.clients:
            rng.choice(self.clients).act()
        self.check()

    def check(self) -> None:
        owners: dict[int, str] = {}
        now_ms = self.bench.clock.monotonic_ms()
        for client in self.clients:
            if now_ms - client.heard_ms > SILENT_MS_MAX:
                client.lose_all()
            for number in client.owned:
                assert number not in owners, f"{client.name} and {owners[number]} own {number}"
                owners[number] = client.name

    def settle(self) -> None:
        """Leave the group alone: those who are in it own everything."""
        self.bench.log.fail_with = ErrorCode.NONE
        for _ in range(200):
            for client in self.clients:
                client.act()
                self.check()
            self.bench.advance(500)
            owned = {number for client in self.clients for number in client.owned}
            if owned == set(range(PARTITIONS)) and self.bench.kind == "consumer":
                if self.bench.state == "Stable":
                    return
            elif owned == set(range(PARTITIONS)) and self.bench.classic_state() == "Stable":
                return
        shares = {client.name: client.owned for client in self.clients}
        raise AssertionError(f"{run_at_once(self.bench.coordinator.list_groups((), ()))}: {shares}")


def live(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
    if life.clients:
        life.settle()
    if life.bench.coordinator.consumer_groups and not life.has_lost_writes:
        before = life.bench.group().image()
        life.bench.restart()
        after = life.bench.group().image()
        assert after == before._replace(owners=after.owners)
        assert dict(after.owners) == dict(before.owners)


@pytest.mark.parametrize("seed", short(range(40), 15))
def test_nothing_is_owned_twice_and_in_the_end_everything_once(seed: int) -> None:
    live(seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 4_000, 500))
def test_many_mixed_lives(first: int) -> None:
    for seed in range(first, first + 500):
        try:
            live(seed)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
