"""Settings by name: those that there are not are refused with the nearest."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ...common.nearest import did_you_mean
from .errors import fail


def require_known(names: Iterable[str], known: Collection[str], owner: str) -> None:
    """CommandError for the first setting that `owner` does not have, with the nearest it has."""
    for name in names:
        if name not in known:
            fail(f"{owner} has no setting {name!r}{did_you_mean(name, known)}")
