"""Draws `docs/controller_states.md` from the tables of `states.py`.

Run `python -m odradek.tools.docs.controller_diagram` after a change; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...controller.partitions.states import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    PartitionStatus,
    ReplicaStatus,
    StatusT,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "controller_states.md"

HEAD = """\
# The states of partitions and replicas

Drawn from the tables in `controller/partitions/states.py` by
`python -m odradek.tools.docs.controller_diagram`; a test fails when it is out of date.
"""


def render() -> str:
    """The whole document."""
    parts = [HEAD]
    parts += _section("A partition", PartitionStatus, PARTITION_TRANSITIONS)
    parts += _section("A replica", ReplicaStatus, REPLICA_TRANSITIONS)
    return "\n".join([*parts, ""])


def _section(
    title: str, states: Iterable[StatusT], table: Mapping[tuple[StatusT, StatusT], str]
) -> list[str]:
    lines: list[str] = [f"## {title}", "", "```mermaid", "stateDiagram-v2"]
    lines += [f"    {former.name} --> {target.name}" for former, target in table]
    lines += ["```", "", "| state | meaning |", "|---|---|"]
    lines += [f"| **{state.name}** | {state.value} |" for state in states]
    lines += ["", "| from | to | because |", "|---|---|---|"]
    lines += [
        f"| **{former.name}** | **{target.name}** | {reason} |"
        for (former, target), reason in table.items()
    ]
    return [*lines, ""]


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
