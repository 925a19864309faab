"""A port that is held is the server's that it is held for, and nobody else's."""

from __future__ import annotations

import socket

import pytest

from odradek.testing import Broker
from odradek.testing.process.held_port import HeldPort


def test_nobody_is_there_until_the_server_is_and_again_when_it_is_gone() -> None:
    with HeldPort() as held:
        assert held.is_held
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", held.port))
            with socket.create_server(("127.0.0.1", held.port)) as server:
                socket.create_connection(server.getsockname()).close()


def test_a_program_that_does_not_share_addresses_cannot_take_it() -> None:
    with HeldPort() as held, socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", held.port))
        held.close()
        other.bind(("127.0.0.1", held.port))


def test_a_port_that_is_listened_to_cannot_be_held() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(OSError, match="in use"),
    ):
        HeldPort(server.getsockname()[1])


def test_the_port_of_a_broker_that_was_killed_stays_its_own() -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
        broker.kill()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", broker.port))
        broker.start()
        assert broker.bootstrap_servers == address
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", broker.port))
