"""A connection of a replay: frames are sent as they are, and answers found by their number."""

from __future__ import annotations

from struct import Struct

import trio

from ...protocol.frames import FrameReader
from ...protocol.varints import Buffer
from .addresses import Address
from .proxied_connection import FRAME_BYTES_MAX, RECEIVE_BYTES

_unpack_int32 = Struct(">i").unpack_from

CONNECT_SECONDS_MAX = 30.0
ANSWERS_WAITING_MAX = 10_000


class ReplayError(Exception):
    """A replay cannot go on; the text is a sentence."""


class ReplayedConnection:
    """One connection to the broker that is replayed to.

    Args:
        stream: to the broker.

    Attributes:
        is_ended: whether the broker has closed it.
    """

    def __init__(self, stream: trio.SocketStream) -> None:
        self.is_ended = False
        self._stream = stream
        self._reader = FrameReader(FRAME_BYTES_MAX)
        self._answers: dict[int, Buffer] = {}
        self._has_come = trio.Event()

    @classmethod
    async def open(cls, address: Address) -> ReplayedConnection:
        """Connect.

        Raises:
            ReplayError: nobody answers there.
        """
        try:
            with trio.fail_after(CONNECT_SECONDS_MAX):
                return cls(await trio.open_tcp_stream(*address))
        except (OSError, ValueError, trio.TooSlowError) as error:
            raise ReplayError(f"no broker answers at {address}") from error

    async def run(self) -> None:
        """Take answers as they come, until the connection ends."""
        try:
            while received := await self._stream.receive_some(RECEIVE_BYTES):
                for frame in self._reader.receive(memoryview(received)):
                    if len(frame) >= 4 and len(self._answers) < ANSWERS_WAITING_MAX:
                        self._answers[_unpack_int32(frame)[0]] = frame
                self._wake()
                if self._reader.failure is not None:
                    break
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.is_ended = True
            self._wake()

    async def send(self, frame: Buffer) -> None:
        """Send a frame; nothing happens if the connection has ended."""
        try:
            await self._stream.send_all(len(frame).to_bytes(4, "big") + bytes(frame))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.is_ended = True

    async def answer(self, correlation_id: int, seconds: float) -> Buffer | None:
        """The answer to a request; None if none comes in time, or before the end.

        Args:
            correlation_id: the request's number.
            seconds: how long to wait.
        """
        with trio.move_on_after(seconds):
            while correlation_id not in self._answers and not self.is_ended:
                await self._has_come.wait()
        return self._answers.pop(correlation_id, None)

    async def has_ended(self, seconds: float) -> bool:
        """Whether the broker ends the connection within some seconds."""
        with trio.move_on_after(seconds):
            while not self.is_ended:
                await self._has_come.wait()
        return self.is_ended

    async def close(self) -> None:
        """End it."""
        await trio.aclose_forcefully(self._stream)

    def _wake(self) -> None:
        event, self._has_come = self._has_come, trio.Event()
        event.set()
