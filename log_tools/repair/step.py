"""What a repair does, or leaves to somebody who knows more."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class RepairAction(StrEnum):
    """What is done to a file."""

    CUT = "cut"
    """Bytes behind the last whole batch go; a copy of them stays beside the log."""
    REBUILD = "rebuild"
    """Written anew from the batches."""
    CLAMP = "clamp"
    """Offsets from behind the end of a log become that end."""
    REMOVE = "remove"
    """A broker makes it again, or does without."""
    LEAVE = "leave"
    """Nothing is done: what is there is good, or nobody can know what it should be."""


class RepairStep(NamedTuple):
    """One file that was, or would be, repaired."""

    action: RepairAction
    path: str
    message: str
    """What is done and why, as a sentence."""
