"""Draws `docs/group_states.md` from the tables of `states.py`.

Run `python -m odradek.tools.docs.group_diagram` after a change; a test compares.
"""

from __future__ import annotations

from pathlib import Path

from ...coordinator.group.classic.states import ANSWERS, TRANSITIONS, GroupState

DOCUMENT = Path(__file__).parents[2] / "docs" / "group_states.md"

HEAD = """\
# The states of a classic group

Drawn from the tables in `coordinator/group/classic/states.py` by
`python -m odradek.tools.docs.group_diagram`; a test fails when it is out of date.
"""


def render() -> str:
    """The whole document."""
    return "\n".join([HEAD, _diagram(), "", _transitions(), "", _answers(), ""])


def _diagram() -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {GroupState.EMPTY.value}"]
    lines += [
        f"    {state.value} --> {transition.target.value}: {event.value}"
        for (state, event), transition in TRANSITIONS.items()
    ]
    lines += [f"    {GroupState.DEAD.value} --> [*]", "```"]
    return "\n".join(lines)


def _transitions() -> str:
    lines = ["## What moves a group", "", "| in | when | goes to | because |", "|---|---|---|---|"]
    lines += [
        f"| **{state.value}** | {event.value} | **{transition.target.value}** "
        f"| {transition.reason} |"
        for (state, event), transition in TRANSITIONS.items()
    ]
    return "\n".join(lines)


def _answers() -> str:
    lines = [
        "## What a member of the current generation is answered",
        "",
        "| in | Heartbeat | SyncGroup | OffsetCommit | because |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| **{state.value}** | {answers.heartbeat.name} | {answers.sync.name} "
        f"| {answers.commit.name} | {answers.reason} |"
        for state, answers in ANSWERS.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
