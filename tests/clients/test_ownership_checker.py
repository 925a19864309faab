"""The checkers of the churn suites find what is planted, and nothing in a history without."""

from __future__ import annotations

import pytest
from support.ownership import Change, Ownership, OwnershipEvent
from support.resumption import Commit, Resumption


def history(*events: tuple[int, str, Change, set[int], int]) -> Ownership:
    """Two partitions; events by time, member, change, partitions, generation."""
    ownership = Ownership(range(2))
    for at_ns, member, change, partitions, generation in events:
        ownership.tell(OwnershipEvent(at_ns, member, change, frozenset(partitions), generation))
    return ownership


def kinds(ownership: Ownership) -> list[str]:
    return [violation.kind for violation in ownership.violations()]


HANDED_OVER = (
    (10, "a", Change.ASSIGNED, {0, 1}, 1),
    (20, "a", Change.REVOKED, {0, 1}, 1),
    (30, "a", Change.ASSIGNED, {0}, 2),
    (31, "b", Change.ASSIGNED, {1}, 2),
)


def test_partition_that_is_handed_over_is_no_violation() -> None:
    ownership = history(*HANDED_OVER)
    ownership.mark_settled(15)
    ownership.mark_settled(40)
    assert ownership.violations() == []
    assert ownership.why_not_settled(["a", "b"]) == ""
    assert ownership.generations() == [1, 2]


def test_second_owner_before_the_first_gave_up_is_found() -> None:
    ownership = history(
        (10, "a", Change.ASSIGNED, {0, 1}, 1),
        (20, "b", Change.ASSIGNED, {1}, 2),
        (21, "a", Change.REVOKED, {1}, 1),
    )
    (violation,) = ownership.violations()
    assert violation.kind == "two owners at once"
    assert "partition 1: a (generation 1) still, b (generation 2)" in violation.text


def test_second_owner_is_found_though_it_was_reported_first() -> None:
    ownership = history(
        (20, "b", Change.ASSIGNED, {1}, 2),
        (10, "a", Change.ASSIGNED, {0, 1}, 1),
        (21, "a", Change.REVOKED, {1}, 1),
    )
    assert kinds(ownership) == ["two owners at once"]


def test_second_owner_in_one_generation_is_found_though_never_at_once() -> None:
    ownership = history(
        (10, "a", Change.ASSIGNED, {1}, 4),
        (20, "a", Change.REVOKED, {1}, 4),
        (30, "b", Change.ASSIGNED, {1}, 4),
    )
    assert kinds(ownership) == ["two owners in one generation"]


def test_static_instance_that_restarts_is_one_owner() -> None:
    ownership = Ownership(range(1), lambda member: member[0])
    for member in ("a-1", "a-2"):
        ownership.tell(OwnershipEvent(10, member, Change.ASSIGNED, frozenset({0}), 1))
        ownership.tell(OwnershipEvent(10, member, Change.LEFT))
    assert ownership.violations() == []
    ownership.tell(OwnershipEvent(20, "b-1", Change.ASSIGNED, frozenset({0}), 1))
    assert kinds(ownership) == ["two owners in one generation"]


def test_partition_kept_over_a_generation_counts_as_owned_in_it() -> None:
    ownership = history(
        (10, "a", Change.ASSIGNED, {0}, 1),
        (20, "a", Change.ASSIGNED, {1}, 2),
        (30, "a", Change.LEFT, set(), -1),
        (40, "b", Change.ASSIGNED, {0}, 2),
    )
    assert kinds(ownership) == ["two owners in one generation"]


def test_owner_that_was_given_up_and_reported_late_is_no_violation() -> None:
    ownership = history(
        (10, "a", Change.ASSIGNED, {0, 1}, 1),
        (20, "b", Change.ASSIGNED, {0, 1}, 2),
        (30, "a", Change.LOST, {0, 1}, 1),
    )
    assert ownership.violations() == []


def test_owner_that_was_given_up_and_left_before_it_was_reported_is_no_violation() -> None:
    left_too = (
        (10, "a", Change.ASSIGNED, {0, 1}, 1),
        (20, "b", Change.ASSIGNED, {0, 1}, 2),
        (30, "a", Change.LEFT, set(), -1),
    )
    assert kinds(history(*left_too)) == ["two owners at once"] * 2
    assert history(*left_too, (40, "a", Change.LOST, {0, 1}, 1)).violations() == []


