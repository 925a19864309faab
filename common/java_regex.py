"""Replacements of regular expressions as Java writes them: `$1` and `\\x`."""

from __future__ import annotations

import re

_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)


def expand(replacement: str, found: re.Match[str]) -> str:
    """What stands for a match; `$9` stays if there are fewer groups.

    Args:
        replacement: as Java's Matcher.replaceAll takes it.
        found: the match.
    """
    return _REFERENCE.sub(lambda reference: _referred(found, reference), replacement)


def _referred(found: re.Match[str], reference: re.Match[str]) -> str:
    literal, digits = reference.groups()
    if literal is not None:
        return str(literal)
    groups = found.re.groups
    length = len(digits)
    while length and int(digits[:length]) > groups:
        length -= 1
    if not length:
        return reference[0]
    return (found[int(digits[:length])] or "") + digits[length:]
