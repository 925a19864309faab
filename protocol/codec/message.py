"""A message: declared once, and a construct at every version."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import Any

import construct

from ..errors import EncodeError, ProtocolError, UnsupportedVersionError
from ..varints import Buffer
from .types import Array, Field, ResolvedStruct, Struct
from .values import MessageValue, Value
from .versions import format_versions, parse_versions

Decoder = Callable[[Buffer, int], tuple[Any, int]]
StepwiseDecoder = Callable[[Buffer, int], Generator[None, None, tuple[Any, int]]]
Encoder = Callable[[Any], list[Any]]


class Message(Struct):
    """A request, a response, or other data that Kafka keeps versions of.

    Calling it makes a value: `MetadataRequest(topics=None)`. The structs in it are its
    attributes: `MetadataRequest.MetadataRequestTopic(name="t")`. As a construct it is
    interpreted, `MetadataRequest.parse(data, version=9)`; brokers and clients use the
    codecs generated from the same declaration, `MetadataRequest.decoder(9)`.

    Args:
        name: Kafka's.
        fields: in the order of the wire.
        api_key: the API's number; None for data that is no request or response.
        versions: those that there are.
        flexible: those with varint lengths and tagged fields (KIP-482).
    """

    def __init__(
        self,
        name: str,
        *fields: Field,
        versions: str,
        flexible: str = "none",
        api_key: int | None = None,
    ) -> None:
        super().__init__(name, *fields)
        self.api_key = api_key
        self.versions = parse_versions(versions)
        self.flexible = parse_versions(flexible)
        self.module: str = sys._getframe(1).f_globals["__name__"]
        self._structs: tuple[Struct, ...] | None = None
        self._resolved: dict[int, ResolvedStruct] = {}
        self._decoders: dict[int, Decoder] = {}
        self._stepwise_decoders: dict[int, StepwiseDecoder] = {}
        self._encoders: dict[int, Encoder] = {}

    def __call__(self, **fields: Any) -> MessageValue:
        """A value of this message; fields left out have their defaults."""
        value: Any = (self._value_class or self.value_class)(**fields)
        return value  # type: ignore[no-any-return]  # made by `make_value_class`

    def __instancecheck__(self, value: object) -> bool:
        """`isinstance` takes a message for the class of its values."""
        return isinstance(value, self.value_class)

    def __getattr__(self, name: str) -> Any:
        """The class of values of a struct within this message."""
        if not name.startswith("_"):
            for struct in self.structs():
                if struct.name == name:
                    value_class = struct.value_class
                    setattr(self, name, value_class)
                    return value_class
        raise AttributeError(f"{self.name} has neither an attribute nor a struct {name!r}")

    def structs(self) -> tuple[Struct, ...]:
        """The structs within this message, each once, outer ones first."""
        if self._structs is None:
            found: dict[str, Struct] = {}
            pending: list[Struct] = [self]
            while pending:
                for field in pending.pop(0).fields:
                    inner = field.type.element if isinstance(field.type, Array) else field.type
                    if isinstance(inner, Struct) and inner.name not in found:
                        found[inner.name] = inner
                        inner.owner = self
                        pending.append(inner)
            self._structs = tuple(found.values())
        return self._structs

    @property
    def value_class(self) -> type[Value]:
        """The class of this message's values, the same for all versions."""
        if self._value_class is None:
            self.structs()  # From then on they know whose they are.
        return super().value_class

    def version(self, version: int) -> ResolvedStruct:
        """The plain construct of one version: what the bytes are.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        resolved = self._resolved.get(version)
        if resolved is None:
            if version not in self.versions:
                raise UnsupportedVersionError(
                    f"{self.name} has versions {format_versions(self.versions)}, not {version}"
                )
            resolved = self.resolve(version, version in self.flexible, False, False)
            self._resolved[version] = resolved
        return resolved

    def decoder(self, version: int) -> Decoder:
        """A function from a buffer and a position to a value and the position after it.

        It raises `ProtocolError` for malformed bytes, and for more elements than a message of
        its length may have (see `decoding_budget`). Fields of type Records are views of
        the buffer; nothing else is.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        decoder = self._decoders.get(version)
        if decoder is None:
            from .decoder_source import compile_decoder
            from .decoding_budget import limits_of

            decoder = compile_decoder(self.version(version), limits_of(self.name, self.api_key))
            self._decoders[version] = decoder
        return decoder

    def stepwise_decoder(self, version: int) -> StepwiseDecoder:
        """The same, as a generator that yields before each struct of an array.

        It returns the value and the position after it. Who has many milliseconds of work to do
        lets others have a turn in between.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        decoder = self._stepwise_decoders.get(version)
        if decoder is None:
            from .decoder_source import compile_stepwise_decoder
            from .decoding_budget import limits_of

            limits = limits_of(self.name, self.api_key)
            decoder = compile_stepwise_decoder(self.version(version), limits)
            self._stepwise_decoders[version] = decoder
        return decoder

    def encoder(self, version: int) -> Encoder:
        """A function from a value to the buffers that make up its bytes.

        Fields of type Records are handed through as buffers of their own. The function
        raises `EncodeError` for a value that the version cannot carry.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        encoder = self._encoders.get(version)
        if encoder is None:
            from .encoder_source import compile_encoder

            encoder = self._encoders[version] = compile_encoder(self.version(version))
        return encoder

    def _parse(self, stream: Any, context: Any, path: str) -> Any:
        from .interpreter import value_of

        resolved = self.version(context._params.version)
        try:
            container = resolved._parsereport(stream, context, path)
        except construct.ConstructError as error:
            raise ProtocolError(str(error)) from error
        return value_of(container, resolved)

    def _build(self, value: Any, stream: Any, context: Any, path: str) -> Any:
        from .interpreter import container_of

        resolved = self.version(context._params.version)
        container = container_of(value, resolved)
        try:
            resolved._build(container, stream, context, path)
        except construct.ConstructError as error:
            raise EncodeError(str(error)) from error
        return value

    def __repr__(self) -> str:
        return f"<Message {self.name} {format_versions(self.versions)}>"
