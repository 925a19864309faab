"""What a console costs a busy broker: beside one, and with open pages, against without one.

    python -m odradek.tools.benchmarks.console_cost [--rounds 5] [--seconds 5]

A producer and then a consumer keep a broker with metrics busy: with no console; with none once
more, which shows how far the machine alone moves a rate; with a console of which no page is open;
and with an overview, read anew as a browser does, and a followed topic, whose events come, open.
States take turns at being the first of a round, and are compared within it. A broker that has all
it can do serves fewer records by as much as each costs it more of its processor time: that is what
is judged, for rates move by more with whatever else the machine does. They are shown, too. Exit
code 1 if the median of what a record costs more beside a console is above 3 %.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
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


def measure(rounds: int, seconds: float) -> dict[tuple[str, str], list[Figures]]:
    """The figures of each load in each state, those of one round each."""
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
    return figures


def percent_more(figures: list[Figures], without: list[Figures], figure: str) -> float:
    """How much higher a figure is than it was without, in the median of the rounds."""
    pairs = zip(figures, without, strict=True)
    return 100 * (statistics.median(beside[figure] / base[figure] for beside, base in pairs) - 1)


def main() -> int:
    """Print figures and what is lost; exit code 1 if a console costs too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load in each state")
    options = parser.parse_args()
    found = measure(options.rounds, options.seconds)
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
    Console(width=140).print(table)
    reached = [
        verdict(
            f"{name} with {state}, a record costs more",
            percent_more(found[name, state], found[name, NONE], "cpu_us"),
            COST_PERCENT_MAX,
            "%",
            at_most=True,
        )
        for name in LOADS
        for state in (IDLE, OPEN)
    ]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    raise SystemExit(main())
