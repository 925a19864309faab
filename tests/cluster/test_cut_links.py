"""Links between brokers are cut for good and made whole again, each pair by itself."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from support.cut_links import Cut, CuttableLinks

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import request_header

pytestmark = pytest.mark.short

SECONDS_MAX = 60
SILENCE_SECONDS = 0.3


class Echo:
    """A server that sends back what it gets."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(1024):
                    connection.sendall(data)
            except OSError:
                pass

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def links() -> Iterator[CuttableLinks]:
    servers = {broker_id: Echo() for broker_id in (1, 2, 3)}
    with CuttableLinks({broker_id: echo.port for broker_id, echo in servers.items()}) as links:
        yield links
    for echo in servers.values():
        echo.close()


def connect(links: CuttableLinks, client_id: str, target: int) -> socket.socket:
    """As a broker does whose client id this is; its first request comes back to it."""
    connection = socket.create_connection(("127.0.0.1", links.ports[target]), SECONDS_MAX)
    connection.settimeout(SECONDS_MAX)
    header = bytes(request_header(ApiKey.FETCH, 12, 1, client_id))
    connection.sendall(len(header).to_bytes(4, "big") + header)
    return connection


def answered(connection: socket.socket, size: int = 10_000) -> bytes:
    return connection.recv(size)


def open_link(links: CuttableLinks, client_id: str, target: int) -> socket.socket:
    connection = connect(links, client_id, target)
    assert client_id.encode() in answered(connection)
    return connection


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(SILENCE_SECONDS)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(SECONDS_MAX)
    return False


def is_over(work: Callable[[], bytes]) -> bool:
    try:
        return work() == b""
    except ConnectionError:
        return True


def test_whatever_a_broker_calls_itself_its_link_is_found(links: CuttableLinks) -> None:
    names = ["1", "broker-1-fetcher-0", "odradek-forwarded-by-broker-1"]
    connections = [open_link(links, name, 2) for name in names]
    assert links.connection_count((1, 2)) == 3
    assert not links.strangers
    open_link(links, "rdkafka", 2)
    assert links.strangers == {b"rdkafka"}
    links.cut((1, 2), Cut.RESET)
    assert all(is_over(lambda each=each: answered(each)) for each in connections)


def test_a_silent_cut_holds_what_is_sent_either_way_until_it_is_healed(
    links: CuttableLinks,
) -> None:
    there, back = open_link(links, "1", 2), open_link(links, "2", 1)
    links.cut((1, 2), Cut.SILENT)
    new = connect(links, "1", 2)
    there.sendall(b"x")
    back.sendall(b"y")
    assert is_silent(there)
    assert is_silent(back)
    assert is_silent(new)
    links.heal((2, 1))
    assert answered(there) == b"x"
    assert answered(back) == b"y"
    assert answered(new)


def test_a_reset_cut_ends_connections_and_refuses_new_ones_until_it_is_healed(
    links: CuttableLinks,
) -> None:
    there, back = open_link(links, "1", 2), open_link(links, "2", 1)
    links.cut((1, 2), Cut.RESET)
    assert is_over(lambda: answered(there))
    assert is_over(lambda: answered(back))
    assert is_over(lambda: answered(connect(links, "1", 2)))
    links.heal((1, 2))
    open_link(links, "1", 2)


@pytest.mark.parametrize("how", list(Cut))
def test_the_links_of_others_stay_whole(links: CuttableLinks, how: Cut) -> None:
    others = [open_link(links, "1", 3), open_link(links, "3", 1), open_link(links, "2", 3)]
    links.cut((1, 2), how)
    for number, other in enumerate(others):
        other.sendall(b"%d" % number)
        assert answered(other) == b"%d" % number
