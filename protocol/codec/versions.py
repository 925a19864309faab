"""Ranges of versions, in the notation that Kafka's own definitions use."""

from __future__ import annotations

VERSION_MAX = 0x7FFF
"""The largest version a request header can name."""

NO_VERSIONS = range(0)
ALL_VERSIONS = range(VERSION_MAX + 1)


def parse_versions(text: str) -> range:
    """The range that "3", "3-13", "3+" or "none" stands for.

    Raises:
        ValueError: the text is none of these.
    """
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return range(int(text[:-1]), VERSION_MAX + 1)
    first, dash, last = text.partition("-")
    return range(int(first), int(last if dash else first) + 1)


def format_versions(versions: range) -> str:
    """The text for a range; `parse_versions` gives the range back."""
    if not versions:
        return "none"
    if versions.stop > VERSION_MAX:
        return f"{versions.start}+"
    if len(versions) == 1:
        return str(versions.start)
    return f"{versions.start}-{versions.stop - 1}"
