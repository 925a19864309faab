"""The endpoint's patience, without sockets and with a clock that jumps; and its addresses."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import trio
import trio.testing
from support.ports import ports_in_a_row

from odradek.broker.metrics.broker_pages import BrokerPages
from odradek.broker.metrics.endpoint import (
    HTTP_CONNECTIONS_MAX,
    REQUEST_SECONDS_MAX,
    MetricsEndpoint,
    bind_metrics,
    close_all,
)
from odradek.config.definition import ConfigError


async def read_all(stream: trio.abc.ReceiveStream) -> bytes:
    data = b""
    while part := await stream.receive_some():
        data += bytes(part)
    return data


def connect(nursery: trio.Nursery, served: MetricsEndpoint) -> trio.StapledStream[Any, Any]:
    ours, theirs = trio.testing.memory_stream_pair()
    nursery.start_soon(served.serve_stream, theirs)
    return ours


@pytest.fixture
def pages() -> BrokerPages:
    """Those of a broker that is not there yet."""
    return BrokerPages()


@pytest.fixture
def served(pages: BrokerPages) -> MetricsEndpoint:
    return MetricsEndpoint(pages)


async def test_a_request_that_does_not_end_is_given_up(served, autojump_clock, nursery):
    client = connect(nursery, served)
    began = trio.current_time()
    await client.send_all(b"GET /metrics HTTP/1.1\r\n")
    assert (await read_all(client)).startswith(b"HTTP/1.1 408")
    assert trio.current_time() - began == pytest.approx(REQUEST_SECONDS_MAX)


async def test_bytes_that_trickle_in_do_not_buy_more_time(served, autojump_clock, nursery):
    client = connect(nursery, served)

    async def trickle() -> None:
        for _ in range(100):
            await client.send_all(b"x")
            await trio.sleep(REQUEST_SECONDS_MAX / 10)

    nursery.start_soon(trickle)
    with trio.fail_after(REQUEST_SECONDS_MAX * 1.5):
        assert (await read_all(client)).startswith(b"HTTP/1.1 408")
    nursery.cancel_scope.cancel()


async def test_too_many_connections_are_turned_away_until_one_ends(served, autojump_clock, nursery):
    waiting = [connect(nursery, served) for _ in range(HTTP_CONNECTIONS_MAX)]
    await trio.testing.wait_all_tasks_blocked()
    late = connect(nursery, served)
    assert (await read_all(late)).startswith(b"HTTP/1.1 503")
    await waiting[0].aclose()
    await trio.testing.wait_all_tasks_blocked()
    again = connect(nursery, served)
    await again.send_all(b"GET / HTTP/1.1\r\n\r\n")
    assert (await read_all(again)).startswith(b"HTTP/1.1 404")


async def test_metrics_that_cannot_be_read_are_a_500(served, pages, nursery, caplog):
    pages.source = object()
    client = connect(nursery, served)
    await client.send_all(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert (await read_all(client)).startswith(b"HTTP/1.1 500")
    assert "/metrics could not be answered" in caplog.text


def test_port_zero_is_a_free_one_for_each_broker():
    first, second = bind_metrics("127.0.0.1:0", 2)
    ports = [each.sockets[0].getsockname()[1] for each in (first, second)]
    close_all([first, second])
    assert [first.url, second.url] == [f"http://127.0.0.1:{port}/metrics" for port in ports]
    assert ports[0] != ports[1]


@pytest.mark.parametrize("address", ["9404", "localhost", "localhost:http", "[::1:9404", "a:70000"])
def test_what_is_no_address_is_refused_with_a_sentence(address):
    with pytest.raises(ConfigError, match=r"--metrics .*: write it as HOST:PORT"):
        bind_metrics(address)


def test_there_must_be_ports_enough():
    with pytest.raises(ConfigError, match="3 brokers need 3 ports"):
        bind_metrics("127.0.0.1:65534", 3)


def test_an_address_that_is_taken_is_reported_with_the_option():
    (taken,) = bind_metrics("127.0.0.1:0")
    port = taken.sockets[0].getsockname()[1]
    try:
        with pytest.raises(ConfigError, match=rf"127.0.0.1:{port}: another program.*--metrics"):
            bind_metrics(f"127.0.0.1:{port}")
    finally:
        close_all([taken])


def test_the_next_port_is_the_next_brokers():
    with ports_in_a_row(2) as port:
        bound = bind_metrics(f"127.0.0.1:{port}", 2)
        close_all(bound)
    assert [each.url for each in bound] == [
        f"http://127.0.0.1:{port}/metrics",
        f"http://127.0.0.1:{port + 1}/metrics",
    ]


def test_a_broker_with_metrics_starts_without_prometheus_client():
    program = (
        "import sys, odradek.cli.serve.command\nimport odradek.broker.start\n"
        "import odradek.broker.metrics.broker_pages, odradek.broker.metrics.endpoint\n"
        "print(sorted({'prometheus_client', 'typer', 'rich'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
