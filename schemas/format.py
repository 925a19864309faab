"""What the three formats have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Decode = Callable[[bytes, int], Any]
"""Reads the value that begins at a place in the bytes, and raises ValueDecodingError."""

REASON_LENGTH_MAX = 300


def shortened(said: object) -> str:
    """What an error says, on one line; libraries put whole schemas and values into it."""
    text = " ".join(str(said).split()) or type(said).__name__
    return text if len(text) <= REASON_LENGTH_MAX else text[: REASON_LENGTH_MAX - 1] + "…"
