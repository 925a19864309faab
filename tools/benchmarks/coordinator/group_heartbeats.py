"""What the heartbeats of 1,000 groups of three members cost one broker, in both generations.

    python -m odradek.tools.benchmarks.coordinator.group_heartbeats \\
        [--groups 1000] [--seconds 20] [--runs 3]

Each member has a connection of its own, and beats at the default interval: every 3 s in a
classic group, as Java's `heartbeat.interval.ms` has it, every 5 s in a consumer group, as the
broker's `group.consumer.heartbeat.interval.ms` has it. Their beats are spread evenly. The
broker's processor time over some seconds is divided by these.
"""

from __future__ import annotations

import argparse
import resource
import selectors
import struct
import time
import uuid
from collections import defaultdict
from collections.abc import Sequence

from ....bench.run.calibration import calibrate
from ....protocol import messages
from ..measure import MeasuredBroker, broker, machine, summary, verdict
from .group_rebalance import REBALANCE_SECONDS_MAX, MemberConnection, check, join_all, members_of

CPU_PERCENT_GOAL = 10
MEMBERS_PER_GROUP = 3
CLASSIC_INTERVAL_SECONDS = 3.0
GROUP_PARTITIONS = 6
GROUP_TOPIC = "orders"
REST_SECONDS = 2
Owned = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
HEADER_BYTES = 9
"""Of an answer: its length, the correlation id, no tagged fields."""


class Beats:
    """Sends prepared heartbeats of many members, each at its times, and checks the answers.

    Args:
        members: those of all groups; they beat one after another within an interval.
        frames: the heartbeat of each.
        interval_seconds: between two of one member.
    """

    def __init__(
        self, members: Sequence[MemberConnection], frames: Sequence[bytes], interval_seconds: float
    ) -> None:
        self.answered = 0
        self._members = members
        self._frames = frames
        self._gap_seconds = interval_seconds / len(members)
        self._next = 0
        self._selector = selectors.DefaultSelector()
        for member in members:
            member.socket.setblocking(False)
            self._selector.register(member.socket, selectors.EVENT_READ, member)
        self._began = time.perf_counter()

    def run(self, seconds: float) -> int:
        """Go on for so long; returns how many beats were answered."""
        answered, end = self.answered, time.perf_counter() + seconds
        while (now := time.perf_counter()) < end:
            while self._began + self._next * self._gap_seconds <= now:
                number = self._next % len(self._members)
                self._members[number].socket.send(self._frames[number])
                self._next += 1
            due = self._began + self._next * self._gap_seconds
            for key, _ in self._selector.select(max(0.0, due - now)):
                self._take(key.fileobj.recv(4096))  # type: ignore[union-attr]  # it is a socket
        return self.answered - answered

    def _take(self, answer: bytes) -> None:
        check(len(answer) > HEADER_BYTES, "nothing: it closed a connection")
        (size,) = struct.unpack_from(">i", answer)
        check(size == len(answer) - 4, "more than one answer")
        error = struct.unpack_from(">ih", answer, HEADER_BYTES)[1]
        check(error == 0, f"error {error}")
        self.answered += 1


def classic_frames(members: list[MemberConnection]) -> list[bytes]:
    """Let classic groups form; returns the members' heartbeats."""
    join_all(members)
    return [
        member.frame(
            messages.HeartbeatRequest(
                group_id=member.group, member_id=member.id, generation_id=member.generation
            )
        )
        for member in members
    ]


def consumer_frames(members: list[MemberConnection]) -> list[bytes]:
    """Let consumer groups form and reconcile; returns the members' heartbeats."""
    owned: dict[MemberConnection, list[Owned]] = {}
    for member in members:
        member.id, member.generation = str(uuid.uuid4()), 0
        member.send(
            messages.ConsumerGroupHeartbeatRequest(
                group_id=member.group,
                member_id=member.id,
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=[GROUP_TOPIC],
                topic_partitions=[],
            )
        )
        _follow(member, owned)
    deadline = time.monotonic() + REBALANCE_SECONDS_MAX
    while not _have_settled(members, owned):
        check(time.monotonic() < deadline, "groups that do not settle")
        for member in members:
            member.send(_beat(member, owned.get(member)))
            _follow(member, owned)
    return [member.frame(_beat(member, None)) for member in members]


