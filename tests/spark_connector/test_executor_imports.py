"""What an executor imports: the package, pyarrow and numpy, and confluent-kafka where it reads."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="the data sources are classes of PySpark's")

HEAVY = {"construct", "kafka", "kazoo", "matplotlib", "prometheus_client", "rich", "trio", "typer"}

PROGRAM = """
import sys
import pyspark.sql.datasource
before = set(sys.modules)
{imports}
print(*(set(sys.modules) - before))
"""


def imported_by(imports: str) -> set[str]:
    """The packages that come in beside PySpark's own."""
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(imports=imports)],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    return {name.partition(".")[0] for name in answer.stdout.split()}


@pytest.mark.parametrize(
    "modules",
    [
        ("kafka_source.batch_reader", "kafka_source.columns", "kafka_source.stream_reader"),
        ("kafka_source.writer",),
        ("log_source.reader", "log_source.records_table", "log_source.batches_table"),
        ("log_source.indexes_table",),
    ],
)
def test_executors_import_nothing_heavy(modules: tuple[str, ...]) -> None:
    lines = "\n".join(f"import odradek.spark_connector.{name}" for name in modules)
    found = imported_by(lines)
    assert not found & (HEAVY | {"pandas"})


def test_finding_the_sources_imports_only_pyspark() -> None:
    found = imported_by(
        "import odradek.spark_connector.kafka_source.source\n"
        "import odradek.spark_connector.log_source.source"
    )
    assert not found & (HEAVY | {"pandas", "pyarrow", "numpy", "confluent_kafka"})
