"""The tables of all state machines: what has no row raises, and every row says why."""

from __future__ import annotations

import itertools
from enum import Enum

import pytest

from odradek.common.state_table import IllegalTransitionError, StateTable
from odradek.controller.partitions.states import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS
from odradek.coordinator.group.classic import states as classic
from odradek.coordinator.group.consumer import states as consumer
from odradek.coordinator.transaction import states as transaction

BY_EVENT = [classic.TRANSITIONS, consumer.MEMBER_TRANSITIONS, transaction.TRANSITIONS]
BY_STATE = [consumer.GROUP_TRANSITIONS, PARTITION_TRANSITIONS, REPLICA_TRANSITIONS]


def enums_of(table: StateTable) -> tuple[type[Enum], type[Enum]]:
    """The states and the events of a table."""
    first = table.transitions[0]
    return type(first.source), type(first.event)


MISSING_EVENTS = [
    (table, *cell)
    for table in BY_EVENT
    for cell in itertools.product(*enums_of(table))
    if cell not in table.by_event
]
MISSING_TARGETS = [
    (table, *cell)
    for table in BY_STATE
    for cell in itertools.product(enums_of(table)[0], repeat=2)
    if cell not in table.by_target
]


@pytest.mark.parametrize(("table", "state", "event"), MISSING_EVENTS)
def test_an_event_without_a_row_raises(table: StateTable, state: Enum, event: Enum) -> None:
    assert not table.takes(state, event)
    with pytest.raises(IllegalTransitionError, match=f"{table.label(state)}.*{event.value}"):
        table.next_state(state, event)


@pytest.mark.parametrize(("table", "state", "target"), MISSING_TARGETS)
def test_a_transition_without_a_row_raises(table: StateTable, state: Enum, target: Enum) -> None:
    names = f"{table.label(state)}.*{table.label(target)}"
    with pytest.raises(IllegalTransitionError, match=names):
        table.require(state, target)
    with pytest.raises(IllegalTransitionError, match=f"t-0.*{names}"):
        table.require(state, target, "t-0")


@pytest.mark.parametrize("table", [*BY_EVENT, *BY_STATE])
def test_every_row_leads_where_it_says_and_gives_its_reason(table: StateTable) -> None:
    for row in table.transitions:
        table.require(row.source, row.target)
        assert len(row.reason) > 10
        if table in BY_EVENT:
            assert table.next_state(row.source, row.event) is row.target
