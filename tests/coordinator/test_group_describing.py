import pytest

from odradek.common.errors import ErrorCode
from odradek.runtime.steps import run_at_once


def test_a_stable_group_is_described_with_metadata_and_assignments(bench) -> None:
    _, (member,) = bench.stable_group(1, instance=None, protocols={"range": b"meta"})
    described = bench.coordinator.describe_group("group")
    assert described[:5] == ("group", ErrorCode.NONE, "Stable", "consumer", "range")
    (reported,) = described.members
    assert reported == (member, None, "client", "/127.0.0.1", b"meta", member.encode())


def test_metadata_are_not_reported_while_a_group_rebalances(bench) -> None:
    _, (leader, _) = bench.stable_group(2)
    bench.join(leader)
    described = bench.coordinator.describe_group("group")
    assert (described.state, described.protocol_name) == ("PreparingRebalance", "")
    assert [member.metadata for member in described.members] == [b"", b""]


def test_an_unknown_group_is_dead(bench) -> None:
    described = bench.coordinator.describe_group("no such group")
    assert (described.error, described.state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


@pytest.fixture
def three_groups(bench) -> None:
    bench.commit(("orders", 0, 1), group_id="simple")
    _, joined = bench.new_member(group_id="completing")
    bench.advance_until_answered(joined)
    bench.new_member(group_id="preparing")


@pytest.mark.parametrize(
    ("states", "types", "listed"),
    [
        ([], [], {"simple", "completing", "preparing"}),
        (["Empty"], [], {"simple"}),
        (["empty", " PREPARINGREBALANCE "], [], {"simple", "preparing"}),
        (["Stable"], [], set()),
        (["No such state"], [], set()),
        ([], ["classic"], {"simple", "completing", "preparing"}),
        ([], ["Classic", "consumer"], {"simple", "completing", "preparing"}),
        ([], ["consumer"], set()),
        (["Empty"], ["share"], set()),
    ],
)
def test_groups_are_listed_by_state_and_type(
    bench, three_groups: None, states: list[str], types: list[str], listed: set[str]
) -> None:
    groups = run_at_once(bench.coordinator.list_groups(states, types))
    assert {group.group_id for group in groups} == listed
    assert {group.group_type for group in groups} <= {"classic"}


def test_a_listing_tells_protocol_type_and_state(bench, three_groups: None) -> None:
    reported = {
        g.group_id: (g.protocol_type, g.state)
        for g in run_at_once(bench.coordinator.list_groups((), ()))
    }
    assert reported == {
        "simple": ("", "Empty"),
        "completing": ("consumer", "CompletingRebalance"),
        "preparing": ("consumer", "PreparingRebalance"),
    }
