"""Random groups of consumers and topics, as assignors are asked about them."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from odradek.coordinator.group.assignor.assignor import GroupSpec, MemberSpec


class AskedGroup(NamedTuple):
    """A group, and the partition counts of the topics that its members read."""

    group: GroupSpec
    partition_counts: dict[bytes, int]


def topic_id(number: int) -> bytes:
    """The id of topic `number`, as Kafka's `Uuid(0, number)`."""
    return number.to_bytes(16, "big")


def random_group(rng: Random, *, homogeneous: bool, members_max: int = 12) -> AskedGroup:
    """A group some of whose members have something already, each partition at most once.

    Some of what they have is of topics that they do not read any more, or that are gone.
    """
    topics = [topic_id(number) for number in range(1, rng.randint(1, 9) + 1)]
    counts = {topic: rng.choice((1, 2, 3, 5, 8, 13, 40)) for topic in topics}
    names = [f"member-{number}" for number in range(rng.randint(1, members_max))]
    rng.shuffle(names)
    owners = owned_partitions(rng, counts, names)
    everything = frozenset(rng.sample(topics, rng.randint(1, len(topics))))
    members = {}
    for name in names:
        reads = everything
        if not homogeneous:
            reads = frozenset(rng.sample(topics, rng.randint(0, len(topics))))
        instance_id = f"instance-{rng.randint(0, 10**6)}" if rng.random() < 0.3 else None
        members[name] = MemberSpec(reads, owners.get(name, {}), instance_id)
    return AskedGroup(GroupSpec(members), counts)


def owned_partitions(
    rng: Random, counts: dict[bytes, int], names: list[str]
) -> dict[str, dict[bytes, frozenset[int]]]:
    """Who has what already: nobody anything, or everybody something, evenly or not at all so."""
    share_owned = rng.choice((0.0, 0.3, 0.9, 1.0))
    favoured = rng.sample(names, rng.randint(1, len(names)))
    owned: dict[str, dict[bytes, set[int]]] = {}
    for topic, count in counts.items():
        for number in range(count):
            if rng.random() < share_owned:
                owned.setdefault(rng.choice(favoured), {}).setdefault(topic, set()).add(number)
    return {
        name: {topic: frozenset(numbers) for topic, numbers in topics.items()}
        for name, topics in owned.items()
    }
