"""One client's connection through the proxy: bytes go both ways, and are looked at on the way."""

from __future__ import annotations

import time

import trio

from ...protocol.errors import EncodeError, ProtocolError, UnsupportedVersionError
from ...protocol.frames import FrameReader
from ...protocol.varints import Buffer
from .addresses import Translate, is_rewritten, may_name_brokers, rewritten
from .conversation import AnswerStream, Conversation, PendingRequest, TooManyRequests
from .recording import FrameKind, RecordedConnection, RecordedEnd, RecordedFrame, Recording
from .redaction import redacted

PROXY_RECEIVE_BYTES = 256 << 10
FRAME_BYTES_MAX = 100 << 20
"""Kafka's own limit for requests (`socket.request.max.bytes`); answers keep below it, too."""

SENT_AT_ONCE_BYTES = 64 << 10
"""Pieces up to so much together are sent in one."""

FRAMES_IN_A_TURN_MAX = 200
"""Requests that came together are noted in one go; then other connections have their turn."""

LAST_ANSWERS_SECONDS = 10.0
"""How long a broker has to say the rest once a client has nothing more to ask."""

TLS_HANDSHAKE = 0x16
"""The first byte of who speaks TLS."""


class NoListenerError(Exception):
    """There can be no listener for a broker, so its address is not passed on; the text says why."""


class ProxiedConnection:
    """A connection between a client and a broker.

    Args:
        connection: what is known of it.
        client: the stream to the client.
        broker: the stream to the broker.
        recording: gets all frames.
        translate: gives the address to send in place of a broker's.
        frame_bytes_max: larger frames end the connection.
    """

    def __init__(
        self,
        connection: RecordedConnection,
        client: trio.SocketStream,
        broker: trio.SocketStream,
        recording: Recording,
        translate: Translate,
        frame_bytes_max: int = FRAME_BYTES_MAX,
    ) -> None:
        self._number = connection.number
        self._client = client
        self._broker = broker
        self._recording = recording
        self._translate = translate
        self._conversation = Conversation()
        self._requests = FrameReader(frame_bytes_max)
        self._answers = AnswerStream(frame_bytes_max, self._begin_answer, self._finish_answer)
        self._answered: PendingRequest | None = None
        self._is_by_client = False
        self._is_sending = False
        self._reason = ""

    async def run(self) -> None:
        """Pass everything on until one side ends it."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pass_requests, nursery.cancel_scope)
                await self._pass_answers()
                nursery.cancel_scope.cancel()
        except BaseException:
            self._reason = self._reason or "the recorder was stopped"
            raise
        finally:
            self._recording.ended(
                RecordedEnd(self._number, time.time_ns(), self._is_by_client, self._reason)
            )

    async def _pass_requests(self, scope: trio.CancelScope) -> None:
        try:
            while received := await self._client.receive_some(PROXY_RECEIVE_BYTES):
                for count, frame in enumerate(self._requests.receive(memoryview(received)), 1):
                    self._note_request(frame)
                    if count % FRAMES_IN_A_TURN_MAX == 0:
                        await trio.lowlevel.checkpoint()
                if self._requests.failure is not None:
                    self._reason = _no_request(self._requests.failure, received)
                    break
                await self._send_to_broker(received)
            else:
                self._is_by_client = True
                # It may have ended only its own half, and wait for answers.
                await self._broker.send_eof()
                scope.deadline = trio.current_time() + LAST_ANSWERS_SECONDS
                return
        except TooManyRequests as error:
            self._reason = str(error)
        except trio.BrokenResourceError:
            self._is_by_client = not self._is_sending
        scope.cancel()

    async def _send_to_broker(self, data: Buffer) -> None:
        self._is_sending = True
        await self._broker.send_all(data)
        self._is_sending = False

    def _note_request(self, frame: Buffer) -> None:
        pending = self._conversation.add_request(frame, time.time_ns())
        self._record(pending.kind, pending, frame)

    async def _pass_answers(self) -> None:
        try:
            while received := await self._broker.receive_some(PROXY_RECEIVE_BYTES):
                forward = self._answers.feed(memoryview(received))
                if sum(map(len, forward)) <= SENT_AT_ONCE_BYTES:
                    forward = [b"".join(forward)]
                for piece in forward:
                    await self._client.send_all(piece)
                if self._answers.failure is not None:
                    self._reason = f"what the broker sends is not Kafka's: {self._answers.failure}"
                    return
        except NoListenerError as error:
            self._reason = str(error)
        except trio.BrokenResourceError:
            pass  # one of the two has gone

    def _begin_answer(self, start: Buffer) -> bool:
        self._answered = pending = self._conversation.answered_by(start)
        return (
            pending is not None
            and pending.kind is FrameKind.REQUEST
            and is_rewritten(pending.api_key, pending.api_version)
        )

    def _finish_answer(self, frame: Buffer) -> Buffer | None:
        pending, self._answered = self._answered, None
        if pending is None:
            self._record(FrameKind.UNASKED, UNASKED, frame)
            return None
        self._conversation.settle(pending)
        if pending.kind is FrameKind.TOKEN:
            self._record(FrameKind.TOKEN_ANSWER, pending, frame)
            return None
        self._record(FrameKind.ANSWER, pending, frame)
        if not is_rewritten(pending.api_key, pending.api_version):
            return None
        try:
            return rewritten(pending.api_key, pending.api_version, frame, self._translate)
        except (ProtocolError, UnsupportedVersionError, EncodeError) as error:
            if may_name_brokers(pending.api_key, pending.api_version):
                self._recording.note(
                    f"connection {self._number}: addresses in an answer were left as they are,"
                    f" since it was not understood: {error}"
                )
            return None

    def _record(self, kind: FrameKind, pending: PendingRequest, frame: Buffer) -> None:
        is_answer = not kind.is_from_client
        content: Buffer | None = b""
        if kind not in (FrameKind.TOKEN, FrameKind.TOKEN_ANSWER):
            content = redacted(pending.api_key, pending.api_version, frame, is_answer=is_answer)
        now_ns = time.time_ns()
        self._recording.passed(
            RecordedFrame(
                kind,
                self._number,
                now_ns if is_answer else pending.time_ns,
                pending.api_key,
                pending.api_version,
                pending.correlation_id,
                frame if content is None else content,
                content is not None,
                max(now_ns - pending.time_ns, 0) if is_answer and pending.time_ns else 0,
            )
        )


UNASKED = PendingRequest(FrameKind.REQUEST, 0)


def _no_request(failure: str, received: bytes) -> str:
    """Why what a client sends is no request."""
    if received[0] == TLS_HANDSHAKE:
        return "the client speaks TLS, which is not recorded; have it speak plain text to here"
    return f"what the client sends is not Kafka's: {failure}"
