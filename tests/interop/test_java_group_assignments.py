"""Our assignors and hashes of topics beside Kafka 4.3.1's own classes, on random groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from random import Random

import pytest
from support.random_groups import AskedGroup, random_group

from odradek.coordinator.group.assignor import find_assignors
from odradek.coordinator.group.assignor.assignor import NewAssignment
from odradek.coordinator.group.consumer.topics import TopicMetadata, group_hash, topic_hash

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

GROUPS = 600
TOPICS = 200

Java = Callable[..., str]


def ask(java: Java, lines: list[str]) -> list[str]:
    text = "".join(f"{line}\n" for line in lines)
    answers = java("odradek.interop.GroupAssignments", input=text).splitlines()
    assert len(answers) == len(lines)
    return answers


def number_of(topic_id: bytes) -> int:
    return int.from_bytes(topic_id, "big")


def reported(assignment: Mapping[bytes, Set[int]]) -> str:
    return "/".join(
        f"{number_of(topic_id)}:{' '.join(map(str, sorted(numbers)))}"
        for topic_id, numbers in sorted(assignment.items())
        if numbers
    )


def question(name: str, requested: AskedGroup) -> str:
    counts = ",".join(
        f"{number_of(topic_id)}:{count}" for topic_id, count in requested.partition_counts.items()
    )
    members = [
        ";".join(
            (
                member_id,
                member.instance_id or "",
                ",".join(str(number_of(topic_id)) for topic_id in sorted(member.topic_ids)),
                reported(member.assignment),
            )
        )
        for member_id, member in requested.group.members.items()
    ]
    return "|".join((name, counts, *members))


def answer_of(target: Mapping[str, NewAssignment]) -> str:
    return "|".join(f"{name}={reported(topics)}" for name, topics in sorted(target.items()))


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("name", ["uniform", "range"])
def test_we_assign_what_kafka_assigns(java: Java, name: str, homogeneous: bool) -> None:
    assignor = find_assignors([name])[name]
    rng = Random(f"{name} {homogeneous}")
    requested = [
        random_group(rng, homogeneous=homogeneous, members_max=rng.choice((3, 12, 40)))
        for _ in range(GROUPS)
    ]
    theirs = ask(java, [question(name, group) for group in requested])
    for number, (group, counts) in enumerate(requested):
        ours = answer_of(assignor.assign(group, counts))
        assert ours == theirs[number], question(name, requested[number])


def test_our_hash_of_a_topic_is_kafkas(java: Java) -> None:
    rng = Random(7)
    topics = []
    for _ in range(TOPICS):
        racks = [
            rng.sample(["a", "größe", "rack-1", "\N{GRINNING FACE}", "z" * 30], rng.randint(0, 3))
            for _ in range(rng.choice((1, 1, 2, 3, 10, 100, 1000)))
        ]
        name = rng.choice(("t", "topic-", "ä.b_c")) * rng.randint(1, 60)
        topics.append(TopicMetadata(name, rng.randbytes(16), racks))
    lines = [
        f"hash|{topic.name}|{topic.topic_id.hex()}|{'/'.join(','.join(r) for r in topic.racks)}"
        for topic in topics
    ]
    assert list(map(int, ask(java, lines))) == list(map(topic_hash, topics))


def test_our_hash_of_a_groups_topics_is_kafkas(java: Java) -> None:
    rng = Random(8)
    groups = [
        {
            f"{rng.choice('aZ_é')}{rng.randint(0, 10**6)}": rng.randint(-(2**63), 2**63 - 1)
            for _ in range(rng.randint(0, 40))
        }
        for _ in range(TOPICS)
    ]
    lines = ["|".join(("hashes", *(f"{k}={v}" for k, v in group.items()))) for group in groups]
    assert list(map(int, ask(java, lines))) == list(map(group_hash, groups))
