"""Kafka's own tools against Apache Kafka and odradek side by side: they say the same of both."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from .java_tools import JavaTools

SETTLED_SECONDS = 60.0
NUMBERED_CLIENT = re.compile(r"adminclient-\d+")
"""Java numbers the clients of a process."""


class Outcome(NamedTuple):
    """What a command says."""

    code: int
    lines: list[str]
    fault: str
    text: str


def in_order(line: str) -> str:
    """A line with its settings sorted: Kafka says them in another order in each of its runs."""
    of, are, settings = line.partition(" are ")
    return of + are + ", ".join(sorted(settings.split(", ")))


class Both(NamedTuple):
    """The two brokers, and a tool of Kafka's.

    Attributes:
        tools: what runs it.
        addresses: Kafka's and odradek's.
        tool: its class, and what each of its commands begins with.
        made_up: what each broker makes up: a pattern, and what stands for it.
    """

    tools: JavaTools
    addresses: tuple[str, str]
    tool: tuple[str, ...]
    made_up: tuple[tuple[str, str], ...] = ()

    def run(self, *arguments: str, each: tuple[str, str] = ("", "")) -> tuple[Outcome, Outcome]:
        """Run a command on both; what one of them has made up goes behind it."""

        def run_one(address: str, own: str) -> Outcome:
            name, *options = self.tool
            done = self.tools.run(
                name, "--bootstrap-server", address, *options, *arguments, *filter(None, [own])
            )
            # A fault is an exception with its stack: what it says is in its first lines.
            fault = [line for line in done.stderr.splitlines() if not line.startswith("\tat ")]
            text = NUMBERED_CLIENT.sub("CLIENT", "\n".join(fault).replace(address, "BROKER"))
            lines = sorted(map(in_order, done.stdout.splitlines()))
            return Outcome(done.returncode, lines, text, done.stdout)

        with ThreadPoolExecutor(2) as pool:
            of_kafka, of_odradek = pool.map(run_one, self.addresses, each)
        return of_kafka, of_odradek

    def same(self, *arguments: str, each: tuple[str, str] = ("", "")) -> tuple[str, str]:
        """A command that succeeds and says the same of both; returns what, as they say it."""
        both = self.run(*arguments, each=each)
        assert self.masked(both[1]) == self.masked(both[0])
        assert both[0].code == 0, both
        return both[0].text, both[1].text

    def refused(self, *arguments: str) -> None:
        """A command that fails with the same words on both."""
        both = self.run(*arguments)
        assert self.masked(both[1]) == self.masked(both[0])
        assert both[0].code != 0, both

    def masked(self, outcome: Outcome) -> tuple[int, list[str], str]:
        """What is compared."""
        lines, fault = outcome.lines, outcome.fault
        for pattern, name in self.made_up:
            lines = [re.sub(pattern, name, line) for line in lines]
            fault = re.sub(pattern, name, fault)
        return outcome.code, sorted(lines), fault

    def settled(self, *arguments: str, holds: str, gone: str = "\0") -> None:
        """What a command says is the same, once what was altered is there, or gone, on both."""
        ends = time.monotonic() + SETTLED_SECONDS
        while True:
            both = self.run(*arguments)
            texts = ["\n".join(each.lines) for each in both]
            if all(holds in text and gone not in text for text in texts):
                assert self.masked(both[1]) == self.masked(both[0])
                return
            assert time.monotonic() < ends, both
