"""Static members that restart: they come back to their partitions, and nobody else notices."""

from __future__ import annotations

from confluent_kafka import Producer

from .churn_clients import JoinGroup
from .watched_group import Member, WatchedGroup

MEMBERS = 4
RESTARTS = 3
FLUSH_SECONDS_MAX = 100.0


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
        for n in range(MEMBERS):
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
    number = restart % MEMBERS
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
