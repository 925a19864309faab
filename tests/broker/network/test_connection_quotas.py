"""How many connections there may be, whose are refused, and which make way."""

from __future__ import annotations

import io

import pytest

from odradek.broker.network import connection_quotas
from odradek.broker.network.connection_quotas import (
    DESCRIPTORS,
    MAX,
    PER_IP,
    UNLIMITED,
    UNREAD,
    ConnectionQuotas,
    TooManyConnections,
    host_of,
    logger,
)
from odradek.common.log_lines import LimitedLogHandler
from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.runtime.clock import ManualClock

TWO_LISTENERS = {
    "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
}


class Accepted:
    """A connection that knows how it is doing."""

    def __init__(self, bench: Bench, host: str, listener_name: str) -> None:
        self.bench = bench
        self.host = host
        self.listener_name = listener_name
        self.accepted_ms = bench.clock.monotonic_ms()
        self.last_used_ms = -1
        self.is_idle = True
        self.has_logged_in = True
        self.is_open = True

    def use(self) -> None:
        self.last_used_ms = self.bench.clock.monotonic_ms()

    def evict(self) -> None:
        self.is_open = False


class Bench:
    """Quotas, and connections that come a millisecond apart."""

    def __init__(
        self, connections_max: int = UNLIMITED, scarce_from: int = UNLIMITED, **settings: str
    ) -> None:
        self.clock = ManualClock()
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = DynamicConfig(BrokerConfig.from_sources(named))
        self.quotas = ConnectionQuotas(self.config, self.clock, connections_max, scarce_from)

    def come(
        self, host: str = "10.0.0.1", listener_name: str = "PLAINTEXT", descriptor: int = 9
    ) -> Accepted:
        self.clock.advance(1)
        accepted = Accepted(self, host, listener_name)
        self.quotas.admit(accepted, descriptor)
        return accepted


# --- Kafka's limits ------------------------------------------------------------------------


def test_an_address_has_as_many_as_it_may_and_others_have_theirs() -> None:
    bench = Bench(max_connections_per_ip="2")
    first, _ = bench.come("10.0.0.1"), bench.come("10.0.0.1")
    with pytest.raises(TooManyConnections):
        bench.come("10.0.0.1")
    bench.come("10.0.0.2")
    bench.quotas.release(first)
    bench.come("10.0.0.1")
    assert bench.quotas.refused == {PER_IP: 1}
    assert len(bench.quotas) == 3


def test_overrides_name_addresses_and_hosts() -> None:
    overrides = "10.0.0.1:1, localhost:2,[::1]:0"
    bench = Bench(max_connections_per_ip="0", max_connections_per_ip_overrides=overrides)
    bench.come("10.0.0.1")
    bench.come("127.0.0.1")
    bench.come("127.0.0.1")
    for host in ("10.0.0.1", "127.0.0.1", "::1", "10.0.0.2"):
        with pytest.raises(TooManyConnections):
            bench.come(host)


def test_limits_of_addresses_change_while_the_broker_runs() -> None:
    bench = Bench()
    bench.come("10.0.0.1")
    bench.config.change({"max.connections.per.ip": "1"}, per_broker=True)
    with pytest.raises(TooManyConnections):
        bench.come("10.0.0.1")
    overrides = {"max.connections.per.ip.overrides": "10.0.0.1:2"}
    bench.config.change({**overrides, "max.connections.per.ip": "1"}, per_broker=True)
    bench.come("10.0.0.1")


def test_nothing_is_accepted_at_max_connections_until_one_ends() -> None:
    bench = Bench(max_connections="2")
    slots: list[int] = []
    bench.quotas.on_slot.append(lambda: slots.append(1))
    first, second = bench.come(), bench.come()
    assert not bench.quotas.has_slot("PLAINTEXT")
    assert [first.is_open, second.is_open] == [True, True]
    bench.quotas.release(first)
    assert bench.quotas.has_slot("PLAINTEXT")
    assert slots == [1]
    bench.quotas.release(first)  # once is enough
    assert len(bench.quotas) == 1


