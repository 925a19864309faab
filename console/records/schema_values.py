"""Values with schemas, as JSON: Avro, Protobuf and JSON Schema, by a file or by a registry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from ...schemas.errors import RegistryError, SchemaError, ValueDecodingError
from .payload import SHOWN_BYTES_MAX, WIRE_FORMAT_BYTES

if TYPE_CHECKING:
    from ...schemas.registry import SchemaRegistry
    from ...schemas.values import JsonDecoder, JsonEncoder

TEXT_MAX: Final = 4 * SHOWN_BYTES_MAX


class TopicSchema(NamedTuple):
    """The schema that all values of a topic have, without a header in front of them.

    Attributes:
        topic: its name.
        file: the name of the schema's file.
        decoder: reads values.
        encoder: writes values.
    """

    topic: str
    file: str
    decoder: JsonDecoder
    encoder: JsonEncoder


def topic_schema(text: str) -> TopicSchema:
    """A topic and the file with its schema, of a text TOPIC=FILE, or TOPIC=FILE:MESSAGE.

    Raises:
        SchemaError: it is no such text, or the file holds no schema that can be read by.
    """
    from ...schemas.schema import schema_of_file
    from ...schemas.values import JsonDecoder, JsonEncoder

    topic, equals, file = text.partition("=")
    if not (topic and equals and file):
        raise SchemaError(f"{text!r} should be TOPIC=FILE, as in orders=orders.avsc")
    message = None
    if ".proto:" in file:
        file, _, message = file.rpartition(":")
    schema = schema_of_file(file)
    return TopicSchema(
        topic,
        PurePath(file).name,
        JsonDecoder(None, schema, message),
        JsonEncoder(schema, message=message),
    )


class SchemaValues:
    """Reads and writes values in threads; a registry is asked when something is needed first.

    Args:
        files: of topics whose values have no header.
        registry: the URL of the one that knows the other topics' schemas, if there is one.
    """

    def __init__(self, files: Iterable[TopicSchema] = (), registry: str | None = None) -> None:
        self._files = {each.topic: each for each in files}
        self._registry = registry
        self._decoder: JsonDecoder | None = None
        self._client: SchemaRegistry | None = None

    def knows(self, topic: str) -> bool:
        """Whether there may be a schema of a topic's values."""
        return topic in self._files or self._registry is not None

    def source(self, topic: str) -> str | None:
        """What says how a topic's values are written, for a form; None where nothing does."""
        if topic in self._files:
            return f"the schema in {self._files[topic].file}"
        return None if self._registry is None else f"the registry's schema of {_subject(topic)}"

    async def texts(
        self, topic: str, payloads: Sequence[bytes | None], *, must_answer: bool = False
    ) -> list[str | None]:
        """The JSON of each value; None for what is none of the schema, or is too large.

        Args:
            topic: theirs.
            payloads: the values.
            must_answer: whether a registry that does not answer is an error.

        Raises:
            RegistryError: it does not.
        """
        if not self.knows(topic):
            return [None] * len(payloads)
        return await trio.to_thread.run_sync(self._texts, topic, payloads, must_answer)

    async def encode(self, topic: str, text: str) -> bytes:
        """The bytes of a value that is given in its format's own JSON.

        Raises:
            SchemaError: nothing says how they are written.
            ValueEncodingError: the text is none of the schema.
        """
        return await trio.to_thread.run_sync(self._encode, topic, text)

    def remark(self, topic: str, payload: bytes) -> str:
        """By which schema a value of a topic was read."""
        if topic in self._files:
            return f"By the schema in {self._files[topic].file}."
        number = int.from_bytes(payload[1:WIRE_FORMAT_BYTES], "big")
        return f"By schema {number:,} of the registry."

    def _encode(self, topic: str, text: str) -> bytes:
        if topic in self._files:
            return self._files[topic].encoder.encode(text)
        from ...schemas.values import JsonEncoder

        number, schema = self._known_registry().latest(_subject(topic))
        return JsonEncoder(schema, number).encode(text)

    def _texts(
        self, topic: str, payloads: Sequence[bytes | None], must_answer: bool
    ) -> list[str | None]:
        found: list[str | None] = []
        for payload in payloads:
            try:
                found.append(self._text(topic, payload))
            except RegistryError:
                if must_answer:
                    raise
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
            from ...schemas.values import JsonDecoder

            self._decoder = JsonDecoder(self._known_registry())
        return self._decoder

    def _known_registry(self) -> SchemaRegistry:
        if self._client is None:
            from ...schemas.registry import SchemaRegistry

            if self._registry is None:
                raise SchemaError("no schema says how its values are written")
            self._client = SchemaRegistry(self._registry)
        return self._client


def _subject(topic: str) -> str:
    """Where registries keep the schemas of a topic's values, unless clients are told otherwise."""
    return f"{topic}-value"
