"""What somebody probably meant who wrote a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The end of an error: "; did you mean retention.ms?", or nothing if none is near.

    Of a handful of short names a lower cutoff, from 0 to 1, finds more than it misleads.
    """
    from difflib import get_close_matches  # only needed where somebody mistyped

    nearest = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {nearest[0]}?" if nearest else ""
