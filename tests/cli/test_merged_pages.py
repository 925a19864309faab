"""One page of metrics of several brokers' pages, as Prometheus would read it."""

from __future__ import annotations

import io
import json

from prometheus_client import CollectorRegistry, Counter, Gauge, Summary, generate_latest
from support.metrics_page import MetricsPage

from odradek.broker.metrics.http_request import HEALTH_PATH, METRICS_PATH, READY_PATH
from odradek.cli.serve.processes.broker_child import BrokerChild
from odradek.cli.serve.processes.merged_log import MergedLog
from odradek.cli.serve.processes.merged_pages import MergedPages, merged


def page_of(leaders: int, client_id: str) -> str:
    registry = CollectorRegistry()
    Gauge("leaders", "Partitions that are led.", registry=registry).set(leaders)
    pushed = Counter("pushed", "By clients.", ["client_id", "broker"], registry=registry)
    pushed.labels(client_id, "another").inc(3)
    Gauge("info", "Who it is.", ["broker"], registry=registry).labels(str(leaders)).set(1)
    Summary("times", "Of requests.", ["request"], registry=registry).labels("Fetch").observe(2.5)
    text: bytes = generate_latest(registry)
    return text.decode()


def test_every_sample_says_which_broker_it_is_of() -> None:
    page = MetricsPage(merged({1: page_of(1, "one"), 2: page_of(2, "two")}))
    for number, client_id in ((1, "one"), (2, "two")):
        assert page.of("leaders", broker=number) == number
        assert page.of("times_sum", broker=number, request="Fetch") == 2.5
        pushed = {"broker": number, "client_id": client_id, "exported_broker": "another"}
        assert page.of("pushed_total", **pushed) == 3
        assert page.of("info", broker=number) == 1
    assert [family.name for family in page.families].count("leaders") == 1
    assert {family.type for family in page.families if family.name == "times"} == {"summary"}


def test_a_value_that_looks_like_the_label_is_none() -> None:
    hostile = 'a",broker="9"} 1\n\\,broker='
    page = MetricsPage(merged({1: page_of(1, hostile)}))
    assert page.of("pushed_total", broker=1, client_id=hostile, exported_broker="another") == 3


def test_what_one_broker_alone_has_stands_there_once() -> None:
    page = MetricsPage(merged({1: "", 2: page_of(2, "two")}))
    assert page.of("leaders", broker=2) == 2
    assert merged({}) == ""


async def test_a_broker_between_two_lives_is_no_reason_to_restart_the_others() -> None:
    child = BrokerChild(2, {"listeners": "PLAINTEXT://:0"}, (), MergedLog(io.StringIO(), "text"))
    pages = MergedPages([child])
    answers = {path: await pages.answer(path) for path in (HEALTH_PATH, READY_PATH)}
    for path, status, verdict in ((HEALTH_PATH, 200, "warning"), (READY_PATH, 503, "failing")):
        head, body = answers[path]
        assert head.startswith(b"HTTP/1.1 %d " % status)
        answered = json.loads(body)
        assert answered["status"] == verdict
        assert answered["reasons"] == ["broker 2: its process has ended"]
    _, page = await pages.answer(METRICS_PATH)
    assert MetricsPage(page.decode()).of("odradek_broker_up", broker=2) == 0
