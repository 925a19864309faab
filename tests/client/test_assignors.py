"""The assignors of classic groups: what members depend on when one of them assigns."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.consumer.group.assignors import ASSIGNORS, MemberSubscription


def members(*names: str, topics: str = "ab") -> dict[str, MemberSubscription]:
    return {name: MemberSubscription(frozenset(topics)) for name in names}


def shown(assignment: Mapping[str, set[tuple[str, int]]]) -> dict[str, list[str]]:
    return {
        name: [f"{topic}{number}" for topic, number in sorted(partitions)]
        for name, partitions in assignment.items()
    }


# The assignments of the next two tests are those in the documentation of Kafka's RangeAssignor and
# RoundRobinAssignor: two members, two topics of three partitions.


def test_range_gives_neighbours_of_each_topic():
    assigned = ASSIGNORS["range"].assign(members("m0", "m1"), {"a": 3, "b": 3})
    assert shown(assigned) == {"m0": ["a0", "a1", "b0", "b1"], "m1": ["a2", "b2"]}


def test_roundrobin_gives_one_after_another():
    assigned = ASSIGNORS["roundrobin"].assign(members("m0", "m1"), {"a": 3, "b": 3})
    assert shown(assigned) == {"m0": ["a0", "a2", "b1"], "m1": ["a1", "b0", "b2"]}


def test_static_members_keep_their_ranges_under_other_member_ids():
    def assigned(*ids: str) -> list[set[tuple[str, int]]]:
        group = {
            member_id: MemberSubscription(frozenset("a"), instance_id=f"i{number}")
            for number, member_id in enumerate(ids)
        }
        found = ASSIGNORS["range"].assign(group, {"a": 3})
        return [found[member_id] for member_id in ids]

    assert assigned("x", "y") == assigned("y", "x") == [{("a", 0), ("a", 1)}, {("a", 2)}]


def test_a_partition_that_moves_is_given_to_nobody_before_it_is_given_up():
    assign = ASSIGNORS["cooperative-sticky"].assign
    owned = frozenset(("a", number) for number in range(4))
    group = {
        "old": MemberSubscription(frozenset("a"), owned, 1),
        "new": MemberSubscription(frozenset("a")),
    }
    first = assign(group, {"a": 4})
    assert len(first["old"]) == 2
    assert first["new"] == set()
    group["old"] = group["old"]._replace(owned=frozenset(first["old"]), generation=2)
    second = assign(group, {"a": 4})
    assert second == {"old": first["old"], "new": owned - first["old"]}


def test_of_two_that_claim_a_partition_the_one_of_the_newer_generation_owns_it():
    group = {
        "a": MemberSubscription(frozenset("t"), frozenset({("t", 0)}), 4),
        "b": MemberSubscription(frozenset("t"), frozenset({("t", 0)}), 5),
    }
    assigned = ASSIGNORS["cooperative-sticky"].assign(group, {"t": 1})
    assert assigned == {"a": set(), "b": {("t", 0)}}


subscriptions = st.dictionaries(
    st.sampled_from([f"m{n}" for n in range(6)]),
    st.frozensets(st.sampled_from("abc")),
    min_size=1,
)
counts = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 7))


@given(subscriptions, counts, st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_of_a_subscribed_topic_is_one_subscribers(subscribed, sizes, name):
    group = {member: MemberSubscription(topics) for member, topics in subscribed.items()}
    assigned = ASSIGNORS[name].assign(group, sizes)
    given_out = [partition for partitions in assigned.values() for partition in partitions]
    expected = {
        (topic, number)
        for topic in frozenset().union(*subscribed.values())
        for number in range(sizes.get(topic, 0))
    }
    assert sorted(given_out) == sorted(expected)
    for member, partitions in assigned.items():
        assert {topic for topic, _ in partitions} <= subscribed[member]


@given(subscriptions, subscriptions, counts)
def test_cooperative_rounds_end_balanced_and_then_nothing_moves(before, after, sizes):
    assign = ASSIGNORS["cooperative-sticky"].assign

    def settled(group, generation):
        """Members join again until nobody gave anything up, as the protocol has them do."""
        for _ in range(4):
            assigned = assign(group, sizes)
            generation += 1
            gave_up = any(group[name].owned - assigned[name] for name in group)
            group = {
                name: member._replace(owned=frozenset(assigned[name]), generation=generation)
                for name, member in group.items()
            }
            if not gave_up:
                return group, generation
        raise AssertionError("it does not settle")

    group, generation = settled(
        {name: MemberSubscription(topics) for name, topics in before.items()}, 0
    )
    joined = {
        name: group.get(name, MemberSubscription(topics))._replace(topics=topics)
        for name, topics in after.items()
    }
    group, _ = settled(joined, generation)
    owned = {name: member.owned for name, member in group.items()}
    assert {name: frozenset(found) for name, found in assign(group, sizes).items()} == owned
    for name, member in group.items():
        for topic, _ in member.owned:
            others = [len(owned[each]) for each in group if topic in group[each].topics]
            assert len(owned[name]) - min(others) <= 1
