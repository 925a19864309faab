"""Events of OpenLineage, as its own client writes them; no Spark, no broker."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.pipelines import (
    AuditFault,
    AuditReport,
    Expectation,
    lineage,
)
from odradek.spark_connector.pipelines.audit.report import PartitionAudit
from odradek.spark_connector.pipelines.audit.results import Measured, result_of
from odradek.spark_connector.pipelines.lineage import (
    Lineage,
    LineageDataset,
    LineageJob,
    lineage_to,
)

TOPIC = LineageDataset("kafka://h:9092", "orders")
FOLDER = LineageDataset("file", "/lake", {"id": "BIGINT", "name": "STRING"})
JOB = LineageJob("archive.lake", (TOPIC,), (FOLDER,))


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENLINEAGE_CONFIG", "OPENLINEAGE_URL", "OPENLINEAGE_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def to_file(tmp_path: Path, warnings: list[str]) -> Lineage:
    config = tmp_path / "openlineage.yml"
    config.write_text(
        f"transport:\n  type: file\n  log_file_path: {tmp_path}/events.jsonl\n  append: true\n"
    )
    return lineage_to(str(config), warnings.append)


def events(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]


def test_a_run_starts_and_completes_with_its_datasets(to_file: Lineage, tmp_path: Path) -> None:
    with to_file.run(lambda: JOB, "4.0.0") as run:
        run.rows = 7
    start, complete = events(tmp_path)
    assert [each["eventType"] for each in (start, complete)] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["job"] | {"facets": {}} == {
        "namespace": "odradek",
        "name": "archive.lake",
        "facets": {},
    }
    assert start["run"]["facets"]["processing_engine"]["version"] == "4.0.0"
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("kafka://h:9092", "orders")
    assert {f["name"] for f in read["facets"]["schema"]["fields"]} > {"key", "value", "offset"}
    columns = [(f["name"], f["type"]) for f in written["facets"]["schema"]["fields"]]
    assert columns == [("id", "BIGINT"), ("name", "STRING")]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 7
    assert "outputStatistics" not in start["outputs"][0].get("outputFacets", {})


@pytest.mark.parametrize(
    ("error", "state"), [(ValueError("no broker\nanswers"), "FAIL"), (KeyboardInterrupt(), "ABORT")]
)
def test_a_run_that_ends_badly_says_so(
    to_file: Lineage, tmp_path: Path, error: BaseException, state: str
) -> None:
    with pytest.raises(type(error)), to_file.run(lambda: JOB, "4.0.0"):
        raise error
    start, end = events(tmp_path)
    assert (start["eventType"], end["eventType"]) == ("START", state)
    message = end["run"]["facets"]["errorMessage"]["message"]
    assert message == (str(error).partition("\n")[0] or "KeyboardInterrupt")


def test_an_audit_tells_metrics_and_assertions_of_each_topic(
    to_file: Lineage, tmp_path: Path
) -> None:
    sizes = (5, 5, 5, 5)
    partitions = [
        PartitionAudit("orders", n, 0, 9, 9, 0, 0, 45, 1, 2, 3, 1, 2, 0, 0, sizes, None, 0)
        for n in (0, 1)
    ]
    expectation = Expectation("ids", "unique", "critical", columns=("field:id",))
    result = result_of(expectation, "orders", Measured(18, 2), 0)
    other = result_of(expectation, "payments", Measured(3), 0)
    faults = (AuditFault("future", "orders", 0, 1, ()), AuditFault("lost", "payments", None, 1, ()))
    with to_file.run(lambda: LineageJob("audit.orders", (TOPIC,)), "4.0.0") as run:
        run.report = AuditReport(
            "r", "h:9092", 0, 1.0, tuple(partitions), faults, (), (), (result, other)
        )
    facets = events(tmp_path)[1]["inputs"][0]["inputFacets"]
    metrics = facets["dataQualityMetrics"]
    assert (metrics["rowCount"], metrics["bytes"]) == (18, 90)
    nulls = {name: each["nullCount"] for name, each in metrics["columnMetrics"].items()}
    assert nulls == {"key": 4, "value": 2}
    assertions = facets["dataQualityAssertions"]["assertions"]
    assert [(each["assertion"], each["success"], each["severity"]) for each in assertions] == [
        ("unique", False, "error"),
        ("future", False, "error"),
    ]
    assert (assertions[0]["column"], assertions[0]["name"]) == ("field:id", "ids")


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Makes a configuration for a port of this host, tried once and for a short time.

    A sender that was given up goes on trying, and logs it: the next test begins when it is done.
    """

    def configured(port: int) -> str:
        path = tmp_path / "impatient.yml"
        path.write_text(
            f"transport:\n  type: http\n  url: http://127.0.0.1:{port}\n  timeout: 1\n"
            "  retry:\n    total: 0\n"
        )
        return str(path)

    before = set(threading.enumerate())
    yield configured
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def test_an_endpoint_that_is_down_is_warned_of_once(
    impatient: Callable[[int], str], warnings: list[str]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = impatient(free.getsockname()[1])
        with lineage_to(place, warnings.append).run(lambda: JOB, "4.0.0") as run:
            run.rows = 1
    (warning,) = warnings
    assert warning.startswith("an event could not be sent")


def test_an_endpoint_that_hangs_does_not_hold_a_run(
    impatient: Callable[[int], str], warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "SEND_WAIT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = impatient(silent.getsockname()[1])
        with lineage_to(place, warnings.append).run(lambda: JOB, "4.0.0"):
            pass
    assert warnings == ["OpenLineage did not take the run's events in 0.1 s"]


def test_a_job_that_cannot_be_made_is_warned_of_and_the_run_goes_on(
    to_file: Lineage, tmp_path: Path, warnings: list[str]
) -> None:
    def fails() -> LineageJob:
        raise SparkConnectorError("there is no topic orders")

    with to_file.run(fails, "4.0.0") as run:
        run.rows = 1
    assert warnings == ["the run is not told to OpenLineage: there is no topic orders"]
    assert not (tmp_path / "events.jsonl").exists()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "No such file"),
        ("transport: [", "cannot be configured"),
        ("- 1", "has no transport"),
        ("transport:\n  type: pigeon\n", "cannot be configured"),
    ],
)
def test_a_place_that_will_not_do_is_refused_where_it_was_given(
    tmp_path: Path,
    warnings: list[str],
    monkeypatch: pytest.MonkeyPatch,
    content: str | None,
    sentence: str,
) -> None:
    config = tmp_path / "openlineage.yml"
    if content is not None:
        config.write_text(content)
    with pytest.raises(SparkConnectorError, match=sentence):
        lineage_to(str(config), warnings.append)
    assert warnings == []


def test_an_environment_that_will_not_do_is_warned_of(
    tmp_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(tmp_path / "none.yml"))
    with lineage_to(None, warnings.append).run(lambda: JOB, "4.0.0"):
        pass
    (warning,) = warnings
    assert "OPENLINEAGE_CONFIG names" in warning


def test_the_environment_configures_it_as_anywhere(
    tmp_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch, to_file: Lineage
) -> None:
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(tmp_path / "openlineage.yml"))
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
    with lineage_to(None, warnings.append).run(lambda: JOB, "4.0.0"):
        pass
    assert [each["job"]["namespace"] for each in events(tmp_path)] == ["shop", "shop"]


def test_nothing_is_told_where_nothing_is_configured(warnings: list[str]) -> None:
    with lineage_to(None, warnings.append).run(lambda: pytest.fail("asked for"), "4.0.0"):
        pass
    assert warnings == []
