"""State machines as tables: one row for each transition, with the reason that there is for it.

A state is changed through its table alone, and a transition that has no row raises.
`tools/docs/state_diagram.py` draws the tables under `docs/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Generic, TypeVar

from .named_tuple import NamedTuple

StateT = TypeVar("StateT", bound=Enum)


class Transition(NamedTuple, Generic[StateT]):
    """One row of a table.

    Attributes:
        event: what causes it, an enum of texts or a text; empty where the states say it all.
        reason: why, for readers of the document.
    """

    source: StateT
    event: Enum | str
    target: StateT
    reason: str

    @property
    def cause(self) -> str:
        """The event as a text."""
        return self.event if isinstance(self.event, str) else str(self.event.value)


class IllegalTransitionError(Exception):
    """A transition that has no row in its table: a fault of this broker."""


class StateTable(Generic[StateT]):
    """The transitions of one state machine.

    Args:
        subject: what moves along it, for error texts.
        rows: of each state, the events that move it, where to, and why.
        label: the name of a state as readers know it.
        initial: where it begins, if it always begins there.
        final: where it ends, if it ends.

    Attributes:
        transitions: all of them, in the order of the rows.
        by_event: by source and event.
        by_target: by source and target.
    """

    def __init__(
        self,
        subject: str,
        rows: Mapping[StateT, Iterable[tuple[Enum | str, StateT, str]]],
        *,
        label: Callable[[StateT], str],
        initial: StateT | None = None,
        final: StateT | None = None,
    ) -> None:
        self.transitions = tuple(
            Transition(source, *row) for source, leaving in rows.items() for row in leaving
        )
        self.label = label
        self.initial = initial
        self.final = final
        self._subject = subject
        self.by_event = {(row.source, row.event): row for row in self.transitions}
        self.by_target = {(row.source, row.target): row for row in self.transitions}

    def takes(self, state: StateT, event: Enum) -> bool:
        """Whether `event` leads anywhere from `state`."""
        return (state, event) in self.by_event

    def next_state(self, state: StateT, event: Enum) -> StateT:
        """Where `event` leads from `state`.

        Raises:
            IllegalTransitionError: the table has no such row.
        """
        transition = self.by_event.get((state, event))
        if transition is None:
            raise IllegalTransitionError(
                f"{self._subject} in state {self.label(state)} cannot take '{event.value}'"
            )
        return transition.target

    def require(self, state: StateT, target: StateT, subject: object = None) -> None:
        """Make sure that there is a transition from `state` to `target`.

        Args:
            subject: which one of the table's subjects it is, for the error's text.

        Raises:
            IllegalTransitionError: the table has no such row.
        """
        if (state, target) not in self.by_target:
            raise IllegalTransitionError(
                f"{subject or self._subject} cannot go from {self.label(state)} "
                f"to {self.label(target)}"
            )
