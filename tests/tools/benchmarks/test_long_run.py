"""The long run's own parts: what it calls growth, and a short run of everything."""

from __future__ import annotations

import pytest

from odradek.tools.benchmarks import long_run
from odradek.tools.benchmarks.long_run import Sample, verdicts


def test_growth_is_counted_after_the_warm_up_broker_by_broker() -> None:
    samples = [Sample(s, 1, 40 if s < 10 else 50 + s / 10, 30) for s in range(110)]
    samples += [Sample(s, 2, 60, 30 if s < 100 else 90) for s in range(110)]
    one, two = verdicts(samples, 10)
    assert one.memory_mb == pytest.approx((51.45, 60.45))
    assert one.descriptors == (30, 30)
    assert (two.memory_mb, two.descriptors, two.peak_mb) == ((60, 60), (30, 90), 60)


def test_without_samples_after_the_warm_up_there_is_no_verdict() -> None:
    assert verdicts([Sample(5, 1, 40, 30)], 10) == []


@pytest.mark.slow
def test_a_short_run_with_a_restart_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--minutes 0.4 --warm-up-minutes 0.1 --sample-seconds 1 --rate 4 --brokers 3"
    options += " --restart-minutes 0.1 --growth-mb 1000 --growth-descriptors 1000"
    code = long_run.main(options.split())
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert "faults: 0" in printed
