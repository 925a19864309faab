"""Plans of a reassignment: which brokers are to have which partitions, and what throttles it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..common.errors import fail
from ..topics.partition_names import TopicPartition

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
"""What kafka-reassign-partitions sets and removes: rates of brokers, and which replicas they hold
for, of topics (KIP-73)."""


class Move(NamedTuple):
    """One partition that changes its brokers.

    Attributes:
        partition: which.
        current: the brokers that have it.
        target: those that are to have it, the preferred leader first.
        size: of its log at the leader, in bytes.
    """

    partition: TopicPartition
    current: tuple[int, ...]
    target: tuple[int, ...]
    size: int

    @property
    def adding(self) -> list[int]:
        """The brokers that copy it."""
        return [broker for broker in self.target if broker not in self.current]


def spread(
    replicas: Mapping[TopicPartition, Sequence[int]], brokers: Sequence[int], count: int | None
) -> dict[TopicPartition, tuple[int, ...]]:
    """Partitions spread evenly over brokers, with as few copies as that allows.

    Args:
        replicas: the brokers that have each now, the preferred leader first.
        brokers: those that may have them.
        count: how many replicas each is to have; None: as many as now.

    Raises CommandError where there are not as many brokers.
    """
    counts = {each: count or len(replicas[each]) for each in sorted(replicas)}
    if counts and max(counts.values()) > len(brokers):
        fail(f"{max(counts.values())} replicas need as many brokers, and {len(brokers)} are named")
    most = -(-sum(counts.values()) // len(brokers))
    load: Counter[int] = Counter()
    kept: dict[TopicPartition, list[int]] = {}
    for each, number in counts.items():
        kept[each] = [b for b in replicas[each] if b in brokers and load[b] < most][:number]
        load.update(kept[each])
    for each, number in counts.items():
        while len(kept[each]) < number:
            others = [broker for broker in brokers if broker not in kept[each]]
            # Of brokers with as little to do, one that has it already saves a copy.
            added = min(others, key=lambda b: (load[b], b not in replicas[each], brokers.index(b)))
            kept[each].append(added)
            load[added] += 1
    # Where partitions need nearly all brokers, what was kept of the others may be too much. Of a
    # broker with less than its share there is always one that it lacks.
    while max(load.values(), default=0) > most:
        fullest = max(brokers, key=lambda b: load[b])
        emptiest = min(brokers, key=lambda b: load[b])
        movable = [p for p, on in kept.items() if fullest in on and emptiest not in on]
        # What would be copied anyway goes first.
        moved = min(movable, key=lambda p: (fullest in replicas[p], emptiest not in replicas[p]))
        kept[moved][kept[moved].index(fullest)] = emptiest
        load.update({fullest: -1, emptiest: 1})
    leads: Counter[int] = Counter()
    leads_most = -(-len(kept) // len(brokers))
    for brokers_of_it in kept.values():
        leader = brokers_of_it[0]
        if leads[leader] >= leads_most:
            leader = min(brokers_of_it, key=lambda broker: leads[broker])
        leads[leader] += 1
        brokers_of_it.sort(key=lambda broker: broker != leader)
    return {each: tuple(found) for each, found in kept.items()}


def read_plan(text: str, source: str) -> dict[TopicPartition, tuple[int, ...]]:
    """A plan in the form of kafka-reassign-partitions. Raises CommandError for what is none."""
    try:
        found = {}
        for entry in json.loads(text)["partitions"]:
            replicas = tuple(entry["replicas"])
            numbers = (entry["partition"], *replicas)
            if not replicas or not all(type(each) is int and each >= 0 for each in numbers):
                raise ValueError(f"{json.dumps(entry)} has no list of broker ids")
            if len(set(replicas)) < len(replicas):
                raise ValueError(f"{json.dumps(entry)} names a broker twice")
            found[str(entry["topic"]), entry["partition"]] = replicas
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        fail(
            f"{source} is no plan ({error}); it should look like"
            ' {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}'
        )
    return found


def plan_text(targets: Mapping[TopicPartition, Sequence[int]]) -> str:
    """The same in writing."""
    partitions = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in sorted(targets.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions})


def throttled_replicas(moves: Iterable[Move]) -> dict[str, dict[str, str]]:
    """By topic, the settings that say which replicas are throttled: at leaders whoever may lead
    meanwhile, at followers those that copy."""
    leaders: dict[str, list[str]] = {}
    followers: dict[str, list[str]] = {}
    for move in moves:
        topic, partition = move.partition
        leaders.setdefault(topic, []).extend(f"{partition}:{each}" for each in move.current)
        followers.setdefault(topic, []).extend(f"{partition}:{each}" for each in move.adding)
    return {
        topic: {
            LEADER_REPLICAS: ",".join(leaders[topic]),
            FOLLOWER_REPLICAS: ",".join(followers[topic]),
        }
        for topic in leaders
        if followers[topic]
    }
