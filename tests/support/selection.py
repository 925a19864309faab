"""Which cases of a test `make test` runs; `make test-all` runs them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def short(cases: Iterable[Any], count: int) -> list[Any]:
    """Parameters of a test of which all but the first `count` are slow."""
    return [
        pytest.param(case, marks=slow_unless(number < count)) for number, case in enumerate(cases)
    ]


def slow_unless(is_short: bool) -> Any:
    """The marks of a case."""
    return () if is_short else pytest.mark.slow
