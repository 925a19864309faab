"""How many connections there may be, and how fast they come: a real broker and real sockets.

Nothing is said of how long anything takes but by the limit itself: so many connections cannot have
been served in less time, however fast the machine; however slow it is, they may take longer.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Event, Thread
from typing import NamedTuple

import pytest
from kafka.protocol.metadata import ApiVersionsRequest
from support.raw_connection import RawConnection

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.process.held_port import HeldPort
from odradek.testing.waiting import wait_until

CLIENTS, OTHERS, BROKERS = "CLIENTS", "OTHERS", "BROKERS"
HOST, ANOTHER, THIRD = "127.0.0.1", "127.0.0.2", "127.0.0.3"
RATE = 10
TWO_WINDOWS = {"quota.window.num": "2"}
"""As much as comes in one second may come at once, and no more."""
SETTLED_SECONDS = 60.0


class Listening(NamedTuple):
    """A broker and the ports of its listeners."""

    broker: BrokerProcess
    ports: dict[str, int]

    def connect(self, listener: str = CLIENTS, source: str = HOST) -> RawConnection:
        return RawConnection(self.ports[listener], source=source)

    def quotas(self, verb: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "odradek", "quotas", verb, *arguments]
        bootstrap = f"{HOST}:{self.ports[BROKERS]}"
        subprocess.run([*command, "--bootstrap-server", bootstrap], check=True, capture_output=True)


Listen = Callable[..., Listening]


@pytest.fixture
def listen(start_broker) -> Iterator[Listen]:
    with ExitStack() as stack:

        def start(**settings: str) -> Listening:
            names = (CLIENTS, OTHERS, BROKERS)
            ports = {name: stack.enter_context(HeldPort()).port for name in names}
            given = {
                "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
                "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
                "inter.broker.listener.name": BROKERS,
                **TWO_WINDOWS,
                **settings,
            }
            return Listening(start_broker(settings=given), ports)

        yield start


def serve(at: Listening, count: int, listener: str = CLIENTS) -> float:
    """Make connections one after the other, each served; returns the seconds that took."""
    began = time.monotonic()
    for _ in range(count):
        with at.connect(listener) as connection:
            connection.assert_served()
    return time.monotonic() - began


def burst(at: Listening, source: str, count: int) -> tuple[int, float]:
    """Make connections at once; returns how many were served, and how long making them took."""
    began = time.monotonic()
    with ExitStack() as stack:
        made = [stack.enter_context(at.connect(source=source)) for _ in range(count)]
        for connection in made:
            connection.send(ApiVersionsRequest(), 0)
        took = time.monotonic() - began
        served = 0
        for connection in made:
            try:
                connection.receive_frame()
            except ConnectionError:
                continue
            served += 1
    return served, took


@pytest.mark.parametrize("setting", ["max.connection.creation.rate", "listener"])
def test_no_more_connections_a_second_than_the_rate(listen: Listen, setting: str) -> None:
    key = "max.connection.creation.rate"
    name = key if setting == key else f"listener.name.{CLIENTS.lower()}.{key}"
    at = listen(**{name: str(RATE)})
    count = 3 * RATE
    # What comes in a second may come at once, and the last one is served before the pause.
    assert serve(at, count) >= (count - RATE - 1) / (1.1 * RATE)


def test_a_listener_that_pauses_stops_no_other_one(listen: Listen) -> None:
    at = listen(**{f"listener.name.{CLIENTS.lower()}.max.connection.creation.rate": "1"})
    done = Event()

    def slowly() -> None:
        serve(at, 8)
        done.set()

    thread = Thread(target=slowly)
    thread.start()
    for listener in (OTHERS, BROKERS):
        serve(at, 16, listener)
    assert not done.is_set()
    thread.join()


def test_brokers_do_not_wait_for_the_brokers_rate(listen: Listen) -> None:
    """A listener without a rate of its own has the broker's, that of brokers, too, as in Kafka."""
    plenty = {
        f"listener.name.{name.lower()}.max.connection.creation.rate": "1000"
        for name in (OTHERS, BROKERS)
    }
    at = listen(**{"max.connection.creation.rate": "1", **plenty})
    done = Event()

    def slowly() -> None:
        serve(at, 8, OTHERS)
        done.set()

    thread = Thread(target=slowly)
    thread.start()
    serve(at, 16, BROKERS)
    assert not done.is_set()
    thread.join()


def test_addresses_have_rates_that_change_while_the_broker_runs(listen: Listen) -> None:
    at = listen()
    count = 3 * RATE
    assert burst(at, ANOTHER, count)[0] == count

    at.quotas("set", "--ip", ANOTHER, f"connection_creation_rate={RATE}")
    served, took = burst(at, ANOTHER, count)
    assert served <= RATE * (1 + 1.1 * took) + 1
    assert served >= RATE
    for source in (HOST, THIRD):
        assert burst(at, source, count)[0] == count

    at.quotas("set", "--ip-defaults", f"connection_creation_rate={RATE}")
    served, took = burst(at, THIRD, count)
    assert RATE <= served <= RATE * (1 + 1.1 * took) + 1
    at.quotas("set", "--ip", ANOTHER, "connection_creation_rate=100000")
    assert burst(at, ANOTHER, count)[0] == count

    at.quotas("remove", "--ip-defaults", "connection_creation_rate")
    assert burst(at, THIRD, count)[0] == count


def test_a_listeners_limit_and_what_is_beyond_waits_for_an_end(listen: Listen) -> None:
    at = listen(**{f"listener.name.{CLIENTS.lower()}.max.connections": "2"})
    with ExitStack() as stack:
        first, second = (stack.enter_context(at.connect()) for _ in range(2))
        for each in (first, second):
            each.assert_served()
        third = stack.enter_context(at.connect())
        third.send(ApiVersionsRequest(), 0)
        for listener in (OTHERS, BROKERS):
            serve(at, 5, listener)
        first.assert_served()
        assert third.is_silent
        second.close()
        assert third.receive_frame()


def test_addresses_may_have_as_many_as_the_overrides_say(listen: Listen) -> None:
    at = listen(
        **{
            "max.connections.per.ip": "100",
            "max.connections.per.ip.overrides": f"{ANOTHER}:2,{THIRD}:0",
        }
    )
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(at.connect(source=ANOTHER)).assert_served()
        for source in (ANOTHER, THIRD):
            assert burst(at, source, 3)[0] == 0
        assert burst(at, HOST, 20)[0] == 20
    # The two are gone, as soon as the broker has seen it.
    wait_until(
        lambda: burst(at, ANOTHER, 2)[0] == 2, SETTLED_SECONDS, "no connection is admitted again"
    )
