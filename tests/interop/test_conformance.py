"""odradek answers as Apache Kafka does, but for what docs/differences.md explains.

`make conformance` plays every scenario in every version; here each is played in its newest.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.tools.conformance.brokers import start_kafka, start_odradek
from odradek.tools.conformance.command import DIFFERENCES, chosen
from odradek.tools.conformance.explanations import Explained, read_explanations
from odradek.tools.conformance.report import ConformanceReport
from odradek.tools.conformance.runner import play_all
from odradek.tools.conformance.scenario import all_scenarios

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SCENARIOS_MIN = 300


def test_answers_are_those_of_apache_kafka(kafka_libs: Path, tmp_path: Path) -> None:
    runs = chosen(all_scenarios(), newest_only=True)
    assert len(runs) >= SCENARIOS_MIN
    with (
        start_kafka(tmp_path / "kafka", kafka_libs) as kafka,
        start_odradek(tmp_path / "odradek") as odradek,
    ):
        results = play_all(runs, kafka.bootstrap, odradek.bootstrap)
    report = ConformanceReport(results, Explained(read_explanations(DIFFERENCES)), is_whole=False)
    assert report.is_conformant, "\n".join(report.lines())
