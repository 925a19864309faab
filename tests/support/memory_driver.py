"""A Spark with a driver of 1 GB that reads topics of large records.

Its argument is `Work` as JSON; the last line that it prints is what each topic holds, as JSON:
how many records, and how many bytes their values have together.
"""

from __future__ import annotations

import json
import sys
from typing import NamedTuple


class Work(NamedTuple):
    """What is read, and where."""

    master: str
    bootstrap: str
    topics: list[str]
    environment: dict[str, str]
    """Of the executors."""


def main(work: Work) -> dict[str, list[int]]:
    """Read each topic without Spark's own connector."""
    from odradek.spark_connector import register, spark_session

    spark = spark_session(
        "odradek memory",
        master=work.master,
        packages=[],
        conf={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            **{f"spark.executorEnv.{name}": value for name, value in work.environment.items()},
        },
    )
    register(spark)
    found = {}
    for topic in work.topics:
        reader = spark.read.format("odradek").option("kafka.bootstrap.servers", work.bootstrap)
        frame = reader.options(subscribe=topic).load()
        (row,) = frame.selectExpr("count(*)", "sum(length(value))").collect()
        found[topic] = [row[0], row[1]]
    spark.stop()
    return found


if __name__ == "__main__":
    print(json.dumps(main(Work(**json.loads(sys.argv[1])))))
