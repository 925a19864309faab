"""Keys and values with schemas, as JSON: Avro, Protobuf, JSON Schema, by a file or a registry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import trio

from ...schemas.errors import RegistryError, SchemaError, ValueDecodingError
from .payload import SHOWN_BYTES_MAX, WIRE_FORMAT_BYTES

if TYPE_CHECKING:
    from ...schemas.registry import SchemaRegistry
    from ...schemas.values import JsonDecoder, JsonEncoder

TEXT_MAX: Final = 4 * SHOWN_BYTES_MAX

Part = Literal["key", "value"]


class TopicSchema(NamedTuple):
    """The schema that all keys, or all values, of a topic have, without a header in front.

    Attributes:
        topic: its name.
        file: the name of the schema's file.
        decoder: reads them.
        encoder: writes them.
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
    """Reads and writes keys, or values, in threads; a registry is asked when it is needed first.

    Args:
        part: of records, that this is for.
        files: of topics in which these have no header.
        registry: the URL of the one that knows the other topics' schemas, if there is one.
    """

    def __init__(
        self, part: Part, files: Iterable[TopicSchema] = (), registry: str | None = None
    ) -> None:
        self._part = part
        self._files = {each.topic: each for each in files}
        self._registry = registry
        self._decoder: JsonDecoder | None = None
        self._client: SchemaRegistry | None = None

    def knows(self, topic: str) -> bool:
        """Whether there may be a schema of a topic's keys or values."""
        return topic in self._files or self._registry is not None

    def source(self, topic: str) -> str | None:
        """What says how they are written, for a form; None where nothing does."""
        if topic in self._files:
            return f"the schema in {self._files[topic].file}"
        if self._registry is None:
            return None
        return f"the registry's schema of {self._subject(topic)}"

    async def texts(
        self, topic: str, payloads: Sequence[bytes | None], *, must_answer: bool = False
    ) -> list[str | None]:
        """The JSON of each; None for what is none of the schema, or is too large.

        Args:
            topic: theirs.
            payloads: keys, or values.
            must_answer: whether a registry that does not answer is an error.

        Raises:
            RegistryError: it does not.
        """
        if not self.knows(topic):
            return [None] * len(payloads)
        return await trio.to_thread.run_sync(self._texts, topic, payloads, must_answer)

    async def encode(self, topic: str, text: str) -> bytes:
        """The bytes of a key or a value that is given in its format's own JSON.

        Raises:
            SchemaError: nothing says how they are written.
            ValueEncodingError: the text is none of the schema.
        """
        return await trio.to_thread.run_sync(self._encode, topic, text)

    def remark(self, topic: str, payload: bytes) -> str:
        """By which schema a key or a value of a topic was read."""
        if topic in self._files:
            return f"By the schema in {self._files[topic].file}."
        number = int.from_bytes(payload[1:WIRE_FORMAT_BYTES], "big")
        return f"By schema {number:,} of the registry."

    def _encode(self, topic: str, text: str) -> bytes:
        if topic in self._files:
            return self._files[topic].encoder.encode(text)
        from ...schemas.values import JsonEncoder

        number, schema = self._known_registry().latest(self._subject(topic))
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
                # It does not answer: each further one would wait for it as long.
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
                raise SchemaError(f"no schema says how its {self._part}s are written")
            self._client = SchemaRegistry(self._registry)
        return self._client

    def _subject(self, topic: str) -> str:
        """Where registries keep the schemas, as Confluent's TopicNameStrategy has it."""
        return f"{topic}-{self._part}"


class RecordSchemas(NamedTuple):
    """What says what records are: of their keys, and of their values."""

    keys: SchemaValues
    values: SchemaValues


class RecordTexts(NamedTuple):
    """The JSON of a record's key and of its value; None where no schema says what it is."""

    key: str | None
    value: str | None


NO_TEXTS: Final = RecordTexts(None, None)
