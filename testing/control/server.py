"""The broker's side of the control channel: a listening socket, and the verbs called over it.

It listens on the loopback interface only, and serves nobody who does not show the token first.
Until somebody comes it is a socket and nothing more.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from types import CoroutineType
from typing import TYPE_CHECKING, Any

import trio

from .framing import VerbError
from .target import ControlTarget
from .verbs import find_verb

if TYPE_CHECKING:
    from ...broker.broker import Broker

logger = logging.getLogger(__name__)

ADDRESS_PREFIX = "control at "
"""How the line begins that tells the parent process where the channel is."""
BACKLOG = 64
CONNECTIONS_MAX = 256
HELLO_SECONDS_MAX = 30.0
"""How long a connection may take to show the token."""
TELL_SECONDS = 10.0
"""How long one that is too many may take to hear so."""
TOO_MANY = f"it has {CONNECTIONS_MAX} connections already, which is all it takes at once"


class ControlServer:
    """Lets the holders of a token control one broker.

    Args:
        token: what a caller has to show; not empty.

    Attributes:
        address: HOST:PORT where it listens, from the start.
    """

    def __init__(self, token: str) -> None:
        if not token:
            raise ValueError("a control channel needs a token")
        self._token = token
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.target: ControlTarget
        self._connections = 0

    def attach(self, broker: Broker) -> None:
        """Fill the hooks of the broker, before it serves."""
        self.target = ControlTarget(broker)

    def start(self) -> None:
        """Serve from now on, until the broker ends; the broker is running."""
        self.target.broker.supervisor.keep_running(self._serve)

    async def _serve(self) -> None:
        from ...broker.network.accepting import accept_all

        await accept_all(self._socket, self._serve_connection)

    async def _serve_connection(self, sock: trio.socket.SocketType, peer: str) -> None:
        from .framing import HELLO_BYTES_MAX, FrameError, encode

        stream = trio.SocketStream(sock)
        if self._connections >= CONNECTIONS_MAX:
            with contextlib.suppress(trio.BrokenResourceError), trio.move_on_after(TELL_SECONDS):
                await stream.send_all(encode({"error": TOO_MANY}))
                await stream.send_eof()
                await stream.receive_some(HELLO_BYTES_MAX)  # unread it would reset what was sent
            await trio.aclose_forcefully(stream)
            return
        self._connections += 1
        try:
            async with stream:
                if await self._is_welcome(stream):
                    await self._answer_requests(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the caller has left
        except FrameError as error:
            logger.warning("closing a connection of the control channel: %s", error)
        finally:
            self._connections -= 1

    async def _is_welcome(self, stream: trio.SocketStream) -> bool:
        """Whether the first frame holds the token; compared in constant time."""
        from hmac import compare_digest

        from .framing import HELLO_BYTES_MAX, encode

        with trio.move_on_after(HELLO_SECONDS_MAX):
            hello = await _receive(stream, HELLO_BYTES_MAX)
            token = hello.get("token") if isinstance(hello, dict) else None
            if isinstance(token, str) and compare_digest(
                token.encode(errors="replace"), self._token.encode()
            ):
                await stream.send_all(encode({"welcome": True}))
                return True
        logger.warning("somebody without the right token was turned away from the control channel")
        return False

    async def _answer_requests(self, stream: trio.SocketStream) -> None:
        from .framing import FRAME_BYTES_MAX, FrameError, encode

        while (request := await _receive(stream, FRAME_BYTES_MAX)) is not None:
            answer = await self._answer_unless_left(stream, request)
            if answer is None:
                return
            try:
                frame = encode(answer)
            except (FrameError, TypeError) as error:
                frame = encode({"error": str(error)})
            await stream.send_all(frame)

    async def _answer_unless_left(
        self, stream: trio.SocketStream, request: Any
    ) -> dict[str, Any] | None:
        """What is answered; None, and the verb cancelled, if the caller leaves meanwhile."""
        answer: dict[str, Any] | None = None

        async def watch() -> None:
            # A caller says nothing before it is answered, so whatever is read is its leaving.
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.receive_some(1)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            answer = await self._answer(request)
            nursery.cancel_scope.cancel()
        return answer

    async def _answer(self, request: Any) -> dict[str, Any]:
        from .framing import to_wire

        try:
            name, arguments = request["verb"], request["arguments"]
            if not isinstance(name, str) or not isinstance(arguments, dict):
                raise VerbError("a request is a verb and its arguments")
            result = find_verb(name).carry_out(self.target, arguments)
            if type(result) is CoroutineType:
                result = await result
            return {"result": to_wire(result)}
        except (VerbError, ValueError) as error:
            return {"error": str(error)}
        except TimeoutError as error:
            return {"error": str(error), "kind": "timeout"}
        except Exception as error:
            logger.exception("a verb of the control channel failed")
            return {"error": f"{type(error).__name__} in the broker's process: {error}"}
        finally:
            self.target.broker.server.finish_outside_work()


async def _receive(stream: trio.SocketStream, length_max: int) -> Any:
    """The next frame; None at the end of the stream.

    Raises:
        FrameError: it is too long, or holds no JSON.
    """
    from .framing import PREFIX, body_length, decode

    prefix = await _receive_exactly(stream, PREFIX.size)
    if prefix is None:
        return None
    body = await _receive_exactly(stream, body_length(prefix, length_max))
    return None if body is None else decode(body)


async def _receive_exactly(stream: trio.SocketStream, size: int) -> bytearray | None:
    data = bytearray()
    while len(data) < size:
        more = await stream.receive_some(min(size - len(data), 1 << 16))
        if not more:
            return None
        data += more
    return data
