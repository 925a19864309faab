"""What the fixtures cost a run: two hundred tests, and the first test's wait for a broker."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.pytest_runs import PytestRun

TESTS = 200
TRIES = 6
START_TRIES = 4
TIMES_MAX = 4
"""How many times as long as tests that do nothing so many with a broker may take."""
IMPORTS_MAX = 6
"""How many times the processor time of importing trio a broker and its first topic may take: on a
slow machine both take more, and on a busy one neither."""

WITHOUT = f"""
import pytest

@pytest.mark.parametrize("number", range({TESTS}))
def test_it(number):
    pass
"""
WITH = f"""
import pytest

@pytest.mark.parametrize("number", range({TESTS}))
def test_it(kafka, kafka_topic, kafka_group, number):
    assert kafka.bootstrap_servers
"""


def seconds_of(folder: Path, source: str) -> float:
    began = time.monotonic()
    printed = PytestRun(folder, source, ("-n", "4", "-q"), head="").finish()
    assert re.search(rf"\b{TESTS} passed", printed), printed
    return time.monotonic() - began


@pytest.mark.slow
def test_two_hundred_tests_in_four_workers_wait_little_for_their_broker(tmp_path: Path) -> None:
    times = []
    for number in range(TRIES):
        without = seconds_of(tmp_path / f"without-{number}", WITHOUT)
        times.append(seconds_of(tmp_path / f"with-{number}", WITH) / without)
        if times[-1] < TIMES_MAX:
            return
    pytest.fail(f"with a broker they took {times} times as long, each time {TIMES_MAX} or more")


@pytest.mark.slow
def test_the_first_test_has_its_broker_and_topic_at_once() -> None:
    program = (
        "import os, time\n"
        "from odradek.testing.fixtures.shared_brokers import SharedBrokers\n"
        "brokers = SharedBrokers(os.getpid())\n"
        "broker = brokers.broker({})\n"
        "broker.create_topic('the-first')\n"
        "with open(f'/proc/{broker.pid}/stat') as stat:\n"
        "    user, system = map(int, stat.read().rpartition(')')[2].split()[11:13])\n"
        "print(time.process_time() + (user + system) / os.sysconf('SC_CLK_TCK'))\n"
        "brokers.close()\n"
    )
    imports = "import time, trio; print(time.process_time())"
    seconds, importing = (
        [
            float(subprocess.run([sys.executable, "-c", each], capture_output=True).stdout)
            for _ in range(START_TRIES)
        ]
        for each in (program, imports)
    )
    assert min(seconds) < IMPORTS_MAX * min(importing), (seconds, importing)
