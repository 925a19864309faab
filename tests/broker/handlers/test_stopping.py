"""A broker that is stopped while clients wait for it ends in good order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from odradek.bench.loads.wire import frame_of
from odradek.broker.start import make_broker
from odradek.config.broker_config import BrokerConfig
from odradek.controller.topics.planning import TopicCreation
from odradek.metadata.metadata_waiting import partitions_are_led, wait_for_metadata
from odradek.protocol import messages
from odradek.runtime import long_work
from odradek.storage.file_names import CLEAN_SHUTDOWN_FILE

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 300
LONG_MS = 3_600_000


@pytest.mark.parametrize("requests", [1, 2], ids=["the first of a connection", "a later one"])
async def test_a_fetch_of_many_partitions_waits_while_the_broker_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    """What is read for it takes tasks, and none can be started any more."""
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data")}
    broker = await make_broker(BrokerConfig.from_sources({}, settings))
    ready = trio.Event()
    fetch = messages.FetchRequest
    partitions = [
        fetch.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1 << 20)
        for number in range(PARTITIONS)
    ]
    topics = [fetch.FetchTopic(topic="wide", partitions=partitions)]
    waiting = broker.replica_manager.delayed_fetch
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.run, lambda advertised: ready.set())
            await ready.wait()
            (made,) = await broker.controller.create_topics([TopicCreation("wide", PARTITIONS, 1)])
            assert made.error is None
            shown = partitions_are_led([("wide", PARTITIONS)])
            assert await wait_for_metadata(broker.metadata_cache, shown, LONG_MS)
            port = broker.server.bound[0].port
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                for number in range(1, requests + 1):
                    max_wait_ms = LONG_MS if number == requests else 1
                    request = fetch(
                        session_epoch=-1, min_bytes=1, max_wait_ms=max_wait_ms, topics=topics
                    )
                    await stream.send_all(frame_of(request, 11))
                    if number < requests:
                        await stream.receive_some()
                while not waiting.sizes()[0]:
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
    assert (tmp_path / "data" / CLEAN_SHUTDOWN_FILE).exists()
