"""The worst request of every API: how long it holds the broker's loop, and what it takes.

    python -m odradek.tools.benchmarks.worst_requests [--only REGEX] [--partitions 500]

A broker gets topics, groups of each kind with members, and transactions. For each API that is
served, and each size, some requests made from its schema are sent once
(`worst/requests.py`); the one that takes most processor time is the worst. It, and the one that
holds the broker's loop for longest, are then sent again and again for a moment. All the while a
good client produces, fetches and asks for Metadata beside it: how long it waits is what matters.

Columns: the error codes in the answer; the bytes of the request (less than its size where the
broker closes the connection at more) and of the answer; the broker's processor time for it; the
peak of its resident memory, once and repeated, above what it had when nothing but the good client
had asked it for anything; for how long the broker's processor was at work at the most
while the good client waited for one answer (held), then, while the request is repeated, the same as
p99 and at the most (h99, hmax), and the whole waits as p50, p99 and at the most, in which
everything counts that the machine does. Times are ms, memory is MB of 10^6 bytes.

Each API and size has a broker of its own, as many requests take away or change what others name,
and memory that was used once stays with the process. APIs that are for who has logged in have one
with an authorizer, ACLs, users and tokens. APIs of which
no request was answered with anything but errors are named at the end. The exit code is 1 if a goal
is missed: of holds and memory always, of waits where the machine is quiet at the start.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from rich.console import Console

from ...bench.errors import BenchError
from ...bench.loads.wire import Wire
from ...broker.handlers.registry import REGISTRATIONS
from ...common.errors import ErrorCode
from ...protocol.api_keys import ApiKey
from .measure import MeasuredBroker, broker, machine
from .worst.answers import error_codes, in_words, names_of
from .worst.good_client import GoodClient, Wait, percentile
from .worst.preparation import (
    SECURITY_SETTINGS,
    SETTINGS,
    Connect,
    logged_in,
    prepare,
    prepare_security,
)
from .worst.requests import Candidate, candidates
from .worst.rows import QUIET_LOAD_MAX, SUCCESS, Row, missed, refused_apis, table
from .worst.scene import Scene

SIZES = (10_000, 1_000_000)
IDLE_SECONDS = 1.0
RETRY_SECONDS = 0.01
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS.name

OF_LOGGED_IN = frozenset(
    {
        ApiKey.CREATE_ACLS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
"""APIs that are measured on a broker with an authorizer: without one it refuses them."""

REPEATED: Final[tuple[tuple[str, Callable[[Wait], float], float], ...]] = (
    ("hold_p99_ms", attrgetter("held"), 0.99),
    ("hold_max_ms", attrgetter("held"), 1.0),
    ("p50_ms", attrgetter("seconds"), 0.5),
    ("p99_ms", attrgetter("seconds"), 0.99),
    ("max_ms", attrgetter("seconds"), 1.0),
)
"""Figures of a row that come from repeating, what of a wait they are of, and which share."""


class Attack:
    """Sends bad requests to a broker that a good client uses.

    Args:
        running: the broker.
        good: uses it all the time.
        connect: opens a connection to it.
    """

    def __init__(self, running: MeasuredBroker, good: GoodClient, connect: Connect) -> None:
        self._running = running
        self._good = good
        self._connect = connect
        self._wire = connect()
        self._idle_cpu = self._measure_idle()
        self._idle_mb = running.resident_mb()
        reset_peak(running.target.pid)

    def _measure_idle(self) -> float:
        """Processor seconds for a request of the good client's."""
        before, waits = self._running.cpu_seconds(), len(self._good.waits)
        time.sleep(IDLE_SECONDS)
        return (self._running.cpu_seconds() - before) / (len(self._good.waits) - waits)

    def warm_up(self, candidate: Candidate) -> None:
        """Have what is imported and compiled for an API's first request behind us."""
        self._exchange(replace(candidate, elements=1).frame)

    def once(self, candidate: Candidate) -> Row:
        """Send a request and wait for its answer."""
        frame = candidate.frame
        self._open(candidate)
        self._good.wait_for_one_more()
        cpu = self._running.cpu_seconds()
        began = time.perf_counter()
        answer = self._exchange(frame)
        self._good.wait_for_one_more()
        waits = self._good.since(began)
        cpu_seconds = self._running.cpu_seconds() - cpu - len(waits) * self._idle_cpu
        codes = self._codes(candidate.api, frame, answer)
        return Row(
            candidate.api.name,
            candidate.shape,
            candidate.elements,
            len(frame),
            None if answer is None else len(answer),
            1000 * max(cpu_seconds, 0),
            percentile((each.held for each in waits), 1.0),
            codes,
            SUCCESS in codes,
        )

    def _open(self, candidate: Candidate) -> None:
        """Send what comes before a request, until a transaction before it has ended."""
        opening = candidate.opening
        while opening is not None:
            answer = self._exchange(opening)
            if CONCURRENT not in self._codes(api_of(opening), opening, answer):
                return
            time.sleep(RETRY_SECONDS)  # another process has no event to wait for

    def _codes(self, api: ApiKey, frame: bytes, answer: memoryview | None) -> dict[str, int]:
        if answer is None:
            return {}
        return names_of(error_codes(self._wire.decode(answer, api, version_of(frame))))

    def again(self, candidate: Candidate, seconds: float, row: Row) -> None:
        """Send it for some seconds; what the good client has of that goes into the row.

        What the row has already of another request stays where it is worse.
        """
        frame = candidate.frame
        self._good.wait_for_one_more()
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            self._open(candidate)
            self._exchange(frame)
        self._good.wait_for_one_more()
        waits = self._good.since(began)
        for figure, seconds_of, share in REPEATED:
            found = percentile(map(seconds_of, waits), share)
            setattr(row, figure, max(found, getattr(row, figure)))

    def risen_mb(self) -> float:
        """The most memory that the broker has had since it is attacked, above that at idle."""
        return peak_mb(self._running.target.pid) - self._idle_mb

    def _exchange(self, frame: bytes) -> memoryview | None:
        try:
            return self._wire.exchange(frame)
        except BenchError:
            self._wire.close()
            self._wire = self._connect()
            return None


