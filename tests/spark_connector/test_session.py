"""Sessions, each in a process of its own, since a JVM stays for a process's life."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

SETTINGS = """
settings = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""


def run(program: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", SETTINGS + program], capture_output=True, text=True, timeout=250
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.slow
def test_a_process_may_stop_its_session_and_make_another(tmp_path: Path) -> None:
    output = run(f"""
from pathlib import Path
from odradek.spark_connector import spark_session
log_file = Path({str(tmp_path)!r}) / "log"
for name in ("first", "second"):
    spark = spark_session(name, master="local[1]", conf=settings, log_file=log_file)
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1")
    print(spark.sparkContext.appName, reader.option("subscribe", "t").load().columns[0])
    executable = spark.range(1).rdd.map(lambda row: __import__("sys").executable).first()
    print(executable == __import__("sys").executable)
    spark.stop()
""")
    assert output.splitlines() == ["first key", "True", "second key", "True"]
    assert "WARN" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_a_spark_started_without_the_connector_is_reported() -> None:
    output = run("""
from pyspark.sql import SparkSession
from odradek.spark_connector import SparkConnectorError, spark_session
builder = SparkSession.builder.master("local[1]")
for key, value in settings.items():
    builder = builder.config(key, value)
builder.getOrCreate().stop()
try:
    spark_session()
except SparkConnectorError as error:
    print(error)
""")
    assert output.startswith("a Spark without the Kafka connector was already started")
    assert len(output.splitlines()) == 1


def test_a_jvm_that_does_not_start_is_reported(tmp_path: Path) -> None:
    output = run(f"""
from odradek.spark_connector import SparkConnectorError, spark_session
settings["spark.driver.memory"] = "1k"
try:
    spark_session(conf=settings, log_file={str(tmp_path)!r} + "/log")
except SparkConnectorError as error:
    print(error)
""")
    # The JVM tells its own reason on standard output before.
    sentence = output.splitlines()[-1]
    assert sentence.startswith("Spark did not start (")
    assert sentence.endswith(f"; see {tmp_path}/log")


@pytest.mark.slow
def test_a_builder_keeps_its_settings_and_a_session_of_another_is_taken() -> None:
    output = run("""
from pyspark.sql import SparkSession
from odradek.spark_connector import spark_session
builder = SparkSession.builder.master("local[1]").appName("theirs")
spark = spark_session(existing=builder, conf=settings, app_name="ours")
print(spark.sparkContext.appName, spark.sparkContext.master)
reader = spark.read.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1")
print(reader.option("subscribe", "t").load().columns[0])
print(spark_session(existing=spark) is spark)
print(spark.read.format("odradek").load().columns[:2])
""")
    assert output.splitlines() == ["theirs local[1]", "key", "True", "['key', 'value']"]


@pytest.mark.slow
def test_a_session_without_the_connector_is_reported_unless_none_is_requested() -> None:
    output = run("""
from odradek.spark_connector import SparkConnectorError, spark_session
spark = spark_session(packages=[], master="local[1]", conf=settings)
print(spark_session(existing=spark, packages=[]) is spark)
try:
    spark_session(existing=spark)
except SparkConnectorError as error:
    print(error)
""")
    first, second = output.splitlines()
    assert first == "True"
    assert second.startswith("this session was started without the Kafka connector")
