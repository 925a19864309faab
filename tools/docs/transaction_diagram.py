"""Draws `docs/transaction_states.md` from the tables of `states.py` and `end_table.py`.

Run `python -m odradek.tools.docs.transaction_diagram` after a change; a test compares.
"""

from __future__ import annotations

from pathlib import Path

from ...common.errors import ErrorCode
from ...coordinator.transaction.state.end_table import (
    FIRST_GENERATION,
    SECOND_GENERATION_AGAIN,
    SECOND_GENERATION_NEW,
    EndCell,
)
from ...coordinator.transaction.state.states import TRANSITIONS, TransactionEvent, TransactionState

DOCUMENT = Path(__file__).parents[2] / "docs" / "transaction_states.md"

HEAD = """\
# The states of a transactional id

Drawn from the tables in `coordinator/transaction/state/states.py` and `end_table.py` by
`python -m odradek.tools.docs.transaction_diagram`; a test fails when it is out of date.

A change counts once its record is on enough replicas of `__transaction_state`. Until then it
is pending, and every other request for the id is answered CONCURRENT_TRANSACTIONS. A
coordinator that takes over reads the last record of each id and goes on from there: what is
prepared is completed, with markers written a second time if need be.
"""


def render() -> str:
    """The whole document."""
    return "\n".join([HEAD, _diagram(), "", _transitions(), "", _ends(), ""])


def _diagram() -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {TransactionState.EMPTY.shown}"]
    lines += [
        f"    {state.shown} --> {transition.target.shown}: {event.shown}"
        for (state, event), transition in TRANSITIONS.items()
    ]
    lines += [f"    {TransactionState.DEAD.shown} --> [*]", "```"]
    return "\n".join(lines)


def _transitions() -> str:
    lines = [
        "## What moves a transactional id",
        "",
        "| in | when | goes to | because |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| **{state.shown}** | {event.shown} | **{transition.target.shown}** "
        f"| {transition.reason} |"
        for (state, event), transition in TRANSITIONS.items()
    ]
    return "\n".join(lines)


def _ends() -> str:
    lines = [
        "## What EndTxn does",
        "",
        "The first generation is EndTxn 0 to 4, the second EndTxn 5 (KIP-890). In the second, a",
        "request with the epoch of now is new; one with the epoch before has come again. Any",
        "other epoch is PRODUCER_FENCED.",
        "",
        "| in | first: commit | first: abort | second, new: commit | second, new: abort "
        "| second, again: commit | second, again: abort |",
        "|---|---|---|---|---|---|---|",
    ]
    for state in FIRST_GENERATION:
        cells = [
            text
            for table in (FIRST_GENERATION, SECOND_GENERATION_NEW, SECOND_GENERATION_AGAIN)
            for text in _texts(state, table.get(state))
        ]
        lines.append(f"| **{state.shown}** | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _texts(state: TransactionState, cell: EndCell | None) -> list[str]:
    if cell is None:
        return [ErrorCode.PRODUCER_FENCED.name] * 2
    return [
        f"goes to {TRANSITIONS[state, verdict].target.shown}"
        if isinstance(verdict, TransactionEvent)
        else "NONE, as before"
        if verdict is ErrorCode.NONE
        else verdict.name
        for verdict in cell
    ]


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
