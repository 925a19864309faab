"""Spark's classes in an archive that JVMs map rather than load: each starts at half the cost.

An archive is made once for each Spark and Java (JEP 350), by a JVM that ran a little of all.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

CACHE = Path(__file__).parents[2] / ".cache" / "spark-classes"
SECONDS_MAX = 280
SPARK_JAVA = "ODRADEK_TEST_SPARK_JAVA"
"""The variable by which workers in processes of their own learn of the options."""
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# What a JVM says of its archive is nothing that a test waits for.
_SILENT = "-Xlog:cds=error -Xlog:cds+dynamic=error"
_PROGRAM = """
import sys
import tempfile
from pathlib import Path
from pyspark.sql import SparkSession

options, folder = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2")
builder = builder.config("spark.driver.host", "127.0.0.1")
spark = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
spark.range(9).selectExpr("id % 3 as third", "id").groupBy("third").count().collect()
spark.createDataFrame([(1, "a")], ["number", "text"]).write.parquet(f"{folder}/rows")
rows = spark.readStream.schema("number long, text string").parquet(f"{folder}/rows")
writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
writer.trigger(availableNow=True).start(f"{folder}/copied").awaitTermination()
assert spark.read.parquet(f"{folder}/copied").count() == 1
java = spark.sparkContext._gateway.proc
spark.stop()
java.stdin.close()
java.wait()
"""


def spark_java_options(folder: Path) -> str:
    """Options for Spark's JVMs, whose archive is made if it is not there.

    Args:
        folder: takes what is written meanwhile.
    """
    runtime = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr
    name = hashlib.sha256(runtime + str(pyspark.__path__).encode() + pyspark.__version__.encode())
    archive = CACHE / f"{name.hexdigest()[:16]}.jsa"
    CACHE.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _make(archive, folder)
    return f"{QUICK} {_SILENT} -XX:SharedArchiveFile={archive}"


def _make(archive: Path, folder: Path) -> None:
    made = archive.with_suffix(".part")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, f"{QUICK} -XX:ArchiveClassesAtExit={made}", str(folder)],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        # The first python3 of the PATH need not be this one.
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, f"no archive was made:\n{done.stdout[-2000:]}{done.stderr[-3000:]}"
    os.replace(made, archive)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made_in:
        spark_java_options(Path(made_in))