def _beat(
    member: MemberConnection, owned: list[Owned] | None
) -> messages.ConsumerGroupHeartbeatRequest:
    return messages.ConsumerGroupHeartbeatRequest(
        group_id=member.group,
        member_id=member.id,
        member_epoch=member.generation,
        topic_partitions=owned,
    )


def _follow(member: MemberConnection, owned: dict[MemberConnection, list[Owned]]) -> None:
    """Take an answer, and what it assigns."""
    answer = member.receive()
    check(answer.error_code == 0, answer)
    member.generation = answer.member_epoch
    if answer.assignment is not None:
        owned[member] = [
            Owned(topic_id=each.topic_id, partitions=list(each.partitions))
            for each in answer.assignment.topic_partitions
        ]


def _have_settled(
    members: list[MemberConnection], owned: dict[MemberConnection, list[Owned]]
) -> bool:
    """Whether each group has one epoch, and each member its share of the partitions."""
    epochs: dict[str, set[int]] = defaultdict(set)
    for member in members:
        epochs[member.group].add(member.generation)
    return all(len(each) == 1 for each in epochs.values()) and all(
        sum(len(each.partitions) for each in owned.get(member, ()))
        == GROUP_PARTITIONS // MEMBERS_PER_GROUP
        for member in members
    )


def measured(running: MeasuredBroker, beats: Beats, options: argparse.Namespace) -> list[float]:
    """Percent of a core that the broker takes, of each run."""
    beats.run(REST_SECONDS)
    percents, rates = [], []
    for _ in range(options.runs):
        cpu, began = running.cpu_seconds(), time.perf_counter()
        answered = beats.run(options.seconds)
        seconds = time.perf_counter() - began
        percents.append(100 * (running.cpu_seconds() - cpu) / seconds)
        rates.append(answered / seconds)
    print(f"  heartbeats answered {summary(rates, '/s')}")
    print(f"  broker of one core  {summary(percents, '%')}")
    return percents


def create_topic(member: MemberConnection) -> None:
    """The topic that consumer groups read."""
    topic = messages.CreateTopicsRequest.CreatableTopic(
        name=GROUP_TOPIC, num_partitions=GROUP_PARTITIONS, replication_factor=1
    )
    member.send(messages.CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
    check(member.receive().topics[0].error_code == 0, "no topic")


def main() -> int:
    """Run, print, and fail if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=["classic", "consumer"])
    options = parser.parse_args()
    # A descriptor for each connection, here and in the broker, which inherits the limit.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(machine(), f"calibration {calibrate():.3f} s")
    good = True
    for kind in options.kinds:
        ids = [f"{kind}-{number}" for number in range(options.groups)] * MEMBERS_PER_GROUP
        with broker() as running, members_of(running.address, ids) as members:
            create_topic(members[0])
            print(f"{kind}: {options.groups} groups of {MEMBERS_PER_GROUP} members")
            if kind == "classic":
                frames, interval = classic_frames(members), CLASSIC_INTERVAL_SECONDS
            else:
                frames = consumer_frames(members)
                interval = _interval_seconds(members[0])
            percents = measured(running, Beats(members, frames, interval), options)
        middle = sorted(percents)[len(percents) // 2]
        name = f"heartbeats of {kind} groups"
        good &= verdict(name, middle, CPU_PERCENT_GOAL, "%", at_most=True)
    return 0 if good else 1


def _interval_seconds(member: MemberConnection) -> float:
    member.send(_beat(member, None))
    answer = member.receive()
    check(answer.error_code == 0, answer)
    return float(answer.heartbeat_interval_ms) / 1000


if __name__ == "__main__":
    raise SystemExit(main())
