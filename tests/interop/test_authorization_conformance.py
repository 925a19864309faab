"""odradek refuses what Kafka's StandardAuthorizer refuses, with its answers and its audit log.

A user sends every API under 54 sets of ACLs: nothing allowed, everything, all but one operation on
one type of resource, only that. What each API needs is so what Kafka refuses, and no list of ours.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from odradek.tools.conformance.brokers import (
    ADMIN,
    AUTHORIZER_SETTINGS,
    start_kafka,
    start_odradek,
)
from odradek.tools.conformance.command import DIFFERENCES, chosen
from odradek.tools.conformance.explanations import Explained, read_explanations
from odradek.tools.conformance.report import ConformanceReport
from odradek.tools.conformance.runner import play_all
from odradek.tools.conformance.scenario import all_scenarios

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

ANSWERS_MIN = 7000
DENIED = re.compile(r"Principal = User:alice is Denied .*")
TOKEN_ID = re.compile(r"(DelegationToken:LITERAL:)[\w-]{22}(?= )")
"""Each broker makes up its own."""
WARM_UP = "warm-up"


def denials(log: str) -> Counter[str]:
    """What the audit log says was refused, and how often."""
    lines = (TOKEN_ID.sub(r"\1ID", line) for line in DENIED.findall(log))
    return Counter(line for line in lines if WARM_UP not in line)


def test_refusals_are_those_of_apache_kafka(kafka_libs: Path, tmp_path: Path) -> None:
    runs = chosen(all_scenarios(needs_authorizer=True))
    with (
        start_kafka(tmp_path / "kafka", kafka_libs, AUTHORIZER_SETTINGS) as kafka,
        start_odradek(tmp_path / "odradek", AUTHORIZER_SETTINGS) as odradek,
    ):
        results = play_all(runs, kafka.bootstrap, odradek.bootstrap, login=ADMIN)
    report = ConformanceReport(results, Explained(read_explanations(DIFFERENCES)), is_whole=False)
    assert report.is_conformant, "\n".join(report.lines())
    assert sum(result.answers for result in results) >= ANSWERS_MIN
    refused = denials(kafka.log)
    assert set(denials(odradek.log)) == set(refused)
    assert len(refused) > len(runs)
