"""Record batches are bounded by bytes, and fetches by what they are decompressed to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the data sources are classes of PySpark's")

import pyarrow as pa
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.records import build_batch
from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.batch_sizes import BATCH_BYTES_MAX, batch_bytes_max, bounded
from odradek.spark_connector.kafka_source.batch_reader import range_settings
from odradek.spark_connector.kafka_source.fetch_sizes import (
    DECOMPRESSED_BYTES_MAX,
    FETCH_BYTES_MAX,
    FETCH_BYTES_MIN,
    FetchSize,
)
from odradek.spark_connector.kafka_source.offset_ranges import OffsetRange
from odradek.spark_connector.kafka_source.options import read_options
from odradek.spark_connector.kafka_source.range_reader import read_range
from odradek.spark_connector.log_source.options import columns_of, log_options
from odradek.spark_connector.log_source.reader import LogReader

MIB = 1 << 20


def test_a_batch_is_cut_into_parts_that_are_small_enough() -> None:
    sizes = [10, 4000, 0, 700, 900, 100, 1, 1, 1, 2500]
    values = [bytes(size) for size in sizes]
    headers = [[{"key": "k", "value": bytes(300)}] if number % 2 else None for number in range(10)]
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    columns = [pa.array(values, pa.binary()), pa.array(headers, kind)]
    batch = pa.RecordBatch.from_arrays(columns, ["value", "headers"])
    parts = list(bounded(batch, 2000))
    assert pa.Table.from_batches(parts).to_pylist() == batch.to_pylist()
    assert all(part.nbytes <= 2000 or part.num_rows == 1 for part in parts)
    assert max(part.num_rows for part in parts) > 1
    assert list(bounded(batch, 1 << 20)) == [batch]


def test_the_bound_is_an_option_with_a_default() -> None:
    assert batch_bytes_max({}) == BATCH_BYTES_MAX == 64 * MIB
    assert batch_bytes_max({"maxBytesPerBatch": "1000"}) == 1000
    with pytest.raises(SparkConnectorError, match="'maxBytesPerBatch' must be positive"):
        batch_bytes_max({"maxBytesPerBatch": "0"})


def test_what_log_folders_give_is_bounded(tmp_path: Path) -> None:
    folder = tmp_path / "large-0"
    folder.mkdir()
    values = [bytes(200_000)] * 20 + [bytes(3 * MIB)] + [b"x"] * 50
    batch = build_batch([(None, value, 0, []) for value in values])
    (folder / f"{0:020d}.log").write_bytes(batch)
    options = {"path": str(tmp_path), "maxBytesPerBatch": str(MIB)}
    reader = LogReader(log_options(options), columns_of(options))
    found = [each for part in reader.partitions() for each in reader.read(part)]
    assert pa.Table.from_batches(found).column("value").to_pylist() == values
    sizes = [each.nbytes for each in found if each.num_rows > 1]
    assert max(sizes) <= MIB
    assert [each.nbytes > MIB for each in found].count(True) == 1


@pytest.mark.clients
@pytest.mark.parametrize("columns", [("offset", "value"), ("offset",)])
def test_what_a_task_reads_of_large_records_is_bounded(
    broker: Any, topic: str, columns: tuple[str, ...]
) -> None:
    count, size = 60, 500_000
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "zstd"})
    for _ in range(count):
        producer.produce(topic, value=bytes(size), partition=0)
    assert producer.flush(90) == 0
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    given = read_options({**options, "maxBytesPerBatch": str(4 * MIB)}, is_stream=False)
    settings = range_settings(given, columns)
    found = list(read_range(settings, OffsetRange(topic, 0, 0, count)))
    offsets = [offset for each in found for offset in each.column("offset").to_pylist()]
    assert offsets == list(range(count))
    # What is in hand at once, whether or not the values are among the columns.
    assert max(each.num_rows for each in found) * size <= 4 * MIB


# --- Fetches ---------------------------------------------------------------------------------


def statistics(responses: int, received: int, decompressed: int) -> str:
    """What librdkafka says, as far as it is looked at."""
    brokers = {"one": {"rx": responses - 2, "rxbytes": received - 500}}
    brokers["bootstrap"] = {"rx": 2, "rxbytes": 500}
    partitions = {"0": {"rxbytes": decompressed}, "-1": {"rxbytes": 0}}
    return json.dumps({"brokers": brokers, "topics": {"t": {"partitions": partitions}}})


def after(ratio: float, fetch_bytes: int = FETCH_BYTES_MIN) -> FetchSize | None:
    size = FetchSize(fetch_bytes)
    size.note(statistics(100, 10**7, int(10**7 * ratio)))
    return size.better()


def test_a_reader_begins_with_a_batch_for_each_fetch() -> None:
    size = FetchSize()
    assert size.settings()["max.partition.fetch.bytes"] == "1"
    assert size.better() is None
    size.note(statistics(7, 10**6, 10**6))
    assert size.better() is None, "seven answers are too few to go by"
    size.note(statistics(100, 20_000, 10**6))
    assert size.better() is None, "so are some thousand bytes"


@pytest.mark.parametrize("ratio", [0.9, 1, 5, 16, 100, 250])
def test_fetches_become_as_large_as_the_compression_allows(ratio: float) -> None:
    better = after(ratio)
    assert better is not None
    assert better.fetch_bytes * ratio <= DECOMPRESSED_BYTES_MAX
    assert better.fetch_bytes <= FETCH_BYTES_MAX
    assert better.fetch_bytes >= min(FETCH_BYTES_MAX, DECOMPRESSED_BYTES_MAX / ratio * 0.9)


@pytest.mark.parametrize("ratio", [1_000, 5_000])
def test_what_is_compressed_very_well_stays_at_a_batch_for_each_fetch(ratio: float) -> None:
    assert after(ratio) is None


def test_a_bound_is_lowered_when_records_come_to_be_compressed_better() -> None:
    size = FetchSize(FETCH_BYTES_MAX)
    size.note(statistics(100, 10**8, 2 * 10**8))
    assert size.better() is None
    size.note(statistics(200, 2 * 10**8, 2 * 10**8 + 250 * 10**8))
    better = size.better()
    assert better is not None
    assert better.fetch_bytes * 250 <= DECOMPRESSED_BYTES_MAX
