"""Rates against Kafka's SampledStat, Rate and QuotaUtils, restated here as they are in Java."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.security.quotas.rate import QuotaSensor, TokenBucket


class Sample:
    def __init__(self, now):
        self.reset(now)

    def reset(self, now):
        self.start, self.last, self.value = now, now, 0.0


class KafkaRate:
    """Rate(WindowedSum) with a MetricConfig, in a ring of samples, line by line."""

    def __init__(self, bound, windows, window_ms):
        self.bound, self.windows, self.window_ms = bound, windows, window_ms
        self.samples, self.current = [], 0

    def record(self, value, now):
        if not self.samples:
            self.samples.append(Sample(now))
        sample = self.samples[self.current]
        if now - sample.start >= self.window_ms:
            self.current = (self.current + 1) % (self.windows + 1)
            if self.current >= len(self.samples):
                self.samples.append(Sample(now))
            else:
                self.samples[self.current].reset(now)
            sample = self.samples[self.current]
        sample.value += value
        sample.last = now

    def unrecord(self, value):
        self.samples[self.current].value -= value

    def throttle_ms(self, now):
        for sample in self.samples:
            if now - sample.last >= self.windows * self.window_ms:
                sample.reset(now)
        total = sum(sample.value for sample in self.samples)
        elapsed = now - min(sample.start for sample in self.samples)
        full = elapsed // self.window_ms
        if full < self.windows - 1:
            elapsed += (self.windows - 1 - full) * self.window_ms
        elapsed = max(elapsed, 1)
        rate = total / (elapsed / 1000)
        if rate <= self.bound:
            return 0
        return math.floor((rate - self.bound) / self.bound * elapsed + 0.5)


@given(
    events=st.lists(
        st.tuples(st.integers(0, 3000) | st.integers(0, 40), st.integers(0, 4000)), max_size=60
    ),
    bound=st.sampled_from([1, 100, 1000]),
    windows=st.sampled_from([1, 2, 4, 11]),
)
def test_throttle_times_are_kafkas(events, bound, windows):
    sensor, model = QuotaSensor(bound, windows, 1000), KafkaRate(bound, windows, 1000)
    now = 5
    for pause, value in events:
        now += pause
        model.record(value, now)
        assert sensor.record(value, now) == pytest.approx(model.throttle_ms(now), abs=1)


def test_a_burst_that_fits_into_the_windows_is_not_throttled():
    sensor = QuotaSensor(100, 11, 1000)
    assert sensor.burst == 1000
    assert sensor.record(1000, 0) == 0
    assert sensor.record(100, 0) == 1000  # 1,100 units take 11 s at 100 a second
    sensor.unrecord(100)
    assert sensor.throttle_ms(0) == 0


def test_whoever_waits_as_told_keeps_the_bound():
    sensor, now, sent = QuotaSensor(10_000, 11, 1000), 0, 0
    while now < 300_000:
        sent += 3000
        now += 1 + sensor.record(3000, now)
    assert sent / 300 == pytest.approx(10_000, rel=0.05)


def rate_over(measure, *, size, seconds=30, is_consumer=False, request_ms=1, is_kafka=False):
    """What a client gets that sends one request behind the other and waits as it is told."""
    now, taken = 7, 0
    ends = now + seconds * 1000
    while now < ends:
        if is_kafka:
            measure.record(size, now)
            throttle_ms = measure.throttle_ms(now)
        else:
            throttle_ms = measure.record(size, now)
        if throttle_ms and is_consumer:
            measure.unrecord(size)
        else:
            taken += size
        now += max(throttle_ms, request_ms)
    return taken / seconds


@pytest.mark.parametrize("is_consumer", [False, True])
@pytest.mark.parametrize("windows", [2, 5, 11])
@pytest.mark.parametrize("size", [1_000, 20_000, 160_000])
def test_over_half_a_minute_a_client_gets_what_kafka_gives(is_consumer, windows, size):
    got = rate_over(QuotaSensor(100_000, windows, 1000), size=size, is_consumer=is_consumer)
    model = KafkaRate(100_000, windows, 1000)
    assert got == rate_over(model, size=size, is_consumer=is_consumer, is_kafka=True)


def test_how_near_to_the_quota_half_a_minute_comes():
    def share(windows, **how):
        return rate_over(QuotaSensor(100_000, windows, 1000), **how) / 100_000

    # With Kafka's default, what ten seconds allow comes at once, and again after eleven.
    for is_consumer in (False, True):
        assert 1.0 <= share(11, size=2_000, is_consumer=is_consumer) <= 1.12
    assert 0.95 <= share(2, size=2_000) <= 1.05
    # A consumer that may take as much as fits into the windows takes it at once, and is refused
    # until all of that has gone: docs/security.md.
    assert share(2, size=100_000, is_consumer=True) < 0.8


def test_a_throttle_time_may_be_bounded():
    assert QuotaSensor(1, 11, 1000, throttle_ms_max=1000).record(1_000_000, 0) == 1000


def test_another_bound_counts_at_once():
    sensor = QuotaSensor(100, 11, 1000)
    sensor.record(900, 0)
    sensor.bound = 10
    assert sensor.record(0, 1) > 0
    sensor.bound = 1000
    assert sensor.record(0, 2) == 0


def test_bucket_gives_what_it_has_and_a_debt():
    bucket = TokenBucket(5, 100, 1000, now_ms=0)
    assert bucket.tokens(0) == 500
    assert bucket.record(560, 0) == 12_000  # KIP-599's example: 60 are owed, 5 come a second
    assert bucket.throttle_ms(4000) == 8000
    assert bucket.tokens(12_000) == 0
    assert bucket.tokens(1_000_000) == 500
