"""Seeded lives of a consumer group: members come, go, vanish and lose answers; brokers change.

Members do as real ones do: they own what they were told last, say so in their heartbeats, give
up what is taken away when they get to it, and tell all again after an answer that did not come.
Nothing may ever be owned twice; when the group is left alone everything is owned once, and what
the log says is what the coordinator holds.
"""

from __future__ import annotations

import random

import pytest
from support.consumer_bench import GROUP, ORDERS, PAYMENTS, ConsumerBench
from support.pending import Pending
from support.selection import short

from odradek.common.errors import ErrorCode
from odradek.coordinator.group.consumer.heartbeat_request import HeartbeatAnswer

STEPS = 200
IDS = {"orders": ORDERS, "payments": PAYMENTS}
REJOIN = {
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
}
GIVE_UP = {ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID}
TRY_AGAIN = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Client:
    """One member, as a client behaves."""

    def __init__(self, name: str, instance: str | None, topics: list[str]) -> None:
        self.name = name
        self.instance = instance
        self.topics = topics
        self.epoch = 0
        self.owned: set[tuple[bytes, int]] = set()
        self.to_give_up: set[tuple[bytes, int]] = set()
        self.must_tell_all = False
        self.has_changed = False
        self.pending: Pending[HeartbeatAnswer] | None = None

    def reported(self) -> dict[str, object]:
        """What its next heartbeat says."""
        owned: dict[bytes, set[int]] = {}
        for topic_id, partition in self.owned:
            owned.setdefault(topic_id, set()).add(partition)
        reported: dict[str, object] = {"instance_id": self.instance, "owned": owned}
        if self.epoch == 0 or self.must_tell_all:
            reported.update(topics=self.topics, rebalance_timeout_ms=30_000)
        elif self.has_changed:
            reported.update(topics=self.topics)
        return reported

    def take(self, answer: HeartbeatAnswer) -> None:
        """Do as the answer says."""
        if answer.error in REJOIN:
            self.forget()
        elif answer.error in TRY_AGAIN:
            self.must_tell_all = True
        else:
            assert answer.error is ErrorCode.NONE, answer
            assert answer.member_epoch >= self.epoch
            self.epoch = answer.member_epoch
            self.must_tell_all = self.has_changed = False
            if answer.assignment is not None:
                reported = {(t, p) for t, numbers in answer.assignment.items() for p in numbers}
                self.to_give_up = self.owned - reported
                self.owned |= reported

    def give_up(self) -> None:
        self.owned -= self.to_give_up
        self.to_give_up = set()

    def forget(self) -> None:
        self.epoch = 0
        self.owned.clear()
        self.to_give_up.clear()


