"""How long each page of the console takes where the broker has 10,000 partitions.

    python -m odradek.tools.benchmarks.console_pages [--partitions 10000] [--times 5] [--no-rest]

A broker of its own gets wide topics and narrow ones, records and groups, and a console looks at it.
Each page is asked for once after a rest, longer than any answer of the cluster is shown, and then
some times in a row. What the console and the broker did together is the whole wait: a browser
on this machine waits as long for the page itself.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import trio
from rich.console import Console
from rich.table import Table

from ...client.admin.admin import Admin, NewTopic
from ...client.admin.group_admin import GroupAdmin
from ...client.client import KafkaClient
from ...client.producer.producer import Producer
from ...client.settings import ClientSettings
from .measure import broker, machine

WIDE_PARTITIONS = 100
NARROW_SHARE = 0.1
"""So many of all partitions are topics of their own."""
TOPICS_AT_ONCE = 50
RECORDS = 2_000
GROUPS = 50
REST_SECONDS = 10.5
"""Longer than the console shows an answer of the cluster (`console/cluster/kept.py`)."""
GOAL_MS = 100.0
READY = "console at "

PAGES = (
    "/",
    "/rates.json",
    "/topics",
    "/topics?order=partitions",
    "/topics?search=narrow-7",
    "/topics?page=10",
    "/topics/wide-0",
    "/topics/wide-0/settings",
    "/topics/wide-0/records",
    "/topics/wide-0/records?where=n+%3D+7",
    "/topics/wide-0/records/0/0",
    "/topics/wide-0/producers",
    "/topics/wide-0/produce",
    "/topics/wide-0/delete",
    "/topics/wide-0/follow",
    "/new-topic",
    "/groups",
    "/groups/view?id=group-0",
    "/brokers",
    "/brokers/{broker}",
    "/brokers/{broker}/setting?name=log.cleaner.threads",
    "/transactions",
    "/transactions/hanging",
    "/access",
    "/storage",
    "/storage?page=100",
)


async def prepare(address: str, partitions: int) -> int:
    """Make topics, records and groups; the number of the broker."""
    narrow = int(partitions * NARROW_SHARE)
    topics = [NewTopic(f"narrow-{n}", 1, 1) for n in range(narrow)]
    wide = (partitions - narrow) // WIDE_PARTITIONS
    topics += [NewTopic(f"wide-{n}", WIDE_PARTITIONS, 1) for n in range(wide)]
    async with KafkaClient([address], ClientSettings()) as client:
        admin = Admin(client, 60_000)
        for begin in range(0, len(topics), TOPICS_AT_ONCE):
            await admin.create_topics(topics[begin : begin + TOPICS_AT_ONCE])
        await admin.wait_for_topics([topics[-1].name])
        async with Producer(client) as producer:
            for number in range(RECORDS):
                await producer.send("wide-0", b'{"n": %d}' % number, b"key-%d" % number)
            await producer.flush()
        offsets = {("wide-0", index): 1 for index in range(WIDE_PARTITIONS)}
        for number in range(GROUPS):
            await GroupAdmin(client, 60_000).commit(f"group-{number}", offsets)
        return (await admin.describe_cluster()).controller_id


@contextmanager
def console(address: str, *options: str) -> Iterator[HTTPConnection]:
    """A connection to a console of a broker, which ends with this.

    Args:
        address: of the broker.
        options: further ones of the console.
    """
    program = [sys.executable, "-m", "odradek", "console", "--ends-with-input", "--console-write"]
    with subprocess.Popen(
        [*program, "-b", address, "--listen", "127.0.0.1:0", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        line = process.stdout.readline()
        if not line.startswith(READY):
            raise SystemExit("the console did not start; its message is above")
        connection = HTTPConnection(urlsplit(line.removeprefix(READY).strip()).netloc, timeout=60)
        try:
            yield connection
        finally:
            connection.close()
            process.stdin.close()


def fetch_ms(connection: HTTPConnection, path: str) -> tuple[float, int]:
    """How long a page took, and its bytes."""
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path} was answered with {answer.status}")
    return (time.perf_counter() - began) * 1000, len(body)


def main() -> int:
    """Print the table; exit code 1 if a page misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--no-rest", action="store_true", help="leave out the first column")
    options = parser.parse_args()
    table = Table("page", "after a rest, ms", "median, ms", "most, ms", "KB", title=machine())
    worst = 0.0
    with broker() as running:
        number = trio.run(prepare, running.address, options.partitions)
        with console(running.address) as connection:
            paths = [page.format(broker=number) for page in PAGES]
            for path in paths:  # what is made when it is needed first is made now
                fetch_ms(connection, path)
            for path in paths:
                if not options.no_rest:
                    time.sleep(REST_SECONDS)
                rested, size = fetch_ms(connection, path)
                found = [fetch_ms(connection, path)[0] for _ in range(options.times)]
                median = statistics.median(found)
                worst = max(worst, median, rested)
                first = "" if options.no_rest else f"{rested:.0f}"
                table.add_row(
                    path, first, f"{median:.0f}", f"{max(found):.0f}", f"{size / 1000:.0f}"
                )
                print(f"{path}: {first} {median:.1f}", file=sys.stderr, flush=True)
    Console(width=140).print(table)
    print(f"the slowest: {worst:.0f} ms, goal {GOAL_MS:g} ms")
    return 0 if worst <= GOAL_MS else 1


if __name__ == "__main__":
    raise SystemExit(main())