def api_of(frame: bytes) -> ApiKey:
    """The API of the request in a frame with its length."""
    return ApiKey(int.from_bytes(frame[4:6]))


def version_of(frame: bytes) -> int:
    """The version of the request in a frame with its length."""
    return int.from_bytes(frame[6:8])


def reset_peak(pid: int | None) -> None:
    """Have the system forget the peak of a process's memory."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mb(pid: int | None) -> float:
    """The peak of a process's resident memory, in MB of 10^6 bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def rows(options: argparse.Namespace, console: Console) -> Iterator[Row]:
    """Measure every API that is chosen, at each size."""
    chosen = [
        api
        for api in map(ApiKey, REGISTRATIONS)
        if re.search(options.only, api.name, re.IGNORECASE)
    ]
    for api in chosen:
        for size in options.sizes:
            yield _measured(api, size, options, console)


def _measured(api: ApiKey, size: int, options: argparse.Namespace, console: Console) -> Row:
    """Measure an API on a broker of its own."""
    logs_in = api in OF_LOGGED_IN
    settings = {**SETTINGS, **(SECURITY_SETTINGS if logs_in else {})}
    with broker(*(f"{name}={value}" for name, value in settings.items())) as running:
        connect = partial(logged_in if logs_in else Wire, running.host, running.port)
        scene, topic = prepare(connect, api, options.partitions)
        if logs_in:
            scene = prepare_security(connect, scene)
        with GoodClient(connect(), topic, running.cpu_seconds) as good:
            attack = Attack(running, good, connect)
            return _worst(attack, api, scene, size, options.seconds, console)


def _worst(
    attack: Attack, api: ApiKey, scene: Scene, size: int, seconds: float, console: Console
) -> Row:
    tried: list[tuple[Row, Candidate]] = []
    read: dict[str, int] = {}
    for number, each in enumerate(candidates(api, scene, size)):
        if not number:
            attack.warm_up(each)
        # What is longer was not read with other names in it either.
        elements = min(each.elements, read.get(each.array, each.elements))
        candidate: Candidate | None = replace(each, elements=elements)
        while candidate is not None:
            row = attack.once(candidate)
            tried.append((row, candidate))
            if row.answer_bytes is not None:
                read[candidate.array] = candidate.elements
                break
            candidate = candidate.smaller()
    worst, longest = (
        max(tried, key=lambda each: getattr(each[0], figure)) for figure in ("cpu_ms", "hold_ms")
    )
    row = replace(
        worst[0],
        hold_ms=longest[0].hold_ms,
        has_succeeded=any(each.has_succeeded for each, _ in tried),
    )
    for _, repeated in {id(each): each for each in (worst, longest)}.values():
        attack.again(repeated, seconds, row)
    row.memory_mb = attack.risen_mb()
    console.print(
        f"{row.api} {size}: {row.cpu_ms:.1f} ms CPU ({row.shape} x {row.count}: "
        f"{in_words(row.codes)}), {row.memory_mb:.1f} MB, held {row.hold_ms:.1f} ms "
        f"({longest[0].shape} x {longest[0].count}: {in_words(longest[0].codes)}), again "
        f"{row.hold_p99_ms:.1f} to {row.hold_max_ms:.1f} ms"
    )
    return row


def main() -> int:
    """Measure and print; exit code 1 if a goal is missed."""
    options = _options()
    load = os.getloadavg()[0]
    judges_waits = load < QUIET_LOAD_MAX
    console = Console(width=190)
    found = list(rows(options, Console(stderr=True, width=190)))
    if not found:
        console.print("no API has such a name: " + ", ".join(ApiKey(k).name for k in REGISTRATIONS))
        return 2
    title = f"{machine()}; {options.partitions:,} partitions; ! misses the goal"
    if options.json:
        options.json.write_text(
            json.dumps({"machine": title, "rows": [asdict(row) for row in found]}, indent=1) + "\n"
        )
    console.print(table(found, title, judges_waits=judges_waits))
    console.print(
        f"load at the start {load:.1f}: waits (p99, max) are "
        + ("held to the goals, too" if judges_waits else "shown, and not held to the goals")
    )
    console.print("measured, a refusal: " + (", ".join(refused_apis(found)) or "none"))
    return 1 if any(missed(row, judges_waits=judges_waits) for row in found) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="APIs whose name matches")
    parser.add_argument("--partitions", type=int, default=500, help="of the broker; 500")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each repetition; 1")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=SIZES, help="of the requests, in bytes"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
