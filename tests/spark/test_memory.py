"""Large records that are compressed well, read by a Spark with little memory."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from support.memory_driver import Work
from support.peak_memory import MARK, PeakMemory
from support.standalone_spark import StandaloneSpark

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

DRIVER = Path(__file__).parents[1] / "support" / "memory_driver.py"
DRIVER_SECONDS_MAX = 600
PEAK_MB_MAX = 400
RATIO = 250
LARGEST = 20_000_000
BROKER_SETTINGS = {
    "message.max.bytes": str(LARGEST),
    "replica.fetch.max.bytes": str(LARGEST),
}


def fill(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    """Records that are a batch each, in two partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result()
    settings = {"bootstrap.servers": bootstrap, "compression.type": "zstd"}
    producer = Producer({**settings, "message.max.bytes": LARGEST, "batch.size": len(value)})
    for number in range(count):
        producer.produce(topic, value=value, partition=number % 2)
        producer.poll(0)
        if number % 20 == 19:
            producer.flush(90)
    assert producer.flush(90) == 0


@pytest.mark.parametrize("master", ["local[2]", pytest.param("standalone", marks=pytest.mark.soak)])
def test_large_records_are_read_in_little_memory(
    broker: Any, topic: str, tmp_path: Path, master: str
) -> None:
    thousands, tens = f"{topic}-zeros", f"{topic}-ratio-{RATIO}"
    fill(broker.bootstrap, thousands, bytes(1_000_000), 1_000)
    noise = random.Random(1).randbytes(10_000_000 // RATIO)
    fill(broker.bootstrap, tens, noise + bytes(10_000_000 - len(noise)), 100)
    with ExitStack() as stack:
        url = master
        if master == "standalone":
            url = stack.enter_context(StandaloneSpark(tmp_path)).url
        environment = {MARK: topic, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        work = Work(url, broker.bootstrap, [thousands, tens], environment)
        peak = stack.enter_context(PeakMemory(topic))
        done = subprocess.run(
            [sys.executable, str(DRIVER), json.dumps(work._asdict())],
            capture_output=True,
            text=True,
            timeout=DRIVER_SECONDS_MAX,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        thousands: [1_000, 1_000 * 1_000_000],
        tens: [100, 100 * 10_000_000],
    }
    assert peak.workers >= 2
    assert peak.megabytes < PEAK_MB_MAX
