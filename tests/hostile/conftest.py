"""What the tests of hostile clients share: a witness on another connection, and the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.external_broker import ExternalBroker
from support.kafka_process import KafkaProcess
from support.raw_connection import RawConnection

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

LOGGED_SECONDS_MAX = 60.0


@pytest.fixture
def connect(broker) -> Iterator[Callable[[], RawConnection]]:
    """Open raw connections to this module's broker."""
    connections = []

    def open_connection() -> RawConnection:
        connections.append(RawConnection(broker.port))
        return connections[-1]

    yield open_connection
    for connection in connections:
        connection.close()


@pytest.fixture(autouse=True)
def witness(request: pytest.FixtureRequest) -> Iterator[None]:
    """A connection of somebody else, open all through the test, and served after it."""
    if "broker" not in request.fixturenames:
        yield
        return
    with RawConnection(request.getfixturevalue("broker").port) as connection:
        connection.assert_served()
        yield
        connection.assert_served()


@pytest.fixture
def assert_logged(broker: BrokerProcess | ExternalBroker) -> Callable[[RawConnection, str], None]:
    """Assert that the broker's log tells of a connection's end, and why."""

    def check(connection: RawConnection, why: str) -> None:
        if isinstance(broker, ExternalBroker):
            return  # its log is not ours to read
        port = f":{connection.local_port}"

        def lines() -> list[str]:
            return [line for line in broker.log.splitlines() if port in line]

        # It may tell after it has closed the connection.
        wait_until(lambda: bool(lines()), LOGGED_SECONDS_MAX, lambda: f"no line names {port}")
        reported = lines()
        if isinstance(broker, KafkaProcess):
            reported = [broker.log]  # the reason stands in the stack trace below
        assert any(why in line for line in reported), f"{why!r} is not told in {reported}"

    return check
