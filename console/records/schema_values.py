"""Values with schemas, as JSON: Avro, Protobuf and JSON Schema, by a file or by a registry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from ...schemas.errors import RegistryError, SchemaError, ValueDecodingError
from .payload import SHOWN_BYTES_MAX, WIRE_FORMAT_BYTES

if TYPE_CHECKING:
    from ...schemas.values import JsonDecoder

TEXT_MAX: Final = 4 * SHOWN_BYTES_MAX


class TopicSchema(NamedTuple):
    """The schema that all values of a topic have, without a header in front of them.

    Attributes:
        topic: its name.
        file: the name of the schema's file.
        decoder: reads values.
    """

    topic: str
    file: str
    decoder: JsonDecoder


def topic_schema(text: str) -> TopicSchema:
    """A topic and the file with its schema, of a text TOPIC=FILE, or TOPIC=FILE:MESSAGE.

    Raises:
        SchemaError: it is no such text, or the file holds no schema that can be read by.
    """
    from ...schemas.schema import schema_of_file
    from ...schemas.values import JsonDecoder

    topic, equals, file = text.partition("=")
    if not (topic and equals and file):
        raise SchemaError(f"{text!r} should be TOPIC=FILE, as in orders=orders.avsc")
    message = None
    if ".proto:" in file:
        file, _, message = file.rpartition(":")
    decoder = JsonDecoder(None, schema_of_file(file), message)
    return TopicSchema(topic, PurePath(file).name, decoder)


class SchemaValues:
    """Reads values in threads; what a registry knows is asked of it when it is needed first.

    Args:
        files: of topics whose values have no header.
        registry: the URL of the one that knows the other topics' schemas, if there is one.
    """

    def __init__(self, files: Iterable[TopicSchema] = (), registry: str | None = None) -> None:
        self._files = {each.topic: each for each in files}
        self._registry = registry
        self._decoder: JsonDecoder | None = None

    async def texts(self, topic: str, payloads: Sequence[bytes | None]) -> list[str | None]:
        """The JSON of each value; None for what is none of the schema, or is too large."""
        if topic not in self._files and self._registry is None:
            return [None] * len(payloads)
        return await trio.to_thread.run_sync(self._texts, topic, payloads)

    def remark(self, topic: str, payload: bytes) -> str:
        """By which schema a value of a topic was read."""
        if topic in self._files:
            return f"By the schema in {self._files[topic].file}."
        number = int.from_bytes(payload[1:WIRE_FORMAT_BYTES], "big")
        return f"By schema {number:,} of the registry."

    def _texts(self, topic: str, payloads: Sequence[bytes | None]) -> list[str | None]:
        found: list[str | None] = []
        for payload in payloads:
            try:
                found.append(self._text(topic, payload))
            except RegistryError:
                # It does not answer: each further value would wait for it as long.
                return found + [None] * (len(payloads) - len(found))
            except (SchemaError, ValueDecodingError, RecursionError):
                found.append(None)
        return found

    def _text(self, topic: str, payload: bytes | None) -> str | None:
        if payload is None or len(payload) > SHOWN_BYTES_MAX:
            return None
        if topic in self._files:
            text = self._files[topic].decoder.decode(payload)
        elif payload[:1] == b"\0" and len(payload) > WIRE_FORMAT_BYTES:
            text = self._registry_decoder().decode(payload)
        else:
            return None
        return text if len(text) <= TEXT_MAX else None

    def _registry_decoder(self) -> JsonDecoder:
        if self._decoder is None:
            from ...schemas.registry import SchemaRegistry
            from ...schemas.values import JsonDecoder

            assert self._registry is not None  # or there would be nothing to read by
            self._decoder = JsonDecoder(SchemaRegistry(self._registry))
        return self._decoder
