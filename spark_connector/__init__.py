"""The PySpark side: a session with the right connector, data sources without one, and the demo.

It talks to brokers only as any client does, and never imports the broker or trio.
PySpark, pandas, kafka-python and matplotlib are imported by the function that needs them,
so importing this package costs nothing and works without them.

    from odradek.spark_connector import spark_session

    with spark_session("my-app") as spark:
        spark.read.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:9092")...

`register(spark)` makes `format("odradek")` and `format("odradek-log")` known to any session; they
need no connector.
"""

from .data_sources import register
from .errors import SparkConnectorError
from .session import spark_session
from .stream_lag import OffsetsBehindLatest, offsets_behind_latest

__all__ = [
    "OffsetsBehindLatest",
    "SparkConnectorError",
    "offsets_behind_latest",
    "register",
    "spark_session",
]
