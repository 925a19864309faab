"""Draws `docs/consumer_group_states.md` from the tables of `states.py`.

Run `python -m odradek.tools.docs.consumer_group_diagram` after a change; a test
compares.
"""

from __future__ import annotations

from pathlib import Path

from ...coordinator.group.consumer.states import (
    GROUP_TRANSITIONS,
    MEMBER_TRANSITIONS,
    ConsumerGroupState,
    MemberState,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "consumer_group_states.md"

HEAD = """\
# The states of a consumer group and of its members

Groups of KIP-848, which the broker assigns and whose members follow one by one. Drawn from the
tables in `coordinator/group/consumer/states.py` by
`python -m odradek.tools.docs.consumer_group_diagram`; a test fails when it is out of
date. The states of classic groups are in [group_states.md](group_states.md).
"""


def render() -> str:
    """The whole document."""
    return "\n".join(
        [
            HEAD,
            "## The group",
            "",
            _group_diagram(),
            "",
            _group_table(),
            "",
            "## A member",
            "",
            _member_diagram(),
            "",
            _member_table(),
            "",
        ]
    )


def _group_diagram() -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {ConsumerGroupState.EMPTY.value}"]
    lines += [
        f"    {state.value} --> {target.value}: {transition.cause}"
        for (state, target), transition in GROUP_TRANSITIONS.items()
    ]
    lines += [f"    {ConsumerGroupState.DEAD.value} --> [*]", "```"]
    return "\n".join(lines)


def _group_table() -> str:
    lines = ["| from | to | when | because |", "|---|---|---|---|"]
    lines += [
        f"| **{state.value}** | **{target.value}** | {transition.cause} | {transition.reason} |"
        for (state, target), transition in GROUP_TRANSITIONS.items()
    ]
    return "\n".join(lines)


def _member_diagram() -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {MemberState.STABLE.name}"]
    lines += [
        f"    {state.name} --> {target.name}: {event.value}"
        for (state, event), (target, _) in MEMBER_TRANSITIONS.items()
    ]
    lines.append("```")
    return "\n".join(lines)


def _member_table() -> str:
    lines = ["| in | finds that it | goes to | where |", "|---|---|---|---|"]
    lines += [
        f"| **{state.name}** | {event.value} | **{target.name}** | {reason} |"
        for (state, event), (target, reason) in MEMBER_TRANSITIONS.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
