"""The garbage collector of a broker: it would look again and again at what stays.

What survives a collection of the oldest generation is not looked at by the next: to look at all
that a broker of 500 partitions holds takes 70 ms of everybody's time, and one long request, whose
objects are all in use, made it do so. Reference counts free it all the same. What is left there in
cycles is found when as much again has come.
"""

from __future__ import annotations

import gc
from typing import Any, Final

OLDEST: Final = 2
"""The generation of what has survived two collections."""
OLDEST_AFTER: Final = 100
"""The oldest generation is looked at after so many collections of the middle one, not after ten.
What is left in cycles waits longer."""
GROWTH: Final = 2
"""Everything is looked at when there is so many times as much of it as the last time."""


def pause_collection() -> None:
    """Collect nothing until `resume_collection`: a start makes next to no garbage."""
    gc.disable()


def resume_collection() -> None:
    """Collect again, but not what is there by now."""
    keeper = _Keeper()
    keeper.set_aside()
    keeper.note_whole()
    gc.callbacks.append(keeper.collecting)
    gc.set_threshold(*gc.get_threshold()[:2], OLDEST_AFTER)
    gc.enable()


class _Keeper:
    """Sets aside what survives, and has all of it looked at where it has grown."""

    def __init__(self) -> None:
        self._aside_at_whole = 0
        self._is_whole = False

    def set_aside(self) -> None:
        """No collection looks at what is there now."""
        gc.freeze()

    def note_whole(self) -> None:
        """All that is set aside was looked at, or is new."""
        self._aside_at_whole = gc.get_freeze_count()

    def collecting(self, phase: str, info: dict[str, Any]) -> None:
        """A collection begins or ends (see `gc.callbacks`)."""
        if info["generation"] < OLDEST:
            return
        if phase == "start":
            # What was in use when it was set aside may be gone: it is counted now.
            self._is_whole = gc.get_freeze_count() > GROWTH * self._aside_at_whole
            if self._is_whole:
                gc.unfreeze()
            return
        self.set_aside()
        if self._is_whole:
            self.note_whole()
