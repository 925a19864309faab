"""Times as people write them on a command line."""

from __future__ import annotations

from datetime import UTC, datetime

from .errors import fail


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


def format_time(timestamp_ms: int) -> str:
    """A record's timestamp in ISO 8601, UTC; the bare number where no calendar has it."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
