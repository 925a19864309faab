"""`/health` and `/ready` of a broker, over HTTP, from before its start to after its end."""

from __future__ import annotations

import errno
import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from support.metrics_page import MetricsPage
from support.one_broker import Client, make, run_with

from odradek.broker.metrics.broker_pages import BrokerPages
from odradek.broker.metrics.endpoint import MetricsEndpoint, bind_metrics
from odradek.broker.start import metrics_context
from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.records import build_batch

Topic = CreateTopicsRequest.CreatableTopic
NOW_MS = 1_700_000_000_000


class Answered(NamedTuple):
    status: int
    content: str

    @property
    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.content))


class Probe:
    """Somebody who asks an endpoint how its broker is."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.pages = BrokerPages()
        (listener,) = bind_metrics("127.0.0.1:0")
        self._base = listener.url.removesuffix("/metrics")
        nursery.start_soon(MetricsEndpoint(self.pages).serve, listener)

    async def get(self, path: str) -> Answered:
        return await trio.to_thread.run_sync(self._get, path)

    def _get(self, path: str) -> Answered:
        try:
            with urllib.request.urlopen(self._base + path, timeout=60) as response:
                return Answered(response.status, response.read().decode())
        except urllib.error.HTTPError as error:
            return Answered(error.code, error.read().decode())

    async def metrics(self) -> MetricsPage:
        answered = await self.get("/metrics")
        assert answered.status == 200, answered.content
        return MetricsPage(answered.content)


@pytest.fixture
def probe(nursery: trio.Nursery) -> Probe:
    return Probe(nursery)


async def test_a_broker_that_loads_its_logs_is_well_and_not_ready(probe: Probe) -> None:
    health, ready = await probe.get("/health"), await probe.get("/ready")
    assert (health.status, health.json["status"]) == (200, "ok")
    assert ready.status == 503
    assert health.json["state"] == ready.json["state"] == "starting"
    assert ready.json["reasons"] == ["the metadata store is being opened and the logs loaded"]
    assert (await probe.get("/metrics")).status == 503


async def test_it_is_ready_while_it_serves(probe: Probe, tmp_path: Path) -> None:
    broker = await make(tmp_path / "data")
    probe.pages.source = metrics_context(broker)
    ready = await probe.get("/ready")
    assert ready.status == 503
    assert ready.json["reasons"][0] == "the broker is starting"
    assert (await probe.metrics())["kafka_server_kafkaserver_brokerstate"] == 1

    async def act() -> None:
        ready = await probe.get("/ready")
        assert (ready.status, ready.json["reasons"]) == (200, [])
        assert ready.json["state"] == "running"
        assert ready.json["broker_id"] == broker.broker_id
        assert ready.json["cluster_id"] == broker.cluster_id
        health = await probe.get("/health")
        path = str(tmp_path / "data")
        directory = {"path": path, "online": True, "disk_full": False}
        assert (health.status, health.json["log_directories"]) == (200, [directory])
        assert (await probe.metrics())["kafka_server_kafkaserver_brokerstate"] == 3

    await run_with(broker, act)
    ready = await probe.get("/ready")
    assert ready.status == 503
    assert ready.json["reasons"] == ["the broker is shutting down"]
    assert (await probe.metrics())["kafka_server_kafkaserver_brokerstate"] == 7


async def test_it_is_not_ready_without_its_clusters_metadata(probe: Probe, tmp_path: Path) -> None:
    broker = await make(tmp_path / "data")
    probe.pages.source = metrics_context(broker)

    async def act() -> None:
        broker.metadata_cache.snapshot = broker.metadata_cache.snapshot._replace(alive_brokers={})
        ready = await probe.get("/ready")
        assert ready.status == 503
        assert "does not count this broker" in ready.json["reasons"][0]

    await run_with(broker, act)


async def test_a_full_disk_and_an_offline_directory_are_named(
    probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sound = str(tmp_path / "one"), str(tmp_path / "two")
    broker = await make(tmp_path, {"log.dirs": f"{sound},{broken}"})
    probe.pages.source = metrics_context(broker)

    async def act() -> None:
        client = await Client.to(broker)
        topic = Topic(name="t", num_partitions=1, replication_factor=1)
        await client.call(5, CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
        (log,) = broker.log_manager.logs.values()

        def full(descriptor: int, buffers: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "writev", full)
            partition = ProduceRequest.PartitionProduceData(
                index=0, records=bytes(build_batch([(None, b"lost", NOW_MS, ())]))
            )
            data = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
            request = ProduceRequest(acks=1, timeout_ms=60_000, topic_data=[data])
            await client.call(9, request)
        health = await probe.get("/health")
        assert (health.status, health.json["status"]) == (200, "warning")
        full_ones = {each["path"]: each["disk_full"] for each in health.json["log_directories"]}
        assert full_ones == {path: path == log.log_dir for path in (sound, broken)}
        page = await probe.metrics()
        assert page.of("odradek_log_directory_full", logDirectory=log.log_dir) == 1
        refused = {"error": "KAFKA_STORAGE_ERROR", "logDirectory": log.log_dir}
        assert page.of("odradek_refused_writes_total", **refused) == 1
        assert page["kafka_log_logmanager_offlinelogdirectorycount"] == 0

        broker.log_manager.disk_failed(broken, OSError(errno.EIO, "Input/output error"))
        broker.replica_manager.flush()
        health = await probe.get("/health")
        assert (health.status, health.json["status"]) == (503, "failing")
        assert health.json["reasons"][0].startswith(f"log directory {broken} is offline: ")
        page = await probe.metrics()
        assert page["kafka_log_logmanager_offlinelogdirectorycount"] == 1
        assert page.of("kafka_log_logmanager_logdirectoryoffline", logDirectory=broken) == 1
        assert (await probe.get("/ready")).status == 200

    await run_with(broker, act)
