"""What can go wrong while measuring, as sentences."""

from __future__ import annotations


class BenchError(Exception):
    """A load cannot go on; the text is one sentence a person can act on."""


class Unavailable(BenchError):
    """A load cannot be run here at all: the broker or this machine lacks what it needs."""
