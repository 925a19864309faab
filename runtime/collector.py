"""The garbage collector while a broker starts: it would look again and again at what stays."""

from __future__ import annotations

import gc


def pause_collection() -> None:
    """Collect nothing until `resume_collection`: a start makes next to no garbage."""
    gc.disable()


def resume_collection() -> None:
    """Collect again; what is there by now counts as old, and so is not looked at for long.

    Frozen and unfrozen, objects are in the oldest generation without having been traversed.
    """
    gc.freeze()
    gc.unfreeze()
    gc.enable()
