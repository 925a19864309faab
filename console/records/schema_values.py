"""Values in the wire format of schema registries, as JSON: Avro, Protobuf and JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import trio

from ...schemas.errors import RegistryError, SchemaError, ValueDecodingError
from .payload import SHOWN_BYTES_MAX, WIRE_FORMAT_BYTES

if TYPE_CHECKING:
    from ...schemas.values import JsonDecoder

TEXT_MAX: Final = 4 * SHOWN_BYTES_MAX


class SchemaValues:
    """Asks a registry, in threads, for what it does not know yet.

    Args:
        url: of the registry.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._decoder: JsonDecoder | None = None

    async def texts(self, payloads: Sequence[bytes | None]) -> list[str | None]:
        """The JSON of each value; None for what is none of the registry's, or is too large."""
        return await trio.to_thread.run_sync(self._texts, payloads)

    def _texts(self, payloads: Sequence[bytes | None]) -> list[str | None]:
        found: list[str | None] = []
        for payload in payloads:
            try:
                found.append(self._text(payload))
            except RegistryError:
                # It does not answer: each further value would wait for it as long.
                return found + [None] * (len(payloads) - len(found))
            except (SchemaError, ValueDecodingError, RecursionError):
                found.append(None)
        return found

    def _text(self, payload: bytes | None) -> str | None:
        if payload is None or not WIRE_FORMAT_BYTES < len(payload) <= SHOWN_BYTES_MAX:
            return None
        if payload[0] != 0:
            return None
        if self._decoder is None:
            from ...schemas.registry import SchemaRegistry
            from ...schemas.values import JsonDecoder

            self._decoder = JsonDecoder(SchemaRegistry(self._url))
        text = self._decoder.decode(payload)
        return text if len(text) <= TEXT_MAX else None
