"""A test that breaks Spark does not break the tests after it."""

from __future__ import annotations

from typing import Any

import pytest
from support.one_spark import MAY_BE_BROKEN

pytestmark = pytest.mark.spark


def test_whose_spark_is_killed(spark: Any, request: pytest.FixtureRequest) -> None:
    spark.sparkContext._gateway.proc.kill()
    request.session.stash[MAY_BE_BROKEN] = True  # as if it had failed of that


def test_that_comes_after_it(spark: Any) -> None:
    assert spark.range(3).count() == 3