def test_loss_excuses_no_second_owner_of_the_same_generation() -> None:
    ownership = history(
        (10, "a", Change.ASSIGNED, {0}, 1),
        (20, "b", Change.ASSIGNED, {0}, 1),
        (30, "a", Change.LOST, {0}, 1),
    )
    assert sorted(kinds(ownership)) == ["two owners at once", "two owners in one generation"]


def test_orphan_is_found_when_the_group_has_settled() -> None:
    ownership = history(
        (10, "a", Change.ASSIGNED, {0, 1}, 1),
        (20, "a", Change.REVOKED, {1}, 1),
    )
    ownership.mark_settled(15)
    assert kinds(ownership) == []
    ownership.mark_settled(25)
    (violation,) = ownership.violations()
    assert violation.kind == "unowned when settled"
    assert "partitions [1]" in violation.text


def test_member_that_left_owns_nothing() -> None:
    ownership = history(*HANDED_OVER, (50, "a", Change.LEFT, set(), -1))
    ownership.mark_settled(60)
    assert kinds(ownership) == ["unowned when settled"]
    assert ownership.why_not_settled(["b"]) == "unowned: [0]"


def test_what_a_member_hears_while_it_leaves_does_not_count() -> None:
    ownership = history(
        (10, "a", Change.ASSIGNED, {0, 1}, 1),
        (20, "a", Change.LEFT, set(), -1),
        (30, "a", Change.ASSIGNED, {0, 1}, 2),
        (40, "b", Change.ASSIGNED, {0, 1}, 3),
    )
    assert ownership.violations() == []
    assert ownership.why_not_settled(["b"]) == ""


def test_partition_assigned_twice_to_one_member_is_found() -> None:
    ownership = history(
        (10, "a", Change.ASSIGNED, {0}, 1),
        (20, "a", Change.ASSIGNED, {0, 1}, 2),
    )
    assert kinds(ownership) == ["assigned what it owns"]


@pytest.mark.parametrize(
    ("members", "reason"),
    [(["a"], "unowned: [1]"), (["a", "b", "c"], "uneven")],
    ids=["a member that is not expected", "a member without a share"],
)
def test_group_has_not_settled_on_other_members(members: list[str], reason: str) -> None:
    ownership = history(*HANDED_OVER)
    if len(members) == 1:
        assert ownership.why_not_settled(members) == reason
        return
    ownership.tell(OwnershipEvent(40, "b", Change.REVOKED, frozenset({1})))
    ownership.tell(OwnershipEvent(50, "a", Change.ASSIGNED, frozenset({1}), 3))
    assert ownership.why_not_settled(members).startswith(reason)


# -- resumption ------------------------------------------------------------------------------


def test_reading_on_from_a_commit_is_no_violation() -> None:
    reads = Resumption()
    reads.tell_owned("a", 0)
    reads.tell_read("a", 0, 0)
    reads.tell_read("a", 0, 1)
    reads.tell_attempt(0, Commit(1, "half"))
    reads.tell_acknowledged(0, Commit(1, "half"))
    reads.tell_owned("b", 0)
    reads.tell_read("b", 0, 1)
    assert reads.violations({0: 2}) == []
    assert (reads.resumed, reads.read_count()) == (1, 2)


def test_commit_that_was_forgotten_is_found() -> None:
    reads = Resumption()
    reads.tell_attempt(0, Commit(5, ""))
    reads.tell_acknowledged(0, Commit(5, ""))
    reads.tell_owned("b", 0)
    reads.tell_read("b", 0, 0)
    assert [violation.kind for violation in reads.violations({})] == ["commit forgotten"]


def test_resuming_where_nobody_committed_is_found_and_so_are_lost_records() -> None:
    reads = Resumption()
    reads.tell_owned("a", 0)
    reads.tell_read("a", 0, 3)
    found = reads.violations({0: 4})
    assert [violation.kind for violation in found] == ["resumed elsewhere", "not read"]
    assert "[0, 1, 2], 3 in all" in found[1].text


def test_commit_in_flight_when_the_owner_changes_may_count_or_not() -> None:
    for offset in (5, 7):
        reads = Resumption()
        reads.tell_acknowledged(0, Commit(5, ""))
        reads.tell_attempt(0, Commit(5, ""))
        reads.tell_attempt(0, Commit(7, ""))
        reads.tell_owned("b", 0)
        reads.tell_read("b", 0, offset)
        assert reads.violations({}) == []
