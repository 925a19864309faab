"""Text to typed value and back, by the rules of Kafka's `ConfigDef`.

Nothing is guessed: a text that is not of the setting's type raises `ConfigError`.
"""

from __future__ import annotations

from typing import Any

from .definition import ConfigError, ConfigType, Definition, invalid_value

_INTEGER_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
INTEGER_DIGITS_MAX = 40
"""More digits are not looked at; 19 are enough for 64 bits, the rest could be zeros in front."""

HIDDEN = "[hidden]"
"""What stands for a secret in anything that is shown."""


class Password(str):
    """A secret: shows as `[hidden]` wherever it is printed by mistake."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, _specification: str) -> str:
        return HIDDEN

    @property
    def secret(self) -> str:
        """The secret itself, as a plain text."""
        return str.__getitem__(self, slice(None))


def parse_value(definition: Definition, text: str, where: str = "") -> Any:
    """Turn `text` into the value of the setting.

    Args:
        definition: the setting.
        text: as written in a file, on the command line or in a request.
        where: where that was, for the error's text, such as `server.properties, line 3`.

    Raises:
        ConfigError: not of the setting's type, or against its rule.
    """
    try:
        value = _parse(definition.type, text)
    except ValueError:
        raise _error(definition, text, where) from None
    if definition.type is ConfigType.LIST:
        if "" in value:
            reason = f"Configuration '{definition.name}' values must not be empty."
            raise ConfigError(_placed(reason, where))
        value = tuple(dict.fromkeys(value))  # Kafka drops what stands twice
    check = definition.check
    if check is not None and not check.accepts(value):
        raise ConfigError(_placed(check.why_not(definition.name, value), where))
    return value


def _parse(config_type: ConfigType, text: str) -> Any:
    trimmed = text.strip()
    if config_type in _INTEGER_BITS:
        return _parse_integer(trimmed, _INTEGER_BITS[config_type])
    if config_type is ConfigType.BOOLEAN:
        return _parse_boolean(trimmed)
    if config_type is ConfigType.DOUBLE:
        return _parse_double(trimmed)
    if config_type is ConfigType.LIST:
        return tuple(item.strip() for item in trimmed.split(",")) if trimmed else ()
    if config_type is ConfigType.PASSWORD:
        return Password(trimmed)
    return trimmed


def _parse_integer(text: str, bits: int) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isdecimal() or len(digits) > INTEGER_DIGITS_MAX:
        raise ValueError
    number = int(text)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError
    return number


def _parse_double(text: str) -> float:
    """A number as Java writes them, which may end in `d` or `f`; "not a number" is none."""
    number = float(text[:-1] if text[-1:] in tuple("dDfF") else text)
    if "_" in text or number != number:
        raise ValueError
    return number


def _parse_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError
    return lowered == "true"


def _error(definition: Definition, text: str, where: str) -> ConfigError:
    """A text that is not of the setting's type."""
    reason = f"Not a number of type {definition.type.name}"
    if definition.type is ConfigType.BOOLEAN:
        reason = "Expected value to be either true or false"
    return ConfigError(_placed(invalid_value(definition.name, text, reason), where))


def _placed(problem: str, where: str) -> str:
    return f"{where}: {problem}" if where else problem


def format_value(config_type: ConfigType, value: Any) -> str | None:
    """The text of a typed value as Kafka writes it (`ConfigDef.convertToString`)."""
    if value is None:
        return None
    if config_type is ConfigType.BOOLEAN:
        return "true" if value else "false"
    if config_type is ConfigType.LIST:
        return ",".join(value)
    if config_type is ConfigType.DOUBLE:
        return _java_double(float(value))
    if config_type is ConfigType.PASSWORD:
        return HIDDEN
    return str(value)


def _java_double(value: float) -> str:
    """`value` as Java's `Double.toString` writes it: `0.5`, `1.0E-5`, `1.7976931348623157E308`."""
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # only where settings are described

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{fraction}E{len(digits) - 1 + int(exponent)}"
