"""Spark's own source counts the records of a topic, on two cores; one Spark asks all peers."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from ...measure import SPARK_SETTINGS
from ..peers import Failed, Peer
from .load import ComparedLoad, Figures, LeftOut, Tools, fresh_topic
from .performance import RECORDS, produced

PARTITIONS = 2


class SparkCount:
    """The load, and the Spark that it starts at its first turn."""

    def __init__(self) -> None:
        self._spark: Any = None

    def run(self, peer: Peer, tools: Tools) -> Figures:
        """Count once for what has to be compiled, and once more for the figures."""
        records = tools.count(RECORDS[100])
        spark = self._session(tools)
        with fresh_topic(peer, PARTITIONS) as topic:
            produced(peer, tools, topic, 100, "1", "none")
            self._count(spark, peer, topic, records)
            before = peer.cpu_seconds()
            began = time.perf_counter()
            self._count(spark, peer, topic, records)
            seconds = time.perf_counter() - began
            cpu = peer.cpu_seconds() - before
        return {"rate": records / seconds, "cpu_us": cpu / records * 1e6}

    def _count(self, spark: Any, peer: Peer, topic: str, records: int) -> None:
        from py4j.protocol import Py4JJavaError

        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", peer.address)
        try:
            found = reader.option("subscribe", topic).load().count()
        except Py4JJavaError as error:
            raise Failed(f"Spark said: {_first_cause(error.java_exception)}") from error
        if found != records:
            raise Failed(f"Spark counted {found} records of {records}")

    def _session(self, tools: Tools) -> Any:
        if self._spark is None:
            try:
                from .....spark_connector import SparkConnectorError, spark_session
            except ImportError as error:
                raise LeftOut(f"PySpark is not installed ({error})") from error
            folder = tools.closing.enter_context(tempfile.TemporaryDirectory(prefix="odradek-"))
            log_file = Path(folder) / "spark.log"
            try:
                self._spark = spark_session(
                    "bench", master="local[2]", conf=SPARK_SETTINGS, log_file=log_file
                )
            except SparkConnectorError as error:
                raise LeftOut(str(error)) from error
            tools.closing.callback(self._spark.stop)
        return self._spark


def _first_cause(error: Any) -> str:
    """What was thrown first, of which the others came."""
    while error.getCause() is not None:
        error = error.getCause()
    return str(error.toString()).partition("\n")[0]


def spark_count() -> ComparedLoad:
    """Records counted in a second."""
    return ComparedLoad("Spark batch count 100 B", SparkCount().run)
