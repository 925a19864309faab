"""The Spark that tests share: whether it works still, and its end if it does not."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

ANSWER_SECONDS_MAX = 60.0
MAY_BE_BROKEN = pytest.StashKey[bool]()
"""Of a test session: a test has failed, and may have left a Spark that works no more."""


def answers(session: Any) -> bool:
    """Whether a Spark still does something: not if its JVM is gone, or an endless job has it."""
    counted = []

    def count() -> None:
        with suppress(Exception):
            counted.append(session.range(1).count())

    thread = Thread(target=count, daemon=True)
    thread.start()
    thread.join(ANSWER_SECONDS_MAX)
    return counted == [1]


def kill(session: Any) -> None:
    """End a Spark that does not answer, and have PySpark forget it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = session.sparkContext._gateway
    gateway.proc.kill()
    gateway.proc.wait()
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
