"""A TCP proxy to a server that a test can cut: nothing passes then, and connections stay open."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading

RECEIVE_BYTES = 65_536


class CuttableProxy:
    """Listens on a port of its own, and passes on what comes; a context manager that ends it.

    Args:
        port: the server's, on this machine.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._waker, self._woken = socket.socketpair()
        self._peers: dict[socket.socket, socket.socket] = {}
        self._is_cut = False
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """host:port to connect to instead of the server's."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """From now on nothing passes in either direction; connections stay open."""
        self._is_cut = True
        self._waker.sendall(b"!")

    def mend(self) -> None:
        """The connections of before are closed, and new ones work."""
        self._is_cut = False
        self._waker.sendall(b"!")

    def __enter__(self) -> CuttableProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._waker.sendall(b"!")
        self._thread.join()
        for each in (self._listener, self._waker, self._woken):
            each.close()

    def _run(self) -> None:
        was_cut = False
        while not self._is_over:
            if was_cut and not self._is_cut:
                self._close_all()
            was_cut = self._is_cut
            with selectors.DefaultSelector() as selector:
                selector.register(self._woken, selectors.EVENT_READ)
                if not was_cut:
                    for each in (self._listener, *self._peers):
                        selector.register(each, selectors.EVENT_READ)
                ready = [key.fileobj for key, _ in selector.select()]
            for found in ready:
                assert isinstance(found, socket.socket)
                if found is self._woken:
                    self._woken.recv(RECEIVE_BYTES)
                elif found is self._listener:
                    self._accept()
                elif found in self._peers:  # not closed by what came before
                    self._pass_on(found)
        self._close_all()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        self._peers[client], self._peers[server] = server, client

    def _pass_on(self, source: socket.socket) -> None:
        peer = self._peers[source]
        with contextlib.suppress(OSError):
            data = source.recv(RECEIVE_BYTES)
            if data:
                peer.sendall(data)
                return
        for each in (source, peer):
            del self._peers[each]
            each.close()

    def _close_all(self) -> None:
        for each in self._peers:
            each.close()
        self._peers.clear()
