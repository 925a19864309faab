"""Reading a `server.properties` file: the syntax of Java's `Properties.load`.

A line is `key=value`, `key:value` or `key value`; `#` and `!` begin a comment; a backslash at
the end of a line continues it on the next, whose leading white space is dropped; `\\t`, `\\n`,
`\\r`, `\\f` and `\\uXXXX` are escapes and any other escaped character is itself. Bytes are read as
UTF-8 and, where they are not that, as Java reads them: ISO 8859-1.

Whoever starts a broker reads the file; this module gets its content.
"""

from __future__ import annotations

from collections.abc import Iterator

from .definition import ConfigError

_SPACE = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Properties(dict[str, str]):
    """The settings of one file, each with the line it stands on.

    Args:
        source: the file's name as the user gave it, for error texts.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.lines: dict[str, int] = {}

    def place(self, key: str) -> str:
        """Where `key` is set, such as `server.properties, line 3`."""
        return f"{self.source}, line {self.lines[key]}"


def parse_properties(content: bytes | str, source: str = "server.properties") -> Properties:
    """Read the content of a properties file; of a key that stands twice, the last one counts.

    Raises:
        ConfigError: a `\\u` escape that is not followed by four hexadecimal digits.
    """
    properties = Properties(source)
    for number, line in _logical_lines(_decode(content)):
        try:
            key, value = _split(line)
        except ValueError:
            raise ConfigError(
                f"{source}, line {number}: \\u must be followed by four hexadecimal digits; write "
                f"\\\\ for a backslash."
            ) from None
        properties[key] = value
        properties.lines[key] = number
    return properties


def _decode(content: bytes | str) -> str:
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line that says something, continuations joined, with the number of its first line."""
    gathered: list[str] = []
    first = 0
    for number, natural in enumerate(
        text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1
    ):
        line = natural.lstrip(_SPACE)
        if not gathered:
            if not line or line[0] in "#!":
                continue
            first = number
        if _ends_in_escape(line):
            gathered.append(line[:-1])
            continue
        yield first, "".join(gathered) + line
        gathered = []
    if gathered:
        yield first, "".join(gathered)


def _ends_in_escape(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _SPACE:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_SPACE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_SPACE)
    return _unescape(line[:end]), _unescape(rest)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    characters: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            escaped = text[position]
            position += 1
            if escaped == "u":
                characters.append(_unicode(text[position : position + 4]))
                position += 4
                continue
            character = _ESCAPES.get(escaped, escaped)
        elif character == "\\":
            break  # a backslash that escapes nothing: Java drops it
        characters.append(character)
    return "".join(characters)


def _unicode(digits: str) -> str:
    if len(digits) != 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
        raise ValueError(digits)
    return chr(int(digits, 16))
