"""The garbage collector of a broker: it would look again and again at what stays.

What survives a collection of the oldest generation, or one step of long work, is not looked at by
the next collection: to look at all that a broker of 500 partitions holds takes 70 ms of everybody's
time, and one long request, whose objects are all in use, made it do so. Reference counts free it
all the same. What is left there in cycles is found when as much again has come, and the broker has
nothing else to do.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Final

from .clock import processor_seconds

OLDEST: Final = 2
"""The generation of what has survived two collections."""
YOUNGEST_AFTER: Final = 700
MIDDLE_AFTER: Final = 10
"""As in Python 3.11; later ones look at more at a time."""
OLDEST_AFTER: Final = 2
"""The oldest generation is looked at after so many collections of the middle one: at some 25,000
objects, which takes up to 5 ms."""
GROWTH: Final = 2
"""Everything is looked at when there is so many times as much as the last time."""
LOOK_SECONDS: Final = 5.0
"""How often it is found out whether that is so."""
IDLE_SHARE: Final = 0.05
"""A broker that works for less of the time has nothing else to do."""
BUSY_GROWTH: Final = 4
BUSY_LOOKS_MAX: Final = 12
"""One that always has is held up nevertheless when it was found so often that there is so many
times as much. The others pay for that: everything is some 0.2 s where a hundred megabytes are held,
and serving leaves next to nothing in cycles."""

_keeper: _Keeper | None = None


def pause_collection() -> None:
    """Collect nothing until `resume_collection`: a start makes next to no garbage."""
    gc.disable()


def resume_collection() -> None:
    """Collect again, but not what is there by now."""
    global _keeper
    _keeper = _Keeper()
    gc.callbacks.append(_keeper.collecting)
    gc.set_threshold(YOUNGEST_AFTER, MIDDLE_AFTER, OLDEST_AFTER)
    gc.enable()


def set_aside() -> None:
    """No collection looks at what is there now: it is in use, and there is much of it.

    Only a broker's own process does so, after `resume_collection`: other programs look for cycles
    where they like.
    """
    if _keeper is not None:
        gc.freeze()


async def collect_when_idle() -> None:
    """Look at everything when it is due and nothing else is to be done, until cancelled."""
    import trio  # a start pauses collections first, and much of what it makes comes with trio

    worked = processor_seconds()
    while True:
        await trio.sleep(LOOK_SECONDS)
        before, worked = worked, processor_seconds()
        if _keeper is not None:
            _keeper.look(is_idle=worked - before < IDLE_SHARE * LOOK_SECONDS)


class _Keeper:
    """Sets aside what survives, and has all of it looked at where it has grown."""

    def __init__(self) -> None:
        self._due = 0
        self._note_whole()

    def _note_whole(self) -> None:
        """All that there is was looked at, or is new."""
        gc.freeze()
        # The oldest generation is looked at only when a quarter of what the last time left there
        # has come: that was everything, and is nothing now.
        gc.collect()
        self._blocks_at_whole = sys.getallocatedblocks()

    def collecting(self, phase: str, info: dict[str, Any]) -> None:
        """A collection begins or ends (see `gc.callbacks`)."""
        if phase == "stop" and info["generation"] == OLDEST:
            gc.freeze()

    def look(self, *, is_idle: bool) -> None:
        """Look at everything if there is so much more of it, and now is the time.

        It is memory that is compared: to count what is set aside takes as long as to look at it.
        """
        blocks = sys.getallocatedblocks()
        self._due = self._due + 1 if blocks > BUSY_GROWTH * self._blocks_at_whole else 0
        if blocks <= GROWTH * self._blocks_at_whole:
            return
        if is_idle or self._due >= BUSY_LOOKS_MAX:
            self._due = 0
            gc.unfreeze()
            gc.collect()
            self._note_whole()
