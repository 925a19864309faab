"""What stands beside the data sources: how Spark finds them, and values decoded to columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.records import build_batch
from odradek.spark_connector import register
from odradek.spark_connector.decoding import decode_avro, decode_json

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]


def test_spark_finds_the_sources_by_itself(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A session of its own has nothing registered; its Python looks into the current folder, where
    # the modules lie that a wheel installs.
    assert Path.cwd() == ROOT
    session = spark.newSession()
    folder = tmp_path / "topic-0"
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(build_batch([(b"k", b"v", 1000, [])]))
    assert session.read.format("odradek-log").load(str(tmp_path)).count() == 1
    reader = session.read.format("odradek").option("kafka.bootstrap.servers", "127.0.0.1:1")
    assert reader.option("subscribe", "any").load().columns[0] == "key"
    register(session)
    register(session)


def test_json_is_decoded_and_poison_told(spark: Any) -> None:
    rows = [(b'{"id": 1, "name": "a"}',), (b'{"id": "x"}',), (b"nonsense",), (None,), (b"{}",)]
    frame = spark.createDataFrame(rows, "value BINARY")
    found = decode_json(frame, "id BIGINT, name STRING").collect()
    assert [row["decoded"] and tuple(row["decoded"]) for row in found] == [
        (1, "a"),
        None,
        None,
        None,
        (None, None),
    ]
    assert [row["decode_error"] is not None for row in found] == [False, True, True, False, False]


def test_avro_is_decoded_by_the_executors(spark: Any) -> None:
    pytest.importorskip("fastavro")
    schema = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "long"]}]}'
    rows = [(1, b"\x02\x54"), (2, b"\x00"), (3, b"\x02"), (4, None)]
    frame = spark.createDataFrame(rows, "id INT, value BINARY")
    found = decode_avro(frame, schema).orderBy("id").collect()
    assert [row["decoded"] and row["decoded"]["n"] for row in found] == [42, None, None, None]
    assert [row["decode_error"] is not None for row in found] == [False, False, True, False]
    assert [row["decoded"] is None for row in found] == [False, False, True, True]