def test_a_listener_has_a_limit_of_its_own() -> None:
    config = DynamicConfig(
        BrokerConfig.from_sources({**TWO_LISTENERS, "listener.name.clients.max.connections": "1"})
    )
    quotas = ConnectionQuotas(config, ManualClock())
    quotas.admit(Accepted(Bench(), "10.0.0.1", "CLIENTS"), 9)
    assert not quotas.has_slot("CLIENTS")
    assert quotas.has_slot("BROKERS")


def test_brokers_come_in_above_the_limit_and_the_longest_unused_client_goes() -> None:
    bench = Bench()
    bench.config = DynamicConfig(
        BrokerConfig.from_sources({**TWO_LISTENERS, "max.connections": "2"})
    )
    bench.quotas = ConnectionQuotas(bench.config, bench.clock)
    first, second = bench.come(listener_name="CLIENTS"), bench.come(listener_name="CLIENTS")
    bench.clock.advance(1)
    first.use()
    assert not bench.quotas.has_slot("CLIENTS")
    assert bench.quotas.has_slot("BROKERS")
    broker = bench.come(listener_name="BROKERS")
    assert (first.is_open, second.is_open, broker.is_open) == (True, False, True)
    assert len(bench.quotas) == 2


def test_what_makes_way_for_a_broker_is_of_the_address_with_the_most_connections() -> None:
    bench = Bench()
    bench.config = DynamicConfig(
        BrokerConfig.from_sources({**TWO_LISTENERS, "max.connections": "4"})
    )
    bench.quotas = ConnectionQuotas(bench.config, bench.clock)
    bench.come("10.0.0.9", "BROKERS").use()
    clients = [bench.come(host, "CLIENTS") for host in ("10.0.0.2", "10.0.0.1", "10.0.0.1")]
    clients[1].is_idle = False
    bench.come("10.0.0.9", "BROKERS")
    assert [each.is_open for each in clients] == [True, True, False]
    assert bench.quotas.refused == {MAX: 1}


# --- descriptors -----------------------------------------------------------------------------


def test_the_busiest_address_makes_way_and_its_unused_connections_first() -> None:
    bench = Bench(connections_max=5)
    good = bench.come("10.0.0.9")
    used = bench.come("10.0.0.1")
    used.use()
    unused = [bench.come("10.0.0.1") for _ in range(3)]
    newest = bench.come("10.0.0.9")
    assert [each.is_open for each in unused] == [False, True, True]
    assert [good.is_open, used.is_open, newest.is_open] == [True] * 3
    for _ in range(2):
        bench.come("10.0.0.1")
    assert [each.is_open for each in unused] == [False, False, False]
    assert [good.is_open, used.is_open] == [True, True]
    assert len(bench.quotas) == 5
    assert bench.quotas.refused == {DESCRIPTORS: 3}


def test_one_that_has_not_logged_in_goes_before_one_that_has_and_idles_longer() -> None:
    bench = Bench(connections_max=3)
    good, *strangers = bench.come(), bench.come(), bench.come()
    for each in (good, *strangers):
        bench.clock.advance(1)
        each.use()
        each.has_logged_in = each is good
    bench.come()
    bench.come()
    assert [each.is_open for each in (good, *strangers)] == [True, False, False]


def test_of_those_that_were_used_the_longest_idle_goes() -> None:
    bench = Bench(connections_max=3)
    busy, older, newer = bench.come(), bench.come(), bench.come()
    for each in (busy, older, newer):
        bench.clock.advance(1)
        each.use()
    busy.is_idle = False
    bench.come()
    assert (busy.is_open, older.is_open, newer.is_open) == (True, False, True)


