"""What a consumer group reads, as members come, change their minds, and go."""

from __future__ import annotations

import random

import pytest

from odradek.coordinator.group.consumer.group import ConsumerGroup
from odradek.coordinator.group.consumer.member import ConsumerGroupMember, ResolvedExpression

TOPICS = ["a", "b", "c", "d"]
EXPRESSION = "[ab]"


@pytest.mark.parametrize("seed", range(50))
def test_a_group_reads_what_any_member_reads(seed: int) -> None:
    rng = random.Random(seed)
    group = ConsumerGroup("group", 0)
    for _ in range(40):
        member_id = rng.choice(["m1", "m2", "m3"])
        match rng.randrange(5):
            case 0:
                group.remove_member(member_id)
            case 1:
                matched = frozenset(rng.sample(TOPICS, rng.randrange(3)))
                group.put_expression(EXPRESSION, ResolvedExpression(matched, 1, 0))
            case _:
                group.put_member(
                    ConsumerGroupMember(
                        member_id,
                        subscribed_topic_names=frozenset(rng.sample(TOPICS, rng.randrange(3))),
                        subscribed_topic_regex=rng.choice(["", EXPRESSION]),
                    )
                )
        expected: set[str] = set()
        for member in group.members.values():
            expected |= member.subscribed_topic_names
            if member.subscribed_topic_regex and EXPRESSION in group.expressions:
                expected |= group.expressions[EXPRESSION].topics
        assert group.subscribed_topics == expected
        by_expression = [m for m in group.members.values() if m.subscribed_topic_regex]
        assert group.subscribed_expressions[EXPRESSION] == len(by_expression)
