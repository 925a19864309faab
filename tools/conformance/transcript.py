"""What was said between a scenario and one broker, in its order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...common.errors import ErrorCode
from ...protocol.api_keys import ApiKey
from ...protocol.codec.message import Message
from ...protocol.codec.types import Array, Struct, StructType

CLOSED = "the connection was closed"
SILENT = "no answer was sent"


class Exchange(NamedTuple):
    """A request and what came of it.

    Attributes:
        api_key: of the request.
        version: of the request.
        answer: the response; or a text where there is none (`CLOSED`, `SILENT`, what was wrong
            with it).
    """

    api_key: ApiKey
    version: int
    answer: Message | str


class Transcript:
    """The exchanges of one scenario with one broker.

    Attributes:
        exchanges: in the order of the scenario.
        failure: why the scenario ended early; None: it did not.
        seconds: how long it took.
    """

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self.failure: str | None = None
        self.seconds = 0.0

    def note(self, api_key: int, version: int, answer: Message | str) -> None:
        """Add an exchange."""
        self.exchanges.append(Exchange(ApiKey(api_key), version, answer))


def errors_of(message: Struct) -> Iterator[ErrorCode]:
    """Every error code in a message, NONE left out."""
    yield from _errors(type(message), message)


def _errors(struct: StructType, value: Struct) -> Iterator[ErrorCode]:
    for field in struct.fields:
        held = getattr(value, field.name)
        element = field.type.element if isinstance(field.type, Array) else field.type
        if field.name.endswith("error_code"):
            if held != ErrorCode.NONE:
                yield ErrorCode(held)
        elif isinstance(element, StructType) and held is not None:
            for each in held if isinstance(field.type, Array) else [held]:
                yield from _errors(element, each)
