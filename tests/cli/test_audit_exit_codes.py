"""`odradek spark audit` ends with the code of the worst that it found."""

from __future__ import annotations

import pytest

from odradek.cli.common.errors import CommandError
from odradek.cli.declarations import Exit
from odradek.cli.spark.audit import Severity, leave
from odradek.spark_connector.pipelines import AuditFault, AuditReport, Expectation
from odradek.spark_connector.pipelines.audit.results import Measured, result_of

FAULT = AuditFault("lost", "t", None, 1, ())


def report(*severities: str, faults: tuple[AuditFault, ...] = ()) -> AuditReport:
    """One in which an expectation of each severity failed, and a critical one did not."""
    holds = result_of(Expectation("h", "volume", "critical", least=1), "t", Measured(1), 0)
    failed = [
        result_of(Expectation("f", "volume", severity, least=2), "t", Measured(1), 0)
        for severity in severities
    ]
    return AuditReport("run", "h:1", 0, 1.0, (), faults, (), (), (holds, *failed))


@pytest.mark.parametrize(
    ("found", "fail_on", "code"),
    [
        (report(), "error", 0),
        (report("warning"), "error", 0),
        (report("warning"), "warning", 3),
        (report("warning", "error"), "error", 4),
        (report("error"), "critical", 0),
        (report("critical", "warning"), "critical", 5),
        (report("critical", faults=(FAULT,)), "error", 5),
        (report("error", faults=(FAULT,)), "error", 4),
        (report("warning", faults=(FAULT,)), "warning", 1),
        (report(faults=(FAULT,)), "critical", 1),
    ],
)
def test_the_worst_decides(found: AuditReport, fail_on: Severity, code: int) -> None:
    try:
        leave(found, fail_on)
        ended = 0
    except Exit as leaving:
        ended = leaving.exit_code
    except CommandError:  # which ends a command with 1
        ended = 1
    assert ended == code
