"""Doing without Python's cycle collector for a moment.

Ten thousand messages in hand make the collector look through all of them again and again, though
none can be part of a cycle: half the time of a reading task, measured.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """No collection of cycles meanwhile; what is not referred to is freed as ever."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
