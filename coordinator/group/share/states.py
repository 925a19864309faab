"""The states of a share group, as a table.

What a group holds decides which one it is in. Drawn in `docs/share_group_states.md`. Source:
KIP-932; Kafka's ShareGroupState.
"""

from __future__ import annotations

from enum import Enum
from operator import attrgetter

from ....common.state_table import StateTable


class ShareGroupState(Enum):
    """Where a group stands; the value is the name that clients see."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


_G = ShareGroupState
SHARE_GROUP_TRANSITIONS = StateTable(
    "a share group",
    {
        _G.EMPTY: (
            ("member joined", _G.STABLE, "members are assigned at once: nobody gives anything up"),
            ("deleted", _G.DEAD, "an administrator deleted it, or another broker keeps it now"),
        ),
        _G.STABLE: (
            ("last member left", _G.EMPTY, "what it has read is still known"),
            ("moved", _G.DEAD, "another broker keeps it now"),
        ),
    },
    label=attrgetter("value"),
    initial=_G.EMPTY,
    final=_G.DEAD,
)
"""What becomes of a group."""
