"""What a request says in its query or its form: bounded, and of the type that is needed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

TextT = TypeVar("TextT", bound=str)

TEXT_MAX = 2_000
NUMBER_MAX = (1 << 63) - 1


class ParameterError(Exception):
    """A parameter is not what it should be; the text says what would be right."""


class Parameters:
    """The parameters of a request by name; of those that are repeated the last.

    Args:
        values: as they were sent, decoded.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str, default: str = "", length_max: int = TEXT_MAX) -> str:
        """A text. Raises ParameterError where it is too long."""
        value = self._values.get(name, default)
        if len(value) > length_max:
            raise ParameterError(f"{name} has more than {length_max:,} characters")
        return value

    def required(self, name: str, length_max: int = TEXT_MAX) -> str:
        """A text that must be there. Raises ParameterError."""
        value = self.text(name, "", length_max)
        if not value:
            raise ParameterError(f"{name} is missing")
        return value

    def number(self, name: str, default: int, least: int = 0, most: int = NUMBER_MAX) -> int:
        """A whole number; the default where it is empty. Raises ParameterError."""
        found = self.optional_number(name, least, most)
        return default if found is None else found

    def optional_number(self, name: str, least: int = 0, most: int = NUMBER_MAX) -> int | None:
        """A whole number, or None where it is empty. Raises ParameterError."""
        text = self._values.get(name, "").strip()
        if not text:
            return None
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            raise ParameterError(f"{name} is a whole number, not {text[:40]!r}")
        value = int(text)
        if not least <= value <= most:
            raise ParameterError(f"{name} is between {least:,} and {most:,}, not {value:,}")
        return value

    def choice(self, name: str, choices: tuple[TextT, ...]) -> TextT:
        """One of several words; the first where it is empty. Raises ParameterError."""
        value = self._values.get(name, "")
        if not value:
            return choices[0]
        for each in choices:
            if each == value:
                return each
        raise ParameterError(f"{name} is one of {', '.join(choices)}, not {value[:40]!r}")

    def flag(self, name: str) -> bool:
        """Whether a box is ticked."""
        return self._values.get(name, "") in ("on", "1", "true", "yes")


def parse_time_ms(text: str) -> int:
    """Milliseconds since the epoch of a time as people write it; without a zone it is UTC.

    Raises:
        ParameterError: it is no time.
    """
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ParameterError(
            "a time is written as 2026-06-01T12:00:00Z, or in milliseconds since 1970"
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(round(moment.timestamp() * 1000), 0)
