"""Requests on one connection, sans-IO: messages in, frames out; bytes in, answers out.

Any number may be in flight. A broker answers a connection's requests in their order, so each
answer belongs to the oldest request that has none; its correlation id is compared, and
another one than expected ends the connection, for nobody knows what the bytes mean then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any

from ...common.errors import ErrorCode
from ...common.named_tuple import NamedTuple
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError
from ...protocol.frames import FrameReader
from ...protocol.headers import read_response_header, request_header
from ..errors import ClientError, PeerProtocolError

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

CORRELATION_ID_MAX = 0x7FFFFFFF
UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")

_pack_length = Struct(">i").pack


class InFlight:
    """A request that was sent, and what became of it.

    Attributes:
        api_key: of the request.
        version: of the request, and of its answer.
        correlation_id: what the answer begins with.
        deadline_ms: when it counts as timed out, in monotonic milliseconds.
        answer: the response, once it is there.
        failure: why there will be none.
        on_done: called once, when either is known.
        keeps_encoded: whether `answer` is to be the bytes of the response, for who decodes it.
    """

    __slots__ = (
        "answer",
        "api_key",
        "correlation_id",
        "deadline_ms",
        "failure",
        "keeps_encoded",
        "on_done",
        "version",
    )

    def __init__(
        self,
        api_key: int,
        version: int,
        correlation_id: int,
        deadline_ms: int,
        on_done: Callable[[], None],
        *,
        keeps_encoded: bool = False,
    ) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.deadline_ms = deadline_ms
        self.on_done = on_done
        self.answer: Any = None
        self.failure: ClientError | None = None
        self.keeps_encoded = keeps_encoded


class Started(NamedTuple):
    """A request, and the buffers that carry it."""

    in_flight: InFlight
    buffers: list[Any]


class RequestPipeline:
    """One connection's requests in flight.

    Args:
        client_id: named in every request.
        response_max_bytes: a broker that announces a larger answer is cut off.
    """

    def __init__(self, client_id: str | None, response_max_bytes: int) -> None:
        self._client_id = client_id
        self._reader = FrameReader(response_max_bytes)
        self._response_max_bytes = response_max_bytes
        self._in_flight: deque[InFlight] = deque()
        self._next_correlation_id = 0

    def __len__(self) -> int:
        """How many requests are unanswered."""
        return len(self._in_flight)

    @property
    def is_within_answer(self) -> bool:
        """Whether part of an answer has come and the rest has not."""
        return self._reader.has_unfinished_frame

    def start(
        self,
        request: Message,
        version: int,
        deadline_ms: int,
        on_done: Callable[[], None],
        *,
        expect_answer: bool = True,
        encoded: list[Any] | None = None,
    ) -> Started:
        """Encode a request; unless none is expected, its answer is waited for from now on.

        Args:
            encoded: the request's body where it is encoded already; the answer stays encoded then.

        Raises:
            EncodeError: the version cannot carry it.
            UnsupportedVersionError: there is no such version.
        """
        api_key = type(request).api_key
        assert api_key is not None, f"{type(request).__name__} is no request"
        correlation_id = self._next_correlation_id
        buffers = type(request).encoder(version)(request) if encoded is None else encoded
        header = request_header(api_key, version, correlation_id, self._client_id)
        size = len(header) + sum(len(buffer) for buffer in buffers)
        self._next_correlation_id = (correlation_id + 1) & CORRELATION_ID_MAX
        in_flight = InFlight(
            api_key,
            version,
            correlation_id,
            deadline_ms,
            on_done,
            keeps_encoded=encoded is not None,
        )
        if expect_answer:
            self._in_flight.append(in_flight)
        return Started(in_flight, [_pack_length(size) + header, *buffers])

    def receive(self, received: bytes | bytearray) -> None:
        """Take what the broker sent, and complete the requests that it answers.

        Raises:
            PeerProtocolError: it does not answer a request. What was answered before counts.
        """
        for frame in self._reader.receive(memoryview(received)):
            self._complete_oldest(frame)
        self._check_reader()

    def region(self) -> memoryview | None:
        """Where the rest of an answer that has begun can be received to, which spares a copy."""
        return self._reader.tail_region()

    def received_in_region(self, size: int) -> None:
        """So many bytes have come to the `region`; completes the request if they are the last.

        Raises:
            PeerProtocolError: it does not answer a request.
        """
        frame = self._reader.feed_tail(size)
        if frame is not None:
            self._complete_oldest(frame)
        self._check_reader()

    def _check_reader(self) -> None:
        if self._reader.failure is not None:
            raise PeerProtocolError(
                "the broker announced an answer of a negative length, or of more than "
                f"response_max_bytes={self._response_max_bytes}"
            )

    def next_deadline_ms(self) -> int | None:
        """When the first of the requests in flight times out; None: there is none."""
        return min((waiting.deadline_ms for waiting in self._in_flight), default=None)

    def fail_all(self, failure: ClientError) -> None:
        """Nothing more will be answered."""
        while self._in_flight:
            waiting = self._in_flight.popleft()
            waiting.failure = failure
            waiting.on_done()

    def _complete_oldest(self, frame: memoryview) -> None:
        if not self._in_flight:
            raise PeerProtocolError(f"the broker sent {len(frame)} bytes without a request")
        waiting = self._in_flight[0]
        api_key, version = waiting.api_key, waiting.version
        message = messages.response_message(api_key)
        try:
            correlation_id, position = read_response_header(frame, api_key, version)
            if correlation_id != waiting.correlation_id:
                raise PeerProtocolError(
                    f"the broker answered request {correlation_id}, "
                    f"and it is {waiting.correlation_id}'s turn ({message.name} v{version})"
                )
            if api_key == ApiKey.API_VERSIONS and frame[position:][:2] == UNSUPPORTED_VERSION:
                version = 0  # What every client can read, for none knew better (KIP-511).
            # What follows the message is ignored, as Kafka's clients do.
            if waiting.keeps_encoded:
                answer: Any = frame[position:]
            else:
                answer, _ = message.decoder(version)(frame, position)
        except ProtocolError as error:
            raise PeerProtocolError(f"this is no {message.name} v{version}: {error}") from error
        self._in_flight.popleft()
        waiting.answer = answer
        waiting.on_done()
