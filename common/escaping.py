"""Text from others, made safe for a log and for a terminal.

Client ids, software names, names of groups and the texts of errors come from whoever connects. A
line feed in one of them forges a line of the log; ESC and its 8-bit forms steer the terminal that
shows it; bidirectional and other format characters make a line read as something that it is not.
"""

from __future__ import annotations

import json

SHOWN_CHARACTERS_MAX = 2_000
SHOWN_AT_END = 500


def shown(text: str) -> str:
    """The text as a line of the log has it: escaped, and without its middle where it is long.

    A name of a client's may have 32 KB; what is said of it may come before or behind it.
    """
    left_out = len(text) - SHOWN_CHARACTERS_MAX
    if left_out > 0:
        begin, end = text[: SHOWN_CHARACTERS_MAX - SHOWN_AT_END], text[-SHOWN_AT_END:]
        text = f"{begin}... ({left_out} characters left out) ...{end}"
    return escaped(text)


def escaped(text: str) -> str:
    r"""The text with what is not printable as Python writes it, such as `\n` and `\x1b`.

    Not printable are control, format, private and unassigned characters, lone surrogates, and all
    separators but the space (`str.isprintable`).
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def escaped_json(text: str) -> str:
    r"""A line of JSON that means the same, with what is not printable as `\uXXXX`."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
