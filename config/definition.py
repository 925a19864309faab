"""What a setting is: its name, type, default, and the rule that its value must obey.

The tables (`broker_table`, `topic_table`) are made of these. They are read at every start,
so they are plain tuples, and the prose about each setting lives in `documentation`, which
only DescribeConfigs and the documentation generator load.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Protocol

from ..common.named_tuple import NamedTuple


class ConfigError(ValueError):
    """A setting that cannot be used; its text is one sentence a person can act on."""


SHOWN_CHARACTERS_MAX = 1000
"""An answer cannot hold an error text of more than 32,767 bytes."""


def shorten(text: str) -> str:
    """`text` as an error's sentence repeats it; a client may have sent any length."""
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}..."


def invalid_value(name: str, value: object, reason: str) -> str:
    """What is said of a value that a setting cannot have (Kafka's `ConfigException`)."""
    return f"Invalid value {shorten(str(value))} for configuration {name}: {reason}"


class ConfigValues(Protocol):
    """Typed values by the name of their setting, as a `BrokerConfig` has them."""

    def __getitem__(self, name: str, /) -> Any:
        """The value in force."""


class ConfigType(IntEnum):
    """The type of a setting's value, by its number in DescribeConfigs (ConfigEntry.ConfigType)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigResourceType(IntEnum):
    """What settings are of, by its number on the wire (ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from, by its number in DescribeConfigs (ConfigEntry.ConfigSource)."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Importance(IntEnum):
    """How likely it is that somebody has to touch a setting; orders the documentation."""

    HIGH = 0
    MEDIUM = 1
    LOW = 2


class Range:
    """A number between `low` and `high`, both included; no upper bound when that is None."""

    __slots__ = ("high", "low")

    def __init__(self, low: float, high: float | None = None) -> None:
        self.low = low
        self.high = high

    def accepts(self, value: float) -> bool:
        """Whether `value` lies within the range."""
        return bool(self.low <= value and (self.high is None or value <= self.high))

    @property
    def rule(self) -> str:
        """The range in words."""
        if self.high is None:
            return f"at least {self.low}"
        return f"between {self.low} and {self.high}"

    def why_not(self, name: str, value: float) -> str:
        """What is wrong with a value of a setting, in the words of Kafka's `ConfigDef`."""
        if value < self.low:
            return invalid_value(name, value, f"Value must be at least {self.low}")
        return invalid_value(name, value, f"Value must be no more than {self.high}")


class RangeOr:
    """A number in a range, or one value outside it with a meaning of its own."""

    __slots__ = ("high", "low", "special")

    def __init__(self, special: int, low: int, high: int) -> None:
        self.special = special
        self.low = low
        self.high = high

    def accepts(self, value: float) -> bool:
        """Whether `value` is the special one or lies within the range."""
        return bool(value == self.special or self.low <= value <= self.high)

    @property
    def rule(self) -> str:
        """The range and its exception in words."""
        return f"{self.special}, or between {self.low} and {self.high}"

    def why_not(self, name: str, value: float) -> str:
        """What is wrong with a value of a setting, in the words of Kafka's `ConfigDef`."""
        reason = f"Value must be between {self.low} and {self.high} or equal to {self.special}"
        return invalid_value(name, value, reason)


class OneOf:
    """A text out of a fixed set; `any_case` accepts other spellings of upper and lower case."""

    __slots__ = ("any_case", "values")

    def __init__(self, values: tuple[str, ...], *, any_case: bool = False) -> None:
        self.values = values
        self.any_case = any_case

    def accepts(self, value: str) -> bool:
        """Whether the text is one of the values."""
        if self.any_case:
            return value.lower() in [known.lower() for known in self.values]
        return value in self.values

    @property
    def rule(self) -> str:
        """The values in words."""
        return "one of " + ", ".join(self.values)

    def why_not(self, name: str, value: str) -> str:
        """What is wrong with a value of a setting, in the words of Kafka's `ConfigDef`."""
        case = " (case insensitive)" if self.any_case else ""
        reason = f"String must be one of{case}: {', '.join(self.values)}"
        return invalid_value(name, value, reason)


class SomeOf:
    """A list whose items come from a fixed set."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[str, ...]) -> None:
        self.values = values

    def accepts(self, value: Sequence[str]) -> bool:
        """Whether every item of the list is one of the values."""
        return all(item in self.values for item in value)

    @property
    def rule(self) -> str:
        """The values in words."""
        return "a list of " + ", ".join(self.values)

    def why_not(self, name: str, value: Sequence[str]) -> str:
        """What is wrong with a value of a setting, in the words of Kafka's `ConfigDef`."""
        unknown = next(item for item in value if item not in self.values)
        return invalid_value(name, unknown, f"String must be one of: {', '.join(self.values)}")


class NonEmpty:
    """A text or a list that holds something."""

    __slots__ = ()
    rule = "not empty"

    def accepts(self, value: object) -> bool:
        """Whether there is anything in `value`."""
        return bool(value)

    def why_not(self, name: str, value: object) -> str:
        """What is wrong with a value of a setting, in the words of Kafka's `ConfigDef`."""
        if isinstance(value, tuple):
            valid = "any non-empty value"
            return f"Configuration '{name}' must not be empty. Valid values include: {valid}"
        return invalid_value(name, value, "String must be non-empty")


class ThrottledReplicas:
    """Replicas whose traffic is throttled: `*`, or a list of `partition:broker`."""

    __slots__ = ()
    rule = "* or a list of partition:broker"

    def accepts(self, value: tuple[str, ...]) -> bool:
        """Whether `value` is the wildcard alone or consists of pairs of numbers."""
        return value == ("*",) or all(self._is_pair(item) for item in value)

    def why_not(self, name: str, value: tuple[str, ...]) -> str:
        """What is wrong with a value of a setting, in the words of Kafka's `ConfigDef`."""
        reason = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        return invalid_value(name, f"[{', '.join(value)}]", reason)

    @staticmethod
    def _is_pair(item: str) -> bool:
        partition, colon, broker = item.partition(":")
        return bool(colon) and _is_digits(partition) and _is_digits(broker)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


class OffsetReset:
    """Where a share group begins: an end of the log, or how long ago (KIP-932, KIP-1106)."""

    __slots__ = ()
    rule = "earliest, latest, or by_duration: and an ISO 8601 duration such as PT1H"

    def accepts(self, value: str) -> bool:
        """Whether `value` is an end of the log or a duration that is not negative."""
        if value in ("earliest", "latest"):
            return True
        prefix, _, duration = value.partition(":")
        if prefix != "by_duration":
            return False
        try:
            duration_ms(duration)
        except ValueError:
            return False
        return True

    def why_not(self, name: str, value: str) -> str:
        """What is wrong with a value of a setting, in the words of Kafka's `ConfigDef`."""
        reason = (
            f"Invalid value `{shorten(value)}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        return invalid_value(name, value, reason)


def duration_ms(text: str) -> int:
    """How long a duration as Java's `Duration.parse` takes it is, in whole milliseconds.

    Raises:
        ValueError: it is no duration, or a negative one.
    """
    import re  # only where a share group's setting is looked at

    sign, signs = "([-+]?)", "([-+]?[0-9]{1,18})"
    found = re.fullmatch(
        rf"{sign}P(?:{signs}D)?(T(?:{signs}H)?(?:{signs}M)?(?:{signs}(?:[.,]([0-9]{{0,9}}))?S)?)?",
        text,
        re.IGNORECASE | re.ASCII,
    )
    units = [] if found is None else [found[group] for group in (2, 4, 5, 6)]
    if found is None or found[3] in ("T", "t") or all(unit is None for unit in units):
        raise ValueError(f"{shorten(text)} is no duration: write it like PT1H30M")
    days, hours, minutes, seconds = (int(unit or 0) for unit in units)
    fraction = int((found[7] or "0").ljust(9, "0"))
    if (found[6] or "").startswith("-"):
        fraction = -fraction
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    nanoseconds = total * 1_000_000_000 + fraction
    if found[1] == "-":
        nanoseconds = -nanoseconds
    if nanoseconds < 0:
        raise ValueError(f"{shorten(text)} is a negative duration")
    return nanoseconds // 1_000_000


Check = Range | RangeOr | OneOf | SomeOf | NonEmpty | ThrottledReplicas | OffsetReset


class Definition(NamedTuple):
    """One setting.

    `default` has the setting's Python type: bool, int, float, str, or a tuple of str for a
    list; None where Kafka has none. `check` is applied to a value that is not None.
    `dynamic` says whether Kafka lets it change while a broker runs; `internal` ones are
    accepted but not described unless set.
    """

    name: str
    type: ConfigType
    default: bool | int | float | str | tuple[str, ...] | None
    importance: Importance
    check: Check | None = None
    dynamic: bool = False
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        """Whether the value is a secret, which no answer and no log line may show."""
        return self.type is ConfigType.PASSWORD
