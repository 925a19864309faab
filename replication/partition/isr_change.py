"""A change of a partition's in-sync replicas, on its way to the metadata store (KIP-497).

A leader proposes it, somebody writes it by compare-and-set, and its outcome is applied only if
leadership and version are still those it was proposed under.
"""

from __future__ import annotations

from enum import Enum


class IsrChangeOutcome(Enum):
    """What became of a change that was not written."""

    REFUSED = "refused"
    """The state has another version: whoever wrote it, the controller will tell of it."""
    NOT_ATTEMPTED = "not attempted"
    """It cannot have been written; it may be proposed anew."""