class History:
    """One life of a group, by a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.bench = ConsumerBench(assignment_interval_ms=self.rng.choice([0, 1_000]))
        self.clients: list[Client] = []
        self.names = iter(range(10_000))

    def run(self) -> None:
        for _ in range(STEPS):
            self.rng.choice(
                [
                    *[self.beat] * 12,
                    *[self.join] * 2,
                    *[self.wait] * 3,
                    self.leave,
                    self.vanish,
                    self.lose_answer,
                    self.change_subscription,
                    self.grow_topic,
                    self.change_broker,
                    self.fail,
                    self.hold,
                    self.be_late,
                ]
            )()
            self.check()

    # -- what may happen ----------------------------------------------------------------

    def join(self) -> None:
        if len(self.clients) < 6:
            number = next(self.names)
            used = {client.instance for client in self.clients}
            instance = self.rng.choice([None, None, "i1", "i2"])
            if instance in used:
                instance = None
            topics = self.rng.choice([["orders"], ["orders", "payments"], ["payments"]])
            client = Client(f"m{number}", instance, topics)
            self.clients.append(client)
            self.send(client)

    def beat(self) -> None:
        if self.clients:
            self.send(self.rng.choice(self.clients))

    def send(self, client: Client) -> None:
        if client.pending is not None:
            return  # it waits for an answer
        if self.rng.random() < 0.7:
            client.give_up()
        if client.epoch == 0:
            client.forget()
        pending = self.bench.send(client.name, client.epoch, **client.reported())
        if pending.is_waiting:
            client.pending = pending
        elif pending.answer.error in GIVE_UP:
            self.clients.remove(client)
        else:
            client.take(pending.answer)

    def lose_answer(self) -> None:
        waiting = [client for client in self.clients if client.pending is None and client.epoch]
        if waiting:
            client = self.rng.choice(waiting)
            self.bench.send(client.name, client.epoch, **client.reported())
            client.must_tell_all = True

    def leave(self) -> None:
        ready = [client for client in self.clients if client.pending is None and client.epoch]
        if ready:
            client = self.rng.choice(ready)
            epoch = -1 if client.instance is None else self.rng.choice([-1, -2])
            client.owned.clear()
            self.bench.send(client.name, epoch, instance_id=client.instance)
            self.clients.remove(client)

    def vanish(self) -> None:
        if self.clients:
            self.clients.remove(self.rng.choice(self.clients))

    def change_subscription(self) -> None:
        if self.clients:
            client = self.rng.choice(self.clients)
            client.topics = self.rng.choice([["orders"], ["orders", "payments"]])
            client.has_changed = True

    def grow_topic(self) -> None:
        name = self.rng.choice(list(IDS))
        topic = self.bench.topics.find(name)
        assert topic is not None
        self.bench.topics.put(name, IDS[name], min(topic.partition_count + 1, 12))
        self.bench.change_topics(name)

    def wait(self) -> None:
        self.bench.advance(self.rng.choice([100, 1_000, 20_000]))

    def change_broker(self) -> None:
        for client in self.clients:
            if client.pending is not None:
                client.pending, client.must_tell_all = None, True
        self.bench.log.forget_waiting()
        self.bench.restart()

    def fail(self) -> None:
        self.bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
        self.beat()
        self.bench.log.fail_with = ErrorCode.NONE

    def hold(self) -> None:
        self.bench.log.is_held = True
        for _ in range(4):
            self.rng.choice([self.beat, self.beat, self.join, self.fail])()
        self.bench.log.is_held = False
        if self.rng.random() < 0.3:
            self.change_broker()
        self.bench.log.release()
        self.take_answers()
        self.bench.advance(0)

    def be_late(self) -> None:
        """The replicas lag for longer than an append waits, and catch up."""
        log = self.bench.log
        log.replicated_up_to = log.end_offset(self.bench.partition_of())
        log.is_held = True
        for _ in range(3):
            self.beat()
        for on_complete, error, offset in log.take_waiting():
            on_complete(error or ErrorCode.REQUEST_TIMED_OUT, offset)
        for _ in range(2):
            self.beat()
        self.bench.advance(self.rng.choice([100, 6_000]))
        log.replicated_up_to = None
        log.is_held = False
        log.release()
        self.bench.advance(200)
        self.take_answers()

    def take_answers(self) -> None:
        """Let clients that waited go on."""
        for client in self.clients:
            if client.pending is not None:
                pending, client.pending = client.pending, None
                client.take(pending.answer)

    # -- what must hold -----------------------------------------------------------------

    def check(self) -> None:
        """Nothing is owned twice by who has not been given up for being silent too long."""
        owners: dict[tuple[bytes, int], str] = {}
        members = {
            name for group in self.bench.coordinator.consumer_groups for name in group.members
        }
        for client in self.clients:
            if client.name not in members:
                continue
            for partition in client.owned:
                other = owners.setdefault(partition, client.name)
                assert other == client.name, f"{partition} is {other}'s and {client.name}'s"

    def settle(self) -> None:
        """Left alone, the group becomes stable, and everything is owned by who reads it."""
        for _ in range(40):
            for client in list(self.clients):
                client.give_up()
                self.send(client)
                self.check()
            self.bench.advance(2_500)
        read = {topic for client in self.clients for topic in client.topics}
        expected = set()
        for name in read:
            topic = self.bench.topics.find(name)
            assert topic is not None
            expected |= {(IDS[name], number) for number in range(topic.partition_count)}
        owned = {partition for client in self.clients for partition in client.owned}
        assert owned == expected
        if self.clients:
            assert self.bench.state == "Stable"

    def compare_with_log(self) -> None:
        """What another broker reads back is what this one holds."""
        if not self.clients:
            return
        before = self.bench.group(GROUP).image()
        self.bench.restart()
        after = self.bench.group(GROUP).image()
        assert (after.state, after.epoch, after.target_epoch) == (
            before.state,
            before.epoch,
            before.target_epoch,
        )
        assert dict(after.members) == dict(before.members)
        assert dict(after.targets) == dict(before.targets)
        assert dict(after.owners) == dict(before.owners)


@pytest.mark.parametrize("seed", short(range(60), 25))
def test_nothing_is_owned_twice_and_in_the_end_everything_once(seed: int) -> None:
    history = History(seed)
    history.run()
    history.settle()
    history.compare_with_log()


def odd_heartbeat(rng: random.Random) -> tuple[str, int, dict[str, object]]:
    """A heartbeat that no client would send, or one that a client would."""
    some_owned = {
        topic_id: {rng.randrange(5) for _ in range(rng.randrange(4))}
        for topic_id in rng.sample([ORDERS, PAYMENTS, b"x" * 16], rng.randrange(3))
    }
    reported = {
        "instance_id": rng.choice([None, None, "i1", "i2"]),
        "rack_id": rng.choice([None, None, "r1", "r2"]),
        "rebalance_timeout_ms": rng.choice([-1, 30_000, 0, -7]),
        "topics": rng.choice([None, None, ["orders"], ["payments", "missing"], []]),
        "subscribed_topic_regex": rng.choice([None, None, None, "", "o.*", "("]),
        "server_assignor": rng.choice([None, None, "range", "uniform", "other"]),
        "owned": rng.choice([None, {}, some_owned]),
        "api_version": rng.choice([0, 1]),
    }
    if rng.random() < 0.3:
        reported.update(owned={}, topics=["orders"], rebalance_timeout_ms=30_000)
        return rng.choice(["m1", "m2", "m3"]), 0, reported
    return rng.choice(["m1", "m2", "m3", ""]), rng.randrange(-3, 12), reported


@pytest.mark.parametrize("seed", short(range(30), 12))
def test_no_heartbeat_however_odd_harms_the_group(seed: int) -> None:
    rng = random.Random(seed)
    bench = ConsumerBench(assignment_interval_ms=rng.choice([0, 1_000]))
    for _ in range(300):
        member_id, epoch, reported = odd_heartbeat(rng)
        bench.beat(member_id, epoch, **reported)
        bench.advance(rng.choice([0, 0, 100, 10_000]))
        for group in bench.coordinator.consumer_groups:
            owned = [
                ((topic_id, number), member.member_id)
                for member in group.members.values()
                for held in (member.assigned_partitions, member.partitions_pending_revocation)
                for topic_id, numbers in held.items()
                for number in numbers
            ]
            assert len(owned) == len(dict(owned))  # nothing is owned twice
            assert dict(owned) == group.owners
            assert group.targets.keys() <= group.members.keys()
            assert {
                member.instance_id: member.member_id
                for member in group.members.values()
                if member.instance_id is not None
            } == group.static_members
    before = [group.image() for group in bench.coordinator.consumer_groups]
    bench.restart()
    after = [group.image() for group in bench.coordinator.consumer_groups]
    assert [image.members for image in after] == [image.members for image in before]
    assert [image.targets for image in after] == [image.targets for image in before]


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 11_000, 500))
def test_many_lives(first: int) -> None:
    for seed in range(first, first + 500):
        history = History(seed)
        try:
            history.run()
            history.settle()
            history.compare_with_log()
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
