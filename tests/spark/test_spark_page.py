"""The blocks of docs/spark.md: Python runs in one session, in the page's order.

The page's addresses and folders are those of a broker of the test's own.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.documented import blocks_of
from support.schema_registry_server import schema_registry

from odradek.spark_connector.decoding import Schema, SchemaRegistry, encode_values
from odradek.spark_connector.pipelines.audit.expectations import read_expectations
from odradek.spark_connector.pipelines.lineage import LineageJob, lineage_to

PAGE = "docs/spark.md"
OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "customer", "type": "string", "default": ""}]}


@pytest.mark.spark
def test_the_blocks_of_python_run(
    spark: Any,
    start_broker: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("odradek.spark_connector.spark_session", lambda name: spark)
    folder = tmp_path / "data"
    broker = start_broker(data_dir=folder)
    first, by_odradek, by_log, decoded, dead, encoded, plain = blocks_of(PAGE, "python")
    with schema_registry() as server:
        frame = spark.createDataFrame([(b"1", 1, "alice")], "key BINARY, id LONG, customer STRING")
        frame = frame.selectExpr("key", "struct(id, customer) AS decoded")
        orders = encode_values(frame, server.url, "orders-value", Schema("AVRO", json.dumps(NEW)))
        produced = orders.select("key", "value").write.format("kafka")
        produced = produced.option("kafka.bootstrap.servers", broker.bootstrap)
        produced.option("topic", "events").mode("append").save()

        page = {
            "127.0.0.1:9092": broker.bootstrap,
            '"kafka.bootstrap.servers", "..."': f'"kafka.bootstrap.servers", "{broker.bootstrap}"',
            "http://localhost:8081": server.url,
            "/var/lib/kafka/data": str(folder),
            "/copies/1": str(folder),
            "/copies/2": str(folder),
        }
        names: dict[str, Any] = {
            "frame": frame,
            "text": json.dumps(NEW),
            "registry": SchemaRegistry(server.url),
            "schema": json.dumps(NEW),
            "old": json.dumps(OLD),
        }

        def run(text: str) -> Any:
            """Run a block; returns what its last line is worth."""
            for here, there in page.items():
                text = text.replace(here, there)
            *lines, last = (ast.unparse(each) for each in ast.parse(text).body)
            exec("\n".join(lines), names)
            return eval(last, names)

        run(first.text + "records")
        assert names["records"].count() == 1
        assert run(by_odradek.text).count() == 1
        assert run(by_log.text).count() == 1  # One folder, named twice.
        assert run(decoded.text).first()["customer"] == "alice"
        run(dead.text)
        assert (names["good"].count(), names["dead"].count()) == (1, 0)
        run(encoded.text)
        assert names["encoded"].count() == 1
        assert "decode_error" in run(plain.text).columns


@pytest.mark.short
def test_the_file_of_expectations_is_one(tmp_path: Path) -> None:
    (block,) = blocks_of(PAGE, "toml")
    path = tmp_path / "orders.toml"
    path.write_text(block.text)
    kinds = [each.kind for each in read_expectations(path)]
    assert kinds == ["range", "referential", "volume"]


@pytest.mark.short
def test_the_configuration_of_lineage_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = blocks_of(PAGE, "yaml")
    path = tmp_path / "events.yml"
    path.write_text(block.text)
    with lineage_to(str(path), pytest.fail).run(lambda: LineageJob("archive.lake", ()), "4.0.0"):
        pass
    assert len((tmp_path / "lineage.jsonl").read_text().splitlines()) == 2
