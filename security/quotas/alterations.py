"""What AlterClientQuotas may change, and what DescribeClientQuotas may look for (KIP-546).

Rules and error messages are those of Kafka's ClientQuotaControlManager and ClientQuotasImage.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from ...common.errors import ErrorCode, KafkaError
from .entity import CLIENT_ID, ENTITY_TYPES, IP, USER, ClientQuotaEntity

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
FRACTION_MAX: Final = 1e-6


class QuotaKey(NamedTuple):
    """What values a quota may have.

    Attributes:
        type_name: as Kafka's errors call it.
        value_max: the largest that the type holds; None: a floating-point number.
    """

    type_name: str
    value_max: int | None


_LONG: Final = QuotaKey("a LONG", LONG_MAX)
_INT: Final = QuotaKey("an INT", INT_MAX)
_DOUBLE: Final = QuotaKey("a DOUBLE", None)

USER_AND_CLIENT_KEYS: Final[Mapping[str, QuotaKey]] = {
    PRODUCER_BYTE_RATE: _LONG,
    CONSUMER_BYTE_RATE: _LONG,
    REQUEST_PERCENTAGE: _DOUBLE,
    CONTROLLER_MUTATION_RATE: _DOUBLE,
}
IP_KEYS: Final[Mapping[str, QuotaKey]] = {CONNECTION_CREATION_RATE: _INT}
QUOTA_KEYS: Final[Mapping[str, QuotaKey]] = {**USER_AND_CLIENT_KEYS, **IP_KEYS}


class QuotaAlteration(NamedTuple):
    """One entity's quotas to be set, or, where there is no value, removed."""

    entity: ClientQuotaEntity
    values: Mapping[str, float | None]

    def check(self, is_known_host: Callable[[str], bool]) -> None:
        """Whether it may be done.

        Args:
            is_known_host: whether an address, or a host's name, stands for one.

        Raises:
            KafkaError: INVALID_REQUEST, with Kafka's message.
        """
        keys = _keys_of(self.entity, is_known_host)
        for key, value in self.values.items():
            if value is not None:
                _check_value(keys, key, value)

    def apply(self, present: Mapping[str, str]) -> dict[str, str]:
        """An entity's settings in the store with this one done."""
        settings = dict(present)
        for key, value in self.values.items():
            if value is None:
                settings.pop(key, None)
            else:
                is_float = QUOTA_KEYS[key].value_max is None
                settings[key] = repr(float(value)) if is_float else str(round(value))
        return settings


def _keys_of(
    entity: ClientQuotaEntity, is_known_host: Callable[[str], bool]
) -> Mapping[str, QuotaKey]:
    names = entity.names
    if not names:
        raise _invalid("Invalid empty client quota entity")
    for entity_type, name in entity.entries:
        if entity_type not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise _invalid(f"Empty {entity_type} not supported")
    if IP not in names:
        return USER_AND_CLIENT_KEYS
    if len(names) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    host = names[IP]
    if host is not None and not is_known_host(host):
        raise _invalid(f"{host} is not a valid IP or resolvable host.")
    return IP_KEYS


def _check_value(keys: Mapping[str, QuotaKey], key: str, value: float) -> None:
    definition = keys.get(key)
    if definition is None:
        raise _invalid(f"Invalid configuration key {key}")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if definition.value_max is None:
        if not math.isfinite(value):  # Kafka takes these, and then no quota applies at all
            raise _invalid(f"Quota {key} must be a finite number")
        return
    if value > definition.value_max:
        raise _invalid(f"Proposed value for {key} is too large for {definition.type_name}.")
    if not value % 1.0 <= FRACTION_MAX:  # nor is it a number at all
        raise _invalid(f"{key} cannot be a fractional value.")


def quotas_of(settings: Mapping[str, str]) -> dict[str, float]:
    """The quotas among an entity's settings in the store; what is no number is left out."""
    found = {}
    for key in QUOTA_KEYS.keys() & settings.keys():
        try:
            found[key] = float(settings[key])
        except ValueError:
            continue
    return found


def is_known_host(host: str) -> bool:
    """Whether a text is an address, or a name that can be looked up; that may take long."""
    try:
        socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return True


# --- Describing ---------------------------------------------------------------------------------


class MatchType(IntEnum):
    """How a filter's component compares names (DescribeClientQuotasRequest)."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class ClientQuotaFilter:
    """Which entities are described.

    Args:
        components: entity type, match type and name of each.
        strict: whether entities of further types are left out.

    Raises:
        KafkaError: it contradicts itself, with Kafka's message.
    """

    def __init__(self, components: Iterable[tuple[str, int, str | None]], *, strict: bool) -> None:
        self._strict = strict
        self._exact: dict[str, str | None] = {}
        self._specified: set[str] = set()
        for entity_type, match_type, name in components:
            self._add(entity_type, match_type, name)
        types = self._exact.keys() | self._specified
        if IP in types and types & {USER, CLIENT_ID}:
            raise _invalid(
                "Invalid entity filter component combination. IP filter component should not be "
                "used with user or clientId filter component."
            )

    def _add(self, entity_type: str, match_type: int, name: str | None) -> None:
        if not entity_type:
            raise _invalid("Invalid empty entity type.")
        if entity_type in self._exact or entity_type in self._specified:
            raise _invalid(f"Entity type {entity_type} cannot appear more than once in the filter.")
        if entity_type not in ENTITY_TYPES:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {entity_type}"
            )
        if match_type == MatchType.EXACT:
            if name is None:
                raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            self._exact[entity_type] = name
            return
        try:
            known = MatchType(match_type)
        except ValueError:
            raise _invalid(f"Unknown match type {match_type}") from None
        if name is not None:
            raise _invalid(
                f"Request specified MATCH_TYPE_{known.name}, but also specified a match string."
            )
        if known is MatchType.DEFAULT:
            self._exact[entity_type] = None
        else:
            self._specified.add(entity_type)

    def matches(self, entity: ClientQuotaEntity) -> bool:
        """Whether an entity is among those."""
        names = entity.names
        if self._strict and len(names) != len(self._exact) + len(self._specified):
            return False
        return (
            all(kind in names and names[kind] == name for kind, name in self._exact.items())
            and self._specified <= names.keys()
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
