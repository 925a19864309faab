import itertools
from pathlib import Path

import pytest

from odradek.coordinator.group.classic.states import (
    ANSWERS,
    TRANSITIONS,
    GroupEvent,
    GroupState,
    IllegalTransitionError,
    can_rebalance,
    next_state,
)
from odradek.tools.docs.group_diagram import DOCUMENT, render

CELLS = list(itertools.product(GroupState, GroupEvent))


@pytest.mark.parametrize(("state", "event"), [cell for cell in CELLS if cell not in TRANSITIONS])
def test_a_cell_that_is_not_in_the_table_raises(state: GroupState, event: GroupEvent) -> None:
    with pytest.raises(IllegalTransitionError, match=state.value):
        next_state(state, event)


def test_every_cell_tells_its_reason() -> None:
    assert all(len(transition.reason) > 10 for transition in TRANSITIONS.values())
    assert all(len(answers.reason) > 10 for answers in ANSWERS.values())


def test_transitions_are_those_of_kafkas_classic_groups() -> None:
    # From ClassicGroupState: the states that may come before each.
    before = {
        "Empty": {"PreparingRebalance"},
        "PreparingRebalance": {"Stable", "CompletingRebalance", "Empty"},
        "CompletingRebalance": {"PreparingRebalance"},
        "Stable": {"CompletingRebalance"},
        "Dead": {"Stable", "PreparingRebalance", "CompletingRebalance", "Empty"},
    }
    ours = {
        target.value: {
            state.value for (state, _), cell in TRANSITIONS.items() if cell.target is target
        }
        for target in GroupState
    }
    assert ours == before


def test_a_rebalance_begins_in_every_living_state_but_its_own() -> None:
    assert {state for state in GroupState if can_rebalance(state)} == {
        GroupState.EMPTY,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    }


def test_dead_is_final() -> None:
    assert not [state for state, _ in TRANSITIONS if state is GroupState.DEAD]


def test_the_document_is_drawn_from_the_tables() -> None:
    assert Path(DOCUMENT).read_text() == render(), "run python -m odradek.tools.docs.group_diagram"


def test_the_document_names_every_state_event_and_answer() -> None:
    text = render()
    for state in GroupState:
        assert f"**{state.value}**" in text
    for transition in TRANSITIONS.values():
        assert transition.reason in text
