"""Kafka's two assignors: every partition has one owner, shares are even, and few move.

That both assign exactly as Kafka 4.3.1 does is compared in tests/interop.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from random import Random

import pytest
from support.random_groups import AskedGroup, random_group, topic_id

from odradek.coordinator.group.assignor import find_assignors
from odradek.coordinator.group.assignor.assignor import (
    AssignorError,
    GroupSpec,
    MemberSpec,
    NewAssignment,
)

GROUPS = 150

A, B, C = topic_id(1), topic_id(2), topic_id(3)


def assign(
    name: str, group: GroupSpec, partition_counts: Mapping[bytes, int]
) -> dict[str, NewAssignment]:
    assignor = find_assignors([name])[name]
    return assignor.assign(group, partition_counts)


def members(**specs: MemberSpec) -> GroupSpec:
    return GroupSpec(specs)


def reads(*topics: bytes, instance_id: str | None = None) -> MemberSpec:
    return MemberSpec(frozenset(topics), {}, instance_id)


def sizes(target: Mapping[str, NewAssignment], group: GroupSpec) -> list[int]:
    return [sum(map(len, target.get(name, {}).values())) for name in group.members]


def owners(target: Mapping[str, Mapping[bytes, Set[int]]]) -> dict[tuple[bytes, int], list[str]]:
    found: dict[tuple[bytes, int], list[str]] = {}
    for name, topics in target.items():
        for topic, numbers in topics.items():
            for number in numbers:
                found.setdefault((topic, number), []).append(name)
    return found


def asked_groups(name: str, *, homogeneous: bool) -> list[AskedGroup]:
    rng = Random(f"{name} {homogeneous}")
    return [random_group(rng, homogeneous=homogeneous) for _ in range(GROUPS)]


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("name", ["uniform", "range"])
def test_every_partition_of_a_read_topic_has_one_owner_that_reads_it(
    name: str, homogeneous: bool
) -> None:
    for group, counts in asked_groups(name, homogeneous=homogeneous):
        found = owners(assign(name, group, counts))
        read = {topic for member in group.members.values() for topic in member.topic_ids}
        assert set(found) == {(topic, n) for topic in read for n in range(counts[topic])}
        for (topic, _), names in found.items():
            assert len(names) == 1
            assert topic in group.members[names[0]].topic_ids


def test_uniform_gives_nobody_two_more_than_another_where_all_read_alike() -> None:
    for group, counts in asked_groups("balance", homogeneous=True):
        shares = sizes(assign("uniform", group, counts), group)
        assert max(shares) - min(shares) <= 1


def test_uniform_moves_no_more_than_balance_asks_for() -> None:
    for group, counts in asked_groups("moves", homogeneous=True):
        target = assign("uniform", group, counts)
        read = next(iter(group.members.values())).topic_ids
        total = sum(counts[topic] for topic in read)
        share, odd = divmod(total, len(group.members))
        before = [
            sum(len(numbers) for topic, numbers in member.assignment.items() if topic in read)
            for member in group.members.values()
        ]
        # Nobody keeps more than its share; as many as there are odd partitions keep one more.
        most = sum(min(size, share) for size in before)
        most += min(odd, sum(size > share for size in before))
        kept = sum(
            len(numbers & target[name].get(topic, frozenset()))
            for name, member in group.members.items()
            for topic, numbers in member.assignment.items()
            if topic in read
        )
        assert kept == most


@pytest.mark.parametrize("homogeneous", [True, False])
def test_uniform_leaves_its_own_result_as_it_is(homogeneous: bool) -> None:
    for group, counts in asked_groups("again", homogeneous=homogeneous):
        target = assign("uniform", group, counts)
        settled = GroupSpec(
            {
                name: member._replace(assignment=target.get(name, {}))
                for name, member in group.members.items()
            }
        )
        if homogeneous:
            assert assign("uniform", settled, counts) == target
        else:
            # It stops after so many rounds, and goes on from there when asked again.
            before, after = sizes(target, group), sizes(assign("uniform", settled, counts), group)
            assert max(after) - min(after) <= max(before) - min(before)


def test_uniform_balances_among_those_who_read_a_topic() -> None:
    group = members(a=reads(A), b=reads(A, B), c=reads(A, B))
    target = assign("uniform", group, {A: 3, B: 6})
    assert sizes(target, group) == [3, 3, 3]
    assert target["a"] == {A: frozenset({0, 1, 2})}


def test_uniform_gives_a_new_member_its_share_and_takes_no_more() -> None:
    settled = assign("uniform", members(a=reads(A), b=reads(A)), {A: 6})
    group = members(
        a=MemberSpec(frozenset((A,)), settled["a"]),
        b=MemberSpec(frozenset((A,)), settled["b"]),
        c=reads(A),
    )
    target = assign("uniform", group, {A: 6})
    assert sizes(target, group) == [2, 2, 2]
    assert target["a"][A] < settled["a"][A]
    assert target["b"][A] < settled["b"][A]


def test_range_cuts_each_topic_into_ranges_the_longer_ones_first() -> None:
    target = assign("range", members(b=reads(A), a=reads(A), c=reads(A)), {A: 8})
    assert target == {
        "a": {A: frozenset({0, 1, 2})},
        "b": {A: frozenset({3, 4, 5})},
        "c": {A: frozenset({6, 7})},
    }


def test_range_gives_the_same_numbers_of_topics_of_one_size_to_the_same_member() -> None:
    rng = Random(4)
    for _ in range(GROUPS):
        count, size = rng.randint(1, 20), rng.randint(1, 8)
        group = GroupSpec({f"m{number}": reads(A, B, C) for number in range(size)})
        for topics in assign("range", group, {A: count, B: count, C: count}).values():
            assert topics.get(A) == topics.get(B) == topics.get(C)


def test_range_keeps_a_static_member_where_it_was_under_another_member_id() -> None:
    counts = {A: 6}
    before = assign(
        "range", members(m1=reads(A, instance_id="x"), m2=reads(A, instance_id="y")), counts
    )
    after = assign(
        "range", members(m9=reads(A, instance_id="x"), m0=reads(A, instance_id="y")), counts
    )
    assert (after["m9"], after["m0"]) == (before["m1"], before["m2"])


def test_range_places_static_members_before_others() -> None:
    target = assign("range", members(a=reads(A), z=reads(A, instance_id="i")), {A: 3})
    assert target == {"z": {A: frozenset({0, 1})}, "a": {A: frozenset({2})}}


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_more_members_than_partitions_leave_some_with_nothing(name: str) -> None:
    group = members(a=reads(A), b=reads(A), c=reads(A))
    assert sorted(sizes(assign(name, group, {A: 2}), group)) == [0, 1, 1]


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_a_group_without_members_or_topics_is_assigned_nothing(name: str) -> None:
    assert assign(name, members(), {}) == {}
    assert not any(assign(name, members(a=reads(), b=reads()), {}).values())


@pytest.mark.parametrize("group", [members(a=reads(A)), members(a=reads(A), b=reads(B))])
@pytest.mark.parametrize("name", ["uniform", "range"])
def test_a_topic_without_a_partition_count_is_refused(name: str, group: GroupSpec) -> None:
    with pytest.raises(AssignorError, match="there is none"):
        assign(name, group, {})


@pytest.mark.parametrize("others", [(), (B,)])
def test_a_partition_that_two_members_claim_is_the_first_ones(others: tuple[bytes, ...]) -> None:
    group = members(
        a=MemberSpec(frozenset((A,)), {A: frozenset({0, 1})}),
        b=MemberSpec(frozenset((A, *others)), {A: frozenset({1, 2, 3})}),
    )
    target = assign("uniform", group, {A: 4, B: 1})
    assert target["a"] == {A: frozenset({0, 1})}
    assert target["b"][A] == frozenset({2, 3})


def test_there_is_no_third_assignor() -> None:
    with pytest.raises(ValueError, match="sticky"):
        find_assignors(["sticky"])
