"""The command line: starts both brokers, or takes running ones, and plays the scenarios."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from ...testing.process.broker_process import BrokerStartError
from .brokers import ADMIN, AUTHORIZER_SETTINGS, start_kafka, start_odradek
from .explanations import Explained, ExplanationError, read_explanations
from .report import ConformanceReport
from .runner import ScenarioRun, play_all
from .scenario import Scenario, all_scenarios

CHECKOUT = Path(__file__).parents[2]
DIFFERENCES = CHECKOUT / "docs" / "differences.md"


def main(arguments: Sequence[str]) -> int:
    """Run the scenarios; returns the exit code.

    Args:
        arguments: the command line.
    """
    options = _parser().parse_args(arguments)
    scenarios = all_scenarios(needs_authorizer=options.acls)
    settings = AUTHORIZER_SETTINGS if options.acls else {}
    runs = chosen(scenarios, options.words, newest_only=options.newest)
    if options.list or not runs:
        print("\n".join(map(str, runs)) or "no scenario has these words in its name")
        return 0 if runs else 1
    if not (options.kafka or options.kafka_libs):
        print("name Kafka's jars with --kafka-libs, or one that runs with --kafka", file=sys.stderr)
        return 2
    try:
        rows = read_explanations(options.differences)
        with ExitStack() as stack:
            expected_at, actual_at = options.kafka, options.odradek
            if not expected_at:
                kafka = start_kafka(_folder(stack), options.kafka_libs, settings)
                expected_at = stack.enter_context(kafka).bootstrap
            if not actual_at:
                odradek = start_odradek(_folder(stack), settings)
                actual_at = stack.enter_context(odradek).bootstrap
            login = ADMIN if options.acls else None
            results = play_all(runs, expected_at, actual_at, options.prefix, login=login)
    except (BrokerStartError, ConnectionError, ExplanationError) as error:
        print(error, file=sys.stderr)
        return 1
    is_whole = not options.words and not options.newest and not options.acls
    report = ConformanceReport(results, Explained(rows), is_whole=is_whole)
    print("\n".join(report.lines()))
    return 0 if report.is_conformant else 1


def chosen(
    scenarios: Sequence[Scenario], words: Sequence[str] = (), *, newest_only: bool = False
) -> list[ScenarioRun]:
    """The runs of scenarios in whose names every one of some words stands.

    Args:
        scenarios: to choose from.
        words: parts of names, in any letters' case.
        newest_only: whether to play each scenario in its newest version alone.
    """
    runs = [
        ScenarioRun(scenario, version)
        for scenario in scenarios
        for version in (scenario.versions[-1:] if newest_only else scenario.versions)
    ]
    return [run for run in runs if all(word.lower() in str(run).lower() for word in words)]


def _folder(stack: ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="odradek-conformance-")))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m odradek.tools.conformance",
        description="Play scenarios to Apache Kafka and to odradek, and compare their answers.",
    )
    kafka = parser.add_mutually_exclusive_group()
    kafka.add_argument("--kafka-libs", type=Path, metavar="DIR", help="jars to start Kafka from")
    kafka.add_argument("--kafka", metavar="HOST:PORT", help="a Kafka that is running")
    parser.add_argument("--odradek", metavar="HOST:PORT", help="an odradek that is running")
    parser.add_argument("--differences", type=Path, metavar="FILE", default=DIFFERENCES)
    parser.add_argument(
        "--acls", action="store_true", help="the scenarios for brokers with an authorizer"
    )
    parser.add_argument("--newest", action="store_true", help="only each API's newest version")
    parser.add_argument("--list", action="store_true", help="name the scenarios, and play none")
    parser.add_argument("--prefix", default="", help="before the names of topics and groups")
    parser.add_argument("words", nargs="*", metavar="WORD", help="what scenarios' names must have")
    return parser