def test_without_an_idle_one_the_longest_unused_of_the_busiest_goes() -> None:
    bench = Bench(connections_max=3)
    waiting = [bench.come("10.0.0.1"), bench.come("10.0.0.1"), bench.come("10.0.0.2")]
    for each in waiting:
        each.use()
        each.is_idle = False
    bench.come("10.0.0.3")
    assert [each.is_open for each in waiting] == [False, True, True]


def test_one_that_was_used_since_it_was_chosen_stays() -> None:
    bench = Bench(connections_max=64)
    many = [bench.come() for _ in range(64)]
    bench.come()  # chooses some
    assert not many[0].is_open
    many[1].use()
    bench.come()
    assert many[1].is_open
    assert not many[2].is_open


def test_a_high_descriptor_makes_way_whatever_was_counted() -> None:
    bench = Bench(scarce_from=100)
    first, second = bench.come(descriptor=98), bench.come(descriptor=99)
    third = bench.come(descriptor=100)
    assert (first.is_open, second.is_open, third.is_open) == (False, True, True)


def test_with_nobody_to_close_it_is_refused() -> None:
    bench = Bench(scarce_from=100)
    with pytest.raises(TooManyConnections):
        bench.come(descriptor=100)
    assert not bench.quotas.make_way()


def test_connections_closed_for_one_reason_are_one_class_of_the_log() -> None:
    stream = io.StringIO()
    handler = LimitedLogHandler(stream)
    logger.addHandler(handler)
    try:
        bench = Bench(connections_max=4)
        for _ in range(1000):
            bench.come()
    finally:
        logger.removeHandler(handler)
    assert bench.quotas.refused == {DESCRIPTORS: 996}
    handler.close()
    line, count = stream.getvalue().splitlines()
    assert line.startswith("a connection is closed by file descriptors: ")
    assert count.startswith("995 more like this followed: ")


# --- answers that nobody reads --------------------------------------------------------------


@pytest.fixture
def hundred_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many may be unread."""
    monkeypatch.setattr(connection_quotas, "UNREAD_BYTES_MAX", 100)


@pytest.mark.usefixtures("hundred_bytes")
def test_whose_client_has_taken_nothing_for_longest_is_closed_for_unread_answers() -> None:
    bench = Bench()
    first, second, third = bench.come(), bench.come(), bench.come()
    bench.quotas.note_unread(first, 40, took_some=False)
    bench.quotas.note_unread(second, 40, took_some=False)
    bench.quotas.note_unread(first, 30, took_some=True)
    assert bench.quotas.unread_bytes == 70
    bench.quotas.note_unread(third, 31, took_some=False)
    assert [first.is_open, second.is_open, third.is_open] == [True, False, True]
    assert bench.quotas.unread_bytes == 61
    assert bench.quotas.refused == {UNREAD: 1}
    assert len(bench.quotas) == 2


@pytest.mark.usefixtures("hundred_bytes")
def test_answers_that_are_read_or_gone_with_their_connection_do_not_count() -> None:
    bench = Bench()
    first, second, third = bench.come(), bench.come(), bench.come()
    bench.quotas.note_unread(first, 90, took_some=False)
    bench.quotas.note_all_read(first)
    bench.quotas.note_unread(second, 90, took_some=False)
    bench.quotas.release(second)
    bench.quotas.note_unread(third, 90, took_some=False)
    assert bench.quotas.unread_bytes == 90
    assert not bench.quotas.refused


@pytest.mark.usefixtures("hundred_bytes")
def test_an_answer_of_any_size_is_kept_where_no_other_waits() -> None:
    bench = Bench()
    alone = bench.come()
    bench.quotas.note_unread(alone, 101, took_some=False)
    assert alone.is_open


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("127.0.0.1:9", "127.0.0.1"),
        ("[::1]:9", "::1"),
        ("[::ffff:10.0.0.1]:9", "10.0.0.1"),
    ],
)
def test_the_address_of_a_peer(peer: str, host: str) -> None:
    assert host_of(peer) == host
