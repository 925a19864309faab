from odradek.coordinator.group.classic.states import (
    ANSWERS,
    TRANSITIONS,
    ClassicGroupState,
    GroupEvent,
)
from odradek.tools.docs.state_diagram import pages


def test_every_state_gives_the_reason_of_its_answers() -> None:
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
        target.value: {row.source.value for row in TRANSITIONS.transitions if row.target is target}
        for target in ClassicGroupState
    }
    assert ours == before


def test_a_rebalance_begins_in_every_living_state_but_its_own() -> None:
    assert {
        state for state, event in TRANSITIONS.by_event if event is GroupEvent.MEMBERSHIP_CHANGED
    } == {
        ClassicGroupState.EMPTY,
        ClassicGroupState.COMPLETING_REBALANCE,
        ClassicGroupState.STABLE,
    }


def test_dead_is_final() -> None:
    assert not [row for row in TRANSITIONS.transitions if row.source is ClassicGroupState.DEAD]


def test_the_document_names_every_state_event_and_answer() -> None:
    text = pages()["group_states.md"]
    for state in ClassicGroupState:
        assert f"**{state.value}**" in text
    for transition in TRANSITIONS.transitions:
        assert transition.reason in text
