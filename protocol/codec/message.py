"""A message: declared once, as a class, with codecs and a plain construct for every version."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Self, dataclass_transform

from ..errors import UnsupportedVersionError
from ..varints import Buffer
from .types import Array, Struct, StructLayout, StructType
from .versions import format_versions, parse_versions

if TYPE_CHECKING:
    from .wire import ResolvedStruct

Decoder = Callable[[Buffer, int], tuple[Any, int]]
StepwiseDecoder = Callable[[Buffer, int], Generator[None, None, tuple[Any, int]]]
Encoder = Callable[[Any], list[Any]]
StepwiseEncoder = Callable[[Any], Generator[None, None, list[Any]]]


@dataclass_transform(kw_only_default=True)
class MessageType(StructType):
    """The class of messages' classes: the codecs of a message, by version."""

    _structs: tuple[StructType, ...]
    _api_key: int | None
    _versions: range
    _flexible: range
    _layouts: dict[int, StructLayout]
    _constructs: dict[int, ResolvedStruct]
    _decoders: dict[int, Decoder]
    _stepwise_decoders: dict[int, StepwiseDecoder]
    _encoders: dict[int, Encoder]
    _stepwise_encoders: dict[int, StepwiseEncoder]

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        versions: str = "none",
        flexible: str = "none",
        api_key: int | None = None,
    ) -> MessageType:
        """Make a message's class.

        Args:
            name: Kafka's.
            bases: `Message`.
            namespace: the fields, and the structs in it.
            versions: those that there are.
            flexible: those with varint lengths and tagged fields (KIP-482).
            api_key: the API's number; None for data that is no request or response.
        """
        made = super().__new__(cls, name, bases, namespace)
        assert isinstance(made, MessageType)
        made._api_key = api_key
        made._versions = parse_versions(versions)
        made._flexible = parse_versions(flexible)
        made._structs = tuple(_bind_structs(made))
        made._layouts = {}
        made._constructs = {}
        made._decoders = {}
        made._stepwise_decoders = {}
        made._encoders = {}
        made._stepwise_encoders = {}
        return made

    @property
    def api_key(cls) -> int | None:
        """The API's number; None for data that is no request or response."""
        return cls._api_key

    @property
    def versions(cls) -> range:
        """Those that there are."""
        return cls._versions

    @property
    def flexible(cls) -> range:
        """The versions with varint lengths and tagged fields (KIP-482)."""
        return cls._flexible

    def structs(cls) -> tuple[StructType, ...]:
        """The structs within this message, each once, outer ones first."""
        return cls._structs

    @property
    def version(cls) -> Callable[[int], ResolvedStruct]:
        """A function from a version to its plain construct: what the bytes are.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        return cls._construct_of

    def _construct_of(cls, version: int) -> ResolvedStruct:
        resolved = cls._constructs.get(version)
        if resolved is None:
            from .wire import struct_of

            resolved = cls._constructs[version] = struct_of(cls.layout(version))
        return resolved

    def layout(cls, version: int) -> StructLayout:
        """What the bytes of a version hold, for those who write its codecs.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        layout = cls._layouts.get(version)
        if layout is None:
            if version not in cls.versions:
                raise UnsupportedVersionError(
                    f"{cls.name} has versions {format_versions(cls.versions)}, not {version}"
                )
            layout = cls._layouts[version] = cls.struct_layout(version, version in cls.flexible)
        return layout

    def decoder(cls, version: int) -> Decoder:
        """A function from a buffer and a position to a value and the position after it.

        It raises `ProtocolError` for malformed bytes, and for more elements than a message of
        its length may have (see `decoding_budget`). Fields of type Records are views of
        the buffer; nothing else is.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        decoder = cls._decoders.get(version)
        if decoder is None:
            from .decoder_source import compile_decoder
            from .decoding_budget import limits_of

            decoder = compile_decoder(cls.layout(version), limits_of(cls.name, cls.api_key))
            cls._decoders[version] = decoder
        return decoder

    def stepwise_decoder(cls, version: int) -> StepwiseDecoder:
        """The same, as a generator that yields before each element of an array.

        It returns the value and the position after it. Who has many milliseconds of work to do
        lets others have a turn in between.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        decoder = cls._stepwise_decoders.get(version)
        if decoder is None:
            from .decoder_source import compile_stepwise_decoder
            from .decoding_budget import limits_of

            limits = limits_of(cls.name, cls.api_key)
            decoder = compile_stepwise_decoder(cls.layout(version), limits)
            cls._stepwise_decoders[version] = decoder
        return decoder

    def encoder(cls, version: int) -> Encoder:
        """A function from a value to the buffers that make up its bytes.

        Fields of type Records are handed through as buffers of their own. The function
        raises `EncodeError` for a value that the version cannot carry.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        encoder = cls._encoders.get(version)
        if encoder is None:
            from .encoder_source import compile_encoder

            encoder = cls._encoders[version] = compile_encoder(cls.layout(version))
        return encoder

    def stepwise_encoder(cls, version: int) -> StepwiseEncoder:
        """The same, as a generator that yields after each element of an array, and returns buffers.

        Raises:
            UnsupportedVersionError: the message has no such version.
        """
        encoder = cls._stepwise_encoders.get(version)
        if encoder is None:
            from .encoder_source import compile_encoder

            encoder = compile_encoder(cls.layout(version), in_steps=True)
            cls._stepwise_encoders[version] = encoder
        return encoder

    def parse(cls, data: Buffer, *, version: int) -> Any:
        """The value in some bytes, read by the plain construct: slow, and the decoders' oracle.

        Raises:
            ProtocolError: the bytes are no such message.
            UnsupportedVersionError: the message has no such version.
        """
        from .interpreter import parse

        return parse(data, cls.version(version))

    def build(cls, value: Any, *, version: int) -> bytes:
        """A value's bytes, written by the plain construct: slow, and the encoders' oracle.

        Raises:
            EncodeError: the version cannot carry what the value holds.
            UnsupportedVersionError: the message has no such version.
        """
        from .interpreter import build

        return build(value, cls.version(version))

    def __repr__(cls) -> str:
        return f"<Message {cls.name} {format_versions(cls.versions)}>"


def _bind_structs(message: MessageType) -> list[StructType]:
    """Look up the structs that the fields' annotations name; gives them, outer ones first."""
    declared = vars(message)
    found: list[StructType] = []
    pending: list[StructType] = [message]
    while pending:
        struct = pending.pop(0)
        for field in struct.fields:
            field.find_struct(struct.__annotations__[field.name], declared)
            inner = field.type.element if isinstance(field.type, Array) else field.type
            if isinstance(inner, StructType) and inner not in found:
                found.append(inner)
                pending.append(inner)
    return found


class Message(Struct, metaclass=MessageType):
    """A request, a response, or other data that Kafka keeps versions of.

    A subclass declares it, with the structs in it as nested classes:

        class MetadataRequest(Message, api_key=3, versions="0-13", flexible="9+"):
            topics: list[MetadataRequestTopic] | None = array(nullable="1+")

            class MetadataRequestTopic(Struct):
                name: str = string()

    Calling it makes a value, `MetadataRequest(topics=None)`; `MetadataRequest.version(9)` is its
    plain construct at a version; brokers and clients use the codecs generated from that,
    `MetadataRequest.decoder(9)`.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        # What `MessageType` says of any message, of this one.

        @classmethod
        def decoder(cls, version: int) -> Callable[[Buffer, int], tuple[Self, int]]: ...

        @classmethod
        def encoder(cls, version: int) -> Callable[[Self], list[Any]]: ...

        @classmethod
        def parse(cls, data: Buffer, *, version: int) -> Self: ...
