"""Counting requests and their times; and the little HTTP that a scrape needs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.metrics.http_request import (
    HEAD_BYTES_MAX,
    Refusal,
    answer,
    read_request,
    refuse,
)
from odradek.broker.request.request_metrics import (
    TIME_MS_MAX,
    WINDOW_MS_MIN,
    RequestTimes,
    bucket_middle,
    bucket_of,
    quantiles,
)

times_ms = st.one_of(st.integers(0, 200), st.integers(0, TIME_MS_MAX))


@given(times_ms)
def test_a_bucket_is_a_thirty_second_of_its_value_wide_at_most(time_ms):
    assert abs(bucket_middle(bucket_of(time_ms)) - time_ms) <= time_ms / 32


@given(st.lists(times_ms, min_size=1, max_size=50), st.sampled_from([0.0, 0.5, 0.75, 0.99, 1.0]))
def test_quantiles_are_those_of_the_sorted_times(seen, share):
    times = RequestTimes()
    for each in seen:
        times.record(each)
    expected = sorted(seen)[max(math.ceil(share * len(seen)) - 1, 0)]
    (found,) = quantiles(times.recent(0), [share])
    assert abs(found - expected) <= expected / 32
    assert times.count == len(seen)
    assert times.sum_ms == sum(seen)


def test_without_requests_every_quantile_is_zero():
    assert quantiles(RequestTimes().recent(0), [0.5, 0.999]) == [0.0, 0.0]


def test_a_clock_that_was_set_back_counts_as_no_time():
    times = RequestTimes()
    times.record(-5)
    assert (times.count, times.sum_ms) == (1, 0)
    assert times.recent(0)[0] == 1


@pytest.mark.parametrize("time_ms", [0, 700])
def test_quantiles_forget_what_is_two_windows_old_and_counts_do_not(time_ms):
    times = RequestTimes()
    times.recent(1)
    times.record(time_ms)
    assert sum(times.recent(WINDOW_MS_MIN)) == 1
    assert sum(times.recent(WINDOW_MS_MIN + 1)) == 1, "the window before counts still"
    assert sum(times.recent(2 * WINDOW_MS_MIN + 1)) == 0
    assert (times.count, times.sum_ms) == (1, time_ms)


def test_what_a_hot_path_counted_by_itself_is_recent_for_as_long():
    times = RequestTimes()
    times.recent(1)
    times.sub_millisecond_count += 3
    assert times.recent(2)[0] == 3
    assert times.recent(WINDOW_MS_MIN + 1)[0] == 3
    assert times.recent(2 * WINDOW_MS_MIN + 1)[0] == 0
    times.sub_millisecond_count += 1
    assert times.recent(2 * WINDOW_MS_MIN + 2)[0] == 1
    assert times.count == 4


def test_nothing_is_forgotten_for_having_been_requested_late():
    times = RequestTimes()
    times.recent(1)
    times.record(700)
    assert sum(times.recent(100 * WINDOW_MS_MIN)) == 1


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("GET /metrics HTTP/1.1", "/metrics"),
        ("GET /metrics?name=x HTTP/1.0", "/metrics"),
        ("GET /health HTTP/1.1", "/health"),
        ("GET /ready?verbose HTTP/1.1", "/ready"),
    ],
)
def test_a_get_of_what_there_is_is_not_refused(line, path):
    assert read_request(f"{line}\r\nHost: x\r\n\r\n".encode()) == path


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"POST /metrics HTTP/1.1", 405),
        (b"POST /health HTTP/1.1", 405),
        (b"GET /healthz HTTP/1.1", 404),
        (b"GET / HTTP/1.1", 404),
        (b"GET /metrics/../../etc/passwd HTTP/1.1", 404),
        (b"GET /metrics HTTP/2.0", 505),
        (b"GET /metrics", 400),
        (b"GET http://127.0.0.1/metrics HTTP/1.1", 400),
        (b"GET  /metrics HTTP/1.1", 400),
        (b"G\x00T /metrics HTTP/1.1", 400),
        (b"GET /\xff HTTP/1.1", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"\x00\x00\x00\x1d\x00\x12\x00\x03", 400),
        (b"", 400),
    ],
)
def test_anything_else_is_refused_with_its_status(line, status):
    refusal = read_request(line + b"\r\n\r\n")
    assert isinstance(refusal, Refusal)
    assert refusal.status == status
    assert refuse(refusal)[0].startswith(b"HTTP/1.1 %d " % status)


@given(st.binary(max_size=HEAD_BYTES_MAX))
def test_no_bytes_break_the_check(head):
    read_request(head)


def test_an_answer_says_how_long_its_body_is():
    head, body = answer("ä".encode())
    assert b"\r\nContent-Length: 2\r\n" in head
    assert head.endswith(b"\r\n\r\n")
    assert body == b"\xc3\xa4"
