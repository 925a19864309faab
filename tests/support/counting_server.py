"""A server that answers any request with the same bytes, and counts how many are unanswered."""

from __future__ import annotations

import select
import socket
import struct
import threading
from typing import Any

LISTEN_SECONDS = 0.02
"""How long it listens for further requests before it answers one."""


class CountingServer:
    """Takes requests on 127.0.0.1, a thread for each connection; a context manager.

    Before each answer it waits whether more comes, so that a client which sends too much is seen.

    Args:
        answer: without its length.
        answers_max: after so many on a connection it closes that; None: never.
        extra: it answers each request so many times too often.

    Attributes:
        port: where it listens.
        most_in_flight: unanswered requests on each connection at the worst, in no order.
        requests: how many it has received.
    """

    def __init__(self, answer: bytes, answers_max: int | None = None, extra: int = 0) -> None:
        self.requests = 0
        self.most_in_flight: list[int] = []
        self._answer = (struct.pack(">i", len(answer)) + answer) * (1 + extra)
        self._answers_max = answers_max
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> CountingServer:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        unanswered, most, answered = 0, 0, 0
        received = b""
        with connection:
            while self._answers_max is None or answered < self._answers_max:
                wait: Any = LISTEN_SECONDS if unanswered else None
                if select.select([connection], [], [], wait)[0]:
                    try:
                        data = connection.recv(1 << 16)
                    except ConnectionError:
                        break
                    if not data:
                        break
                    whole, received = _whole_frames(received + data)
                    unanswered += whole
                    most = max(most, unanswered)
                    with self._lock:
                        self.requests += whole
                elif unanswered:
                    connection.sendall(self._answer)
                    unanswered -= 1
                    answered += 1
        with self._lock:
            self.most_in_flight.append(most)


def _whole_frames(data: bytes) -> tuple[int, bytes]:
    count = 0
    while len(data) >= 4:
        (size,) = struct.unpack_from(">i", data)
        if len(data) < 4 + size:
            break
        data = data[4 + size :]
        count += 1
    return count, data
