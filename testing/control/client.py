"""The test's side of the control channel."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from typing import Any

from .framing import PREFIX, FrameError, body_length, decode, encode

CONTROL_ANSWER_SECONDS = 60.0
"""How long an answer is waited for, unless the call says otherwise."""


class ControlError(Exception):
    """The broker refuses, or cannot be reached; the text says why."""


class ControlTimeout(ControlError, TimeoutError):
    """What was waited for has not come about, or the broker has not answered, in time."""


class ControlClient:
    """Calls one broker's verbs over its control channel. Threads may share it.

    Args:
        address: HOST:PORT of the channel.
        token: what the broker was started with.
    """

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self._token = token
        self._idle: list[socket.socket] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def call(
        self, verb: str, /, *, answer_within: float = CONTROL_ANSWER_SECONDS, **arguments: Any
    ) -> Any:
        """Have the broker do something, and wait for its answer.

        Args:
            verb: what, such as "faults.add".
            answer_within: seconds to wait.
            arguments: of the verb; what JSON can say, and bytes.

        Raises:
            ControlError: the broker refuses, with its sentence, or cannot be reached.
            ControlTimeout: what the verb waited for, or an answer, has not come in time.
        """
        __tracebackhide__ = True  # pytest shows the test's line, not ours
        request = encode({"verb": verb, "arguments": arguments})
        deadline = time.monotonic() + answer_within
        try:
            connection = self._take_idle() or self._connect(deadline)
            try:
                connection.settimeout(_left(deadline))
                connection.sendall(request)
                answer = _receive(connection, deadline)
            except BaseException:
                connection.close()
                raise
        except TimeoutError:
            raise ControlTimeout(
                f"the broker has not answered {verb} on its control channel within "
                f"{answer_within:g} s"
            ) from None
        except (OSError, FrameError) as error:
            raise ControlError(
                f"{verb} failed on the broker's control channel {self.address}: "
                f"{error}; is it running?"
            ) from error
        with self._lock:
            self._idle.append(connection)
        if "error" in answer:
            kind = ControlTimeout if answer.get("kind") == "timeout" else ControlError
            raise kind(answer["error"])
        return answer.get("result")

    def close(self) -> None:
        """Close the connections that nobody uses; a later call opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __repr__(self) -> str:
        return f"<control channel at {self.address}>"

    def __del__(self) -> None:
        # Without this a run that takes warnings for errors would hear of sockets left open.
        for connection in self._idle:
            connection.close()

    def _take_idle(self) -> socket.socket | None:
        """A connection that is open still, and of this process."""
        with self._lock:
            if self._pid != os.getpid():  # a fork's connections are its parent's
                self._pid, self._idle = os.getpid(), []
            while self._idle:
                connection = self._idle.pop()
                poll = select.poll()
                poll.register(connection, select.POLLIN)
                if not poll.poll(0):
                    return connection
                connection.close()  # the broker has ended meanwhile
        return None

    def _connect(self, deadline: float) -> socket.socket:
        host, _, port = self.address.rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout=_left(deadline))
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(encode({"token": self._token}))
            try:
                answer = _receive(connection, deadline)
            except ConnectionResetError:
                raise ControlError(
                    f"the control channel {self.address} does not take this token: it is another "
                    "broker's, or one of an earlier run"
                ) from None
            if "error" in answer:
                raise ControlError(
                    f"the control channel {self.address} takes nobody now: {answer['error']}"
                )
        except BaseException:
            connection.close()
            raise
        return connection


def _receive(connection: socket.socket, deadline: float) -> dict[str, Any]:
    length = body_length(_receive_exactly(connection, PREFIX.size, deadline))
    answer = decode(_receive_exactly(connection, length, deadline))
    if not isinstance(answer, dict):
        raise FrameError("the answer is not one of a control channel")
    return answer


def _receive_exactly(connection: socket.socket, size: int, deadline: float) -> bytearray:
    data = bytearray()
    while len(data) < size:
        connection.settimeout(_left(deadline))
        more = connection.recv(min(size - len(data), 1 << 16))
        if not more:
            raise ConnectionResetError("it closed the connection")
        data += more
    return data


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
