"""A route: one version of one API, with its handler, its codec and its metrics."""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from ...protocol.api_keys import ApiKey
from ...protocol.headers import response_header_version
from ...protocol.messages import request_message, response_message
from ..handlers.registry import Registration
from .request_metrics import ErrorCounts, RequestTimes

if TYPE_CHECKING:
    from ...protocol.codec.message import Encoder, Message
    from ...runtime.steps import Steps
    from ...storage.io.file_slice import FileSlice
    from ...storage.io.files import Buffer

FramePart: TypeAlias = "Buffer | FileSlice"
"""A framed answer is a list of these: records of a Fetch are slices of files."""

_pack_prefix = struct.Struct(">ii").pack
_pack_flexible_prefix = struct.Struct(">iib").pack


class Route:
    """One version of one API: how to decode it, who handles it, how to encode the answer.

    Args:
        registration: the API; its handler's module is imported.
        api_version: the version.

    Attributes:
        errors: in the answers.
        times: of the requests that were answered.
        follower_times: of a Fetch: of those that came from other brokers, which `times` leaves
            out; None of all other APIs.
        is_complete: False where the handler's module could not be imported, for want of file
            descriptors for example; the handler then raises why.
        key: API key and version as the first four bytes of a request have them.
    """

    __slots__ = (
        "_encode",
        "_flexible_header",
        "_response",
        "api_key",
        "api_version",
        "decode",
        "errors",
        "follower_times",
        "handler",
        "is_complete",
        "key",
        "name",
        "times",
    )

    def __init__(self, registration: Registration, api_version: int) -> None:
        api_key = registration.api_key
        self.api_key = api_key
        self.api_version = api_version
        self.key = api_key << 16 | api_version
        self.name = api_key.name
        self.is_complete = True
        try:
            self.handler = registration.load()
        except (OSError, ImportError) as error:
            self.is_complete = False
            self.handler = partial(_refuse, error)
        message = request_message(api_key)
        self.decode = message.decoder(api_version)
        response = response_message(api_key)
        self._response = response
        self._encode: Encoder | None = None
        self.errors = ErrorCounts(response, api_version)
        self._flexible_header = response_header_version(api_key, api_version) >= 1
        self.times = RequestTimes()
        self.follower_times = RequestTimes() if api_key is ApiKey.FETCH else None

    def encode_answer(self, correlation_id: int, response: Message) -> list[FramePart]:
        """The whole response frame as buffers; records stay the objects they were."""
        encode = self._encode
        if encode is None:  # until now they were encoded in steps, or there was none
            encode = self._encode = self._response.encoder(self.api_version)
        return self.framed(correlation_id, encode(response))

    def encode_in_steps(self, correlation_id: int, response: Message) -> Steps[list[FramePart]]:
        """The same, as work that yields after each element of an array."""
        encode = self._response.stepwise_encoder(self.api_version)
        buffers = yield from encode(response)
        return self.framed(correlation_id, buffers)

    def decode_in_steps(self, frame: Buffer, position: int) -> Steps[tuple[object, int]]:
        """The request's body and the position after it; yields after each element of an array."""
        decode = request_message(self.api_key).stepwise_decoder(self.api_version)
        return decode(frame, position)

    def framed(self, correlation_id: int, buffers: list[FramePart]) -> list[FramePart]:
        """The whole response frame of an encoded response."""
        size = 0
        for buffer in buffers:
            size += len(buffer)
        if self._flexible_header:
            prefix = _pack_flexible_prefix(size + 5, correlation_id, 0)
        else:
            prefix = _pack_prefix(size + 4, correlation_id)
        return [prefix, *buffers]

    def count_successes(self, results: int, elapsed_ms: int = 0) -> None:
        """Count a request that its memo has answered, as one with nothing but successes.

        Args:
            results: how many error codes its answer holds.
            elapsed_ms: how long it took.
        """
        self.errors.none_count += results
        if elapsed_ms > 0:
            self.times.record(elapsed_ms)
        else:
            self.times.sub_millisecond_count += 1


def _refuse(error: Exception, context: object, request: object) -> NoReturn:
    """Stand for a handler that cannot be imported."""
    raise error
