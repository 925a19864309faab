"""Schemas where the package that knows their format is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from odradek.schemas.errors import SchemaError
from odradek.schemas.schema import Schema
from odradek.schemas.values import JsonDecoder, JsonEncoder

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}'
PROTO = 'syntax = "proto3"; message Order { int32 id = 1; }'


@pytest.mark.parametrize(
    ("kind", "text", "package"),
    [
        ("AVRO", AVRO, "fastavro"),
        ("JSON", '{"type": "object"}', "jsonschema"),
        ("PROTOBUF", PROTO, "google"),
    ],
)
def test_reading_and_writing_say_what_to_install(
    kind: str, text: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    schema = Schema(kind, text)
    with pytest.raises(SchemaError, match=r"not installed here .*odradek\[schemas\]'$"):
        JsonDecoder(None, schema)
    with pytest.raises(SchemaError, match=r"not installed here .*odradek\[schemas\]'$"):
        JsonEncoder(schema)


def run(program: str, *arguments: str) -> str:
    """What a process without fastavro fails with."""
    hidden = f"import sys; sys.modules['fastavro'] = None\n{program}"
    command = [sys.executable, "-c", hidden, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    return ended.stderr.strip()


def test_a_command_says_nothing_of_spark(tmp_path: Path) -> None:
    schema = tmp_path / "order.avsc"
    schema.write_text(AVRO)
    main = "from odradek.cli.main import main; sys.exit(main())"
    said = run(main, "consume", "orders", "--schema", str(schema), "-b", "127.0.0.1:1")
    assert said.endswith("install 'odradek[schemas]'")


def test_what_spark_runs_says_that_its_workers_need_the_package() -> None:
    pytest.importorskip("pyspark")
    decoding = f"""
import pyspark
from odradek.schemas.schema import Schema
from odradek.schemas.values import shared_decoder, Reader
shared_decoder(None, (Reader(Schema("AVRO", {AVRO!r})),))  # as a worker has what it was sent
"""
    assert run(decoding).endswith("install 'odradek[schemas]', on every worker of Spark, too")
