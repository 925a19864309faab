"""Twenty members that join and leave one group, rebalance after rebalance, as a seed has it."""

from __future__ import annotations

import random
from collections.abc import Iterable

from confluent_kafka import Producer

from .churn_clients import JoinGroup
from .watched_group import Member, WatchedGroup

MEMBERS = 20
MEMBERS_MIN = 8
TOGGLED_MAX = 4
FLUSH_SECONDS_MAX = 100.0
STATIC_MEMBERS = 4
RESTARTS = 3


def instance_of(member: str) -> str:
    """The instance that a member of `check_static_restarts` is."""
    return member.rpartition("-")[0]


def check_static_restarts(watch: WatchedGroup, join: JoinGroup, bootstrap: str, topic: str) -> None:
    """Let static members join, restart one after another, and read on where they were.

    Args:
        watch: of a group without members, made with this module's `instance_of`.
        join: starts a member.
        bootstrap: the broker, for records.
        topic: what the members read.

    Raises:
        AssertionError: a partition changed its instance, a member that did not restart had a
            callback, the generation changed, or a record was not read.
    """
    ends = dict.fromkeys(watch.ownership.partitions, 0)
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 2})

    def feed() -> None:
        for partition in ends:
            producer.produce(topic, b"%d" % ends[partition], partition=partition)
            ends[partition] += 1
        assert producer.flush(FLUSH_SECONDS_MAX) == 0
        watch.wait_until_read(sum(ends.values()))

    members: dict[int, Member] = {}
    try:
        for n in range(STATIC_MEMBERS):
            members[n] = join(f"static-{n}-0", f"static-{n}")
        watch.wait_until_settled([member.name for member in members.values()])
        feed()
        for restart in range(RESTARTS):
            _restart(watch, join, members, restart)
            feed()
    finally:  # threads of consumers that nobody closes would outlive the test
        for member in members.values():
            member.leave()
    for member in members.values():
        member.wait_until_closed()
    violations = watch.violations(ends)
    assert not violations, violations


def _restart(
    watch: WatchedGroup, join: JoinGroup, members: dict[int, Member], restart: int
) -> None:
    """Let one of the members restart: it gets what it had, and nobody else notices."""
    number = restart % STATIC_MEMBERS
    before = members[number]
    generation = watch.ownership.generations()[-1]
    owned = watch.ownership.owned_by(before.name)
    others = {m.name: watch.changes[m.name] for m in members.values() if m is not before}
    before.leave()
    before.wait_until_closed()
    members[number] = join(f"static-{number}-{restart + 1}", f"static-{number}")
    watch.wait_until_settled([member.name for member in members.values()])
    assert watch.ownership.owned_by(members[number].name) == owned
    assert {name: watch.changes[name] for name in others} == others
    assert watch.ownership.generations()[-1] == generation


class GroupChurn:
    """The group's history: who is in it, and how many records there are to read.

    Args:
        watch: of the group.
        join: starts a member.
        bootstrap: the broker, for records.
        topic: what the members read.
        seed: of the choice of who comes and goes.
    """

    def __init__(
        self, watch: WatchedGroup, join: JoinGroup, bootstrap: str, topic: str, seed: int
    ) -> None:
        self.members: dict[int, Member] = {}
        self.ends = dict.fromkeys(watch.ownership.partitions, 0)
        self._watch = watch
        self._join = join
        self._topic = topic
        self._rng = random.Random(seed)
        self._joined = [0] * MEMBERS
        self._closing: list[Member] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "log_level": 2})

    def run(self, rebalances: int) -> None:
        """Let all join, then some come and go after each settling, so often; and all leave.

        Each time the group has settled, each partition gets a record, which must be read.
        """
        try:
            self._toggle(range(MEMBERS))
            self._settle()
            for _ in range(rebalances):
                self._toggle(self._chosen())
                self._settle()
        finally:  # threads of consumers that nobody closes would outlive the test
            self._toggle(list(self.members))
        for member in self._closing:
            member.wait_until_closed()
        self._watch.wait_until_settled([])

    def check(self) -> None:
        """Nothing was wrong in all of it; raises AssertionError with all callbacks otherwise."""
        violations = self._watch.violations(self.ends)
        assert not violations, "\n".join(map(str, [*violations, *self._watch.ownership.events]))

    def _chosen(self) -> list[int]:
        present, absent = list(self.members), list(set(range(MEMBERS)) - set(self.members))
        leaving = self._rng.randint(0, min(TOGGLED_MAX, len(present) - MEMBERS_MIN))
        joining = self._rng.randint(not leaving, TOGGLED_MAX) if absent else 0
        if not joining and not leaving:
            leaving = 1
        return [
            *self._rng.sample(sorted(present), leaving),
            *self._rng.sample(sorted(absent), min(joining, len(absent))),
        ]

    def _toggle(self, numbers: Iterable[int]) -> None:
        for number in list(numbers):
            if number in self.members:
                member = self.members.pop(number)
                member.leave()
                self._closing.append(member)
            else:
                self._joined[number] += 1
                name = f"member-{number}-{self._joined[number]}"
                self.members[number] = self._join(name, None)

    def _settle(self) -> None:
        names = [member.name for member in self.members.values()]
        self._watch.wait_until_settled(names)
        for partition in self.ends:
            self._producer.produce(self._topic, b"%d" % self.ends[partition], partition=partition)
            self.ends[partition] += 1
        assert self._producer.flush(FLUSH_SECONDS_MAX) == 0
        self._watch.wait_until_read(sum(self.ends.values()))
