"""What a console costs a busy broker: beside one, and with open pages, against without one.

    python -m odradek.tools.benchmarks.console_cost [--rounds 5] [--seconds 4] [--alone 20]

What a console asks of a broker goes by the clock, not by what else the broker does. So what is
judged is the share of a core that the broker spends on it while nobody else asks for anything:
a broker that has all it can do serves as much less. Exit code 1 if that is above 3 %.

What a producer and then a consumer lose is shown beside it: with no console; with none once more,
which shows how far the machine alone moves a figure; with a console of which no page is open; and
with an overview, read anew as a browser does, and a followed topic, whose events come, open. States
take turns at being the first of a round, and are compared within it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

import trio
from rich.console import Console
from rich.table import Table

from ...bench.figures import Figures
from ...bench.loads.fetch_load import bulk_fetch
from ...bench.loads.produce_load import small_produce
from ...bench.run.own_broker import OwnBroker
from ...client.admin.admin import Admin, NewTopic
from ...client.client import KafkaClient
from .console_pages import console, fetch_ms
from .measure import MeasuredBroker, machine, verdict

COST_PERCENT_MAX: Final = 3.0
LOADS: Final = {"producer": small_produce(4, 8), "consumer": bulk_fetch(1000)}
NONE, NONE_AGAIN, IDLE, OPEN = "no console", "none again", "no page open", "pages open"
FIGURES: Final = {"rate": "records a second", "cpu_us": "us of the broker for each"}
STATES: Final = (NONE, NONE_AGAIN, IDLE, OPEN)
FOLLOWED: Final = "followed"
READ_ANEW_SECONDS: Final = {"/": 5.0, "/rates.json": 2.0, "/traffic": 2.0}
"""How often an open overview asks for its parts (`console/templates/overview.html`)."""


@contextmanager
def broker() -> Iterator[MeasuredBroker]:
    """A broker with metrics, and with a topic to be followed."""
    with (
        tempfile.TemporaryDirectory() as folder,
        OwnBroker(Path(folder) / "data", arguments=["--metrics", "127.0.0.1:0"]) as process,
    ):
        running = MeasuredBroker(process)
        trio.run(make_topic, running.address)
        yield running


async def make_topic(address: str) -> None:
    """Make the topic that is followed."""
    async with KafkaClient(address) as client:
        await Admin(client).create_topics([NewTopic(FOLLOWED, 1, 1)])
        await Admin(client).wait_for_topics([FOLLOWED])


@contextmanager
def idle_console(running: MeasuredBroker) -> Iterator[HTTPConnection]:
    """A console of which no page is open."""
    urls = [f"--metrics={url}" for url in running.process.metrics_urls]
    with console(running.address, *urls) as connection:
        fetch_ms(connection, "/login")  # it serves; the page asks the broker for nothing
        yield connection


@contextmanager
def open_console(running: MeasuredBroker) -> Iterator[None]:
    """A console with an overview and a followed topic open.

    Raises:
        SystemExit: a page was not answered.
    """
    over, failures = threading.Event(), list[BaseException]()
    with idle_console(running) as connection:

        def keep_fresh(path: str, seconds: float) -> None:
            own = HTTPConnection(connection.host, connection.port, timeout=60)
            try:
                while not over.wait(seconds):
                    fetch_ms(own, path)
            except (OSError, SystemExit) as failure:
                failures.append(failure)
            finally:
                own.close()

        events = HTTPConnection(connection.host, connection.port, timeout=60)
        events.request("GET", f"/topics/{FOLLOWED}/follow/events")
        answer = events.getresponse()
        if answer.readline() != b":\n":
            raise SystemExit(f"following was answered with {answer.status}")
        threads = [
            threading.Thread(target=keep_fresh, args=each) for each in READ_ANEW_SECONDS.items()
        ]
        for path in READ_ANEW_SECONDS:
            fetch_ms(connection, path)
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
            answer.close()
            events.close()
    if failures:
        raise SystemExit(f"an open page was not answered: {failures[0]}")


def beside(state: str, running: MeasuredBroker) -> AbstractContextManager[object]:
    """What runs beside the broker in a state."""
    if state == OPEN:
        return open_console(running)
    return idle_console(running) if state == IDLE else nullcontext()


def share_of_a_core(running: MeasuredBroker, seconds: float) -> float:
    """In percent, of what the broker does while nobody but a console asks for anything."""
    before = running.cpu_seconds()
    time.sleep(seconds)  # what it does in that time is what is measured
    return 100 * (running.cpu_seconds() - before) / seconds


def measure(
    rounds: int, seconds: float, alone_seconds: float
) -> tuple[dict[tuple[str, str], list[Figures]], dict[str, float]]:
    """The figures of each load in each state, those of one round each; and the broker's alone."""
    figures: dict[tuple[str, str], list[Figures]] = defaultdict(list)
    with broker() as running:
        for load in LOADS.values():  # what is made when it is needed first is made now
            load.run(running.target, min(seconds, 1.0))
        for number in range(rounds):
            turn = number % len(STATES)
            for state in STATES[turn:] + STATES[:turn]:
                with beside(state, running):
                    for name, load in LOADS.items():
                        figures[name, state].append(load.run(running.target, seconds))
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        alone = {}
        for state in STATES:
            with beside(state, running):
                alone[state] = share_of_a_core(running, alone_seconds)
    return figures, alone


def percent_more(figures: list[Figures], without: list[Figures], figure: str) -> float:
    """How much higher a figure is than it was without, in the median of the rounds."""
    pairs = zip(figures, without, strict=True)
    return 100 * (statistics.median(beside[figure] / base[figure] for beside, base in pairs) - 1)


def main() -> int:
    """Print figures and what is lost; exit code 1 if a console costs too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each load in each state")
    parser.add_argument("--alone", type=float, default=20.0, help="seconds of nothing else")
    options = parser.parse_args()
    found, alone = measure(options.rounds, options.seconds, options.alone)
    table = Table("median", *STATES, title=machine())
    for name in LOADS:
        for figure, title in FIGURES.items():
            medians = (
                statistics.median(each[figure] for each in found[name, state]) for state in STATES
            )
            table.add_row(f"{name}, {title}", *(f"{each:,.2f}" for each in medians))
        for figure, title in FIGURES.items():
            changes = (
                percent_more(found[name, state], found[name, NONE], figure) for state in STATES[1:]
            )
            table.add_row(
                f"{name}, {title}, changed by", "", *(f"{each:+.1f} %" for each in changes)
            )
    table.add_row(
        "nobody else, % of a core of the broker", *(f"{alone[state]:.2f}" for state in STATES)
    )
    Console(width=140).print(table)
    reached = [
        verdict(
            f"with {state} the broker spends on the console",
            alone[state] - min(alone[NONE], alone[NONE_AGAIN]),
            COST_PERCENT_MAX,
            "% of a core",
            at_most=True,
        )
        for state in (IDLE, OPEN)
    ]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    raise SystemExit(main())
