"""No request costs more than the committed table says, in what the interpreter does for it.

Such counts do not depend on the machine or its load, so a step that is added to every Produce
fails here, whereas a benchmark would not notice it.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

SECONDS_MAX = 580
"""For all of them; so much only where the machine has much else to do."""

pytestmark = [
    pytest.mark.skipif(
        not hasattr(select, "epoll"), reason="the requests go by the epoll transport"
    ),
    pytest.mark.timeout(SECONDS_MAX + 20),
]

HERE = Path(__file__).parent
PARTITIONS_ACTIVE = 12
TABLE = tomllib.loads((HERE / "floor.toml").read_text())
COLUMNS = ("python_calls", "c_calls", "bytecodes", "system_calls", "blocks_kept", "peak_bytes")
REQUESTS = ("produce", "fetch", "list_offsets", "heartbeat", "offset_commit", "metadata")


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Any]]:
    """What each request costs, measured in a fresh interpreter."""
    ran = subprocess.run(
        [sys.executable, str(HERE / "floor.py"), "json"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        timeout=SECONDS_MAX,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    found: dict[str, dict[str, Any]] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def costs(measured: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Each request's cost by column."""
    return {name: dict(zip(COLUMNS, each["cost"], strict=True)) for name, each in measured.items()}


def test_every_kind_of_request_is_in_the_table(costs: dict[str, dict[str, float]]) -> None:
    assert set(TABLE["at_most"]) == set(costs)
    for kind in REQUESTS:
        assert any(name.startswith(kind) for name in costs)


def test_a_count_of_no_work_is_no_count(costs: dict[str, dict[str, float]]) -> None:
    """Every request is received and answered by system calls, and handled by some functions."""
    for name, cost in costs.items():
        assert cost["system_calls"] >= 2, name
        assert cost["python_calls"] >= 20, name
        assert cost["bytecodes"] >= 10 * cost["python_calls"], name


@pytest.mark.parametrize("name", TABLE["at_most"])
def test_a_request_costs_no_more_than_the_table_says(
    measured: dict[str, dict[str, Any]], name: str
) -> None:
    grown = measured[name]["over"]
    program = f"{sys.executable} tests/floor/floor.py"
    assert not grown, "\n".join(
        [
            f"{name} ({measured[name]['says']}) has become dearer:",
            *grown,
            f"which functions do: {program} diff {name} COMMIT, or: {program} tree {name}",
            f"where that is worth it: {program} write",
        ]
    )


def test_many_partitions_cost_no_more_than_as_many_single_requests(
    costs: dict[str, dict[str, float]],
) -> None:
    """Each of them at most 1.25 times what one alone costs, however they come."""
    one = costs["produce_small"]["bytecodes"]
    assert costs["produce_in_turn"]["bytecodes"] <= 1.25 * one
    assert costs["produce_many"]["bytecodes"] <= 1.25 * one * PARTITIONS_ACTIVE
    assert costs["produce_general"]["bytecodes"] <= 1.25 * one * 2
    one = costs["fetch_data"]["bytecodes"]
    assert costs["fetch_session_active"]["bytecodes"] <= 1.25 * one * PARTITIONS_ACTIVE


def test_acls_and_quotas_of_every_kind_cost_a_tenth_at_most(
    costs: dict[str, dict[str, float]],
) -> None:
    plain = costs["produce_small"]
    guarded = costs["produce_small_guarded"]
    assert guarded["bytecodes"] <= 1.1 * plain["bytecodes"]
    assert guarded["system_calls"] == plain["system_calls"]


def test_a_bulk_produce_copies_no_records(costs: dict[str, dict[str, float]]) -> None:
    """Its batch of 16 KB is never held a second time."""
    assert costs["produce_bulk"]["peak_bytes"] < 12_000


def test_a_fetch_of_data_copies_no_records(costs: dict[str, dict[str, float]]) -> None:
    assert costs["fetch_data"]["peak_bytes"] < 12_000
