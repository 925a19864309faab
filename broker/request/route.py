"""A route: one version of one API, with its handler, its codec and its metrics."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, TypeAlias

from ...protocol.api_keys import ApiKey
from ...protocol.codec.decoding_budget import CLUSTER_APIS
from ...protocol.headers import response_header_version
from ...protocol.messages import request_message, response_message
from ..handlers.registry import Registration
from .request_metrics import ErrorCounts, RequestTimes

if TYPE_CHECKING:
    from ...protocol.codec.message import Message
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
        key: API key and version as the first four bytes of a request have them.
        may_be_long: whether requests may list the partitions of a whole cluster.
    """

    __slots__ = (
        "_encode",
        "_flexible_header",
        "api_key",
        "api_version",
        "decode",
        "errors",
        "follower_times",
        "handler",
        "key",
        "may_be_long",
        "name",
        "times",
    )

    def __init__(self, registration: Registration, api_version: int) -> None:
        api_key = registration.api_key
        self.api_key = api_key
        self.api_version = api_version
        self.key = api_key << 16 | api_version
        self.name = api_key.name
        self.handler = registration.load()
        message = request_message(api_key)
        self.decode = message.decoder(api_version)
        self.may_be_long = api_key in CLUSTER_APIS
        response = response_message(api_key)
        self._encode = response.encoder(api_version)
        self.errors = ErrorCounts(response, api_version)
        self._flexible_header = response_header_version(api_key, api_version) >= 1
        self.times = RequestTimes()
        self.follower_times = RequestTimes() if api_key is ApiKey.FETCH else None

    def encode_answer(self, correlation_id: int, response: Message) -> list[Any]:
        """The whole response frame as buffers; records stay the objects they were."""
        buffers = self._encode(response)
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
