"""Which cases of a test `make test` runs; `make test-all` runs them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def short(cases: Iterable[Any], count: int) -> list[Any]:
    """Parameters of a test of which all but the first `count` are slow."""
    return [
        case if number < count else pytest.param(case, marks=pytest.mark.slow)
        for number, case in enumerate(cases)
    ]
