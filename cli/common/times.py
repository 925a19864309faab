"""Times as people write them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from .errors import fail

DURATION = re.compile(
    r"P(?!$)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)
"""An ISO 8601 duration of days, hours, minutes and seconds, as java.time.Duration has it."""

SHORT_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")
SHORT_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_time_ms(text: str) -> int:
    """Milliseconds since the epoch for an ISO 8601 time, or for such a number itself.

    A time without a zone is UTC. Raises CommandError for anything else.
    """
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        fail(
            f"{text!r} is no time; write one such as 2013-06-01T12:00:00Z, or milliseconds"
            " since 1970"
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_duration_ms(text: str) -> int:
    """Milliseconds for a duration such as PT1H30M, P7D, 90s or 15m.

    Raises CommandError for anything else.
    """
    short = SHORT_DURATION.fullmatch(text)
    if short:
        return int(short[1]) * SHORT_UNITS_MS[short[2]]
    found = DURATION.fullmatch(text)
    if not found:
        fail(f"{text!r} is no duration; write one such as PT1H30M, P7D, 90s or 15m")
    days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
    seconds = float(found[4] or 0)
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def format_duration(milliseconds: int) -> str:
    """A duration for people: its two largest units, such as "2 h 5 min"."""
    if milliseconds < 1000:
        return f"{max(milliseconds, 0)} ms"
    left, parts = milliseconds // 1000, []
    for name, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def format_time(timestamp_ms: int) -> str:
    """A record's timestamp in ISO 8601, UTC; the bare number where no calendar has it."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
