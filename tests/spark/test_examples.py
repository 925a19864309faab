"""The example scripts run as their first lines say, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SECONDS_MAX = 600

pytestmark = pytest.mark.timeout(SECONDS_MAX + 100)


@pytest.fixture
def run_example(start_broker: Any, tmp_path: Path) -> Any:
    """Run a script against a broker that nothing else uses: the scripts' topics have fixed
    names."""
    broker = start_broker()

    def run(name: str) -> str:
        answer = subprocess.run(
            [sys.executable, str(EXAMPLES / name), broker.bootstrap],
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            cwd=tmp_path,
        )
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    return run


@pytest.mark.short
def test_there_is_a_test_for_every_example() -> None:
    tested = Path(__file__).read_text()
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names
    assert {name for name in names if f'run_example("{name}")' not in tested} == set()


@pytest.mark.short
@pytest.mark.clients
def test_hello_kafka(run_example: Any) -> None:
    lines = run_example("hello_kafka.py").splitlines()
    assert sorted(line.partition(" ")[2] for line in lines) == [
        f"hello number {number}" for number in range(10)
    ]


@pytest.mark.clients
def test_trio_client(run_example: Any) -> None:
    lines = run_example("trio_client.py").splitlines()
    assert lines == [f"0:{number} hello number {number}" for number in range(10)]


@pytest.mark.clients
def test_client_consumer(run_example: Any) -> None:
    first, *moves, last = run_example("client_consumer.py").splitlines()
    assert (first, last) == ("first gets [0, 1, 2, 3]", "first gives up [0, 1, 2, 3]")
    numbers = moves[1].removeprefix("second gets ")
    assert len(numbers.split(",")) == 2
    assert moves == [
        f"first gives up {numbers}",
        f"second gets {numbers}",
        f"second gives up {numbers}",
        f"first gets {numbers}",
        "40 records, their sum is 780",
    ]


@pytest.mark.clients
def test_client_producer(run_example: Any) -> None:
    first, last = run_example("client_producer.py").splitlines()
    assert first == "the first record is in partition 0 at offset 0"
    assert last == "1,000 records are in the log, each once and in order"


@pytest.mark.clients
def test_client_transactions(run_example: Any) -> None:
    assert run_example("client_transactions.py").splitlines() == [
        "10 squares are committed, and the positions of what was read",
        "aborted: this record is wrong",
    ]


@pytest.mark.spark
def test_spark_batch(run_example: Any) -> None:
    cells = run_example("spark_batch.py").replace("|", " ").split()
    assert "1000" in cells
    assert str(999 * 999) in cells


@pytest.mark.spark
def test_spark_streaming(run_example: Any) -> None:
    counts = dict(line.split() for line in run_example("spark_streaming.py").splitlines())
    assert counts == {
        "to": "2",
        "be": "2",
        "or": "1",
        "not": "1",
        "that": "1",
        "is": "1",
        "the": "1",
        "question": "1",
    }


@pytest.mark.spark
def test_spark_schemas(run_example: Any) -> None:
    *table, last = run_example("spark_schemas.py").splitlines()
    cells = "".join(table).replace("|", " ").split()
    assert {"45", "11.25"} <= set(cells)
    assert last.startswith("dead: partition ")
    assert last.endswith("it is not in the wire format: it begins with the byte 110, not with 0")
