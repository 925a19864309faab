"""The long run's own parts: what it calls growth, and a short run of everything."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from odradek.tools.benchmarks import long_run
from odradek.tools.benchmarks.long_run import Sample, Verdict, grows, parser, verdicts


def test_growth_is_counted_after_the_warm_up_broker_by_broker() -> None:
    samples = [Sample(s, 1, 40 if s < 10 else 50 + s / 10, 30) for s in range(110)]
    samples += [Sample(s, 2, 60, 30 if s < 100 else 90) for s in range(110)]
    one, two = verdicts(samples, 10)
    assert one.memory_mb == pytest.approx((51.75, 60.15))
    assert one.descriptors == (30, 30)
    assert (two.memory_mb, two.descriptors, two.peak_mb) == ((60, 60), (30, 90), 60)


@pytest.mark.parametrize(("leak", "grown"), [(0.0, 0), (0.05, 7.3)])
def test_a_restart_does_not_look_like_growth_and_hides_none(leak: float, grown: float) -> None:
    """Brokers settle at 50 MB within ten seconds of each start, whenever that is."""
    restarts = {1: (10, 60, 110, 160), 2: (40, 90, 140, 190)}
    samples = []
    for broker, starts in restarts.items():
        for second in range(starts[0], 200):
            age = min(second - start for start in starts if start <= second)
            samples.append(Sample(second, broker, 40 + min(age, 10) + second * leak, 30))
    for each in verdicts(samples, 0, with_restarts=True):
        before, after = each.memory_mb
        assert after - before == pytest.approx(grown, abs=0.5 + grown / 8)


@pytest.mark.parametrize(
    ("memory_mb", "descriptors", "expected"), [(52, 65, False), (52.1, 60, True), (50, 66, True)]
)
def test_two_megabytes_and_five_descriptors_are_no_growth(
    memory_mb: float, descriptors: int, expected: bool
) -> None:
    found = Verdict(1, (50, memory_mb), (60, descriptors), 60)
    assert grows(found, parser().parse_args([])) is expected


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


def test_the_batches_before_a_displaced_record_are_shown(tmp_path: Path) -> None:
    with long_run.Brokers(tmp_path, 1) as brokers:
        producer = Producer({"bootstrap.servers": brokers.bootstrap, "enable.idempotence": True})
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        topic = NewTopic(long_run.FLOW_TOPIC, 1, 1)
        admin.create_topics([topic])[topic.topic].result()
        for _ in range(3):
            producer.produce(long_run.FLOW_TOPIC, b"value", partition=0)
            producer.flush()
        first, second = brokers.batches_near(0, 1)
    assert first.startswith("broker 1, flow-0: base_offset 0, records 1, partition_leader_epoch 0")
    assert second.endswith("producer_epoch 0, base_sequence 1")
