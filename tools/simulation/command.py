"""The command line of the simulator."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterable, Sequence

from .checkers.invariants import InvariantBroken
from .mix import FULL, MIXES
from .runs import SECONDS, Report, Run, run, shrink


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line says; 1 where something was found."""
    parser = argparse.ArgumentParser(
        "python -m odradek.tools.simulation",
        description="Simulates whole clusters from seeds, and says what broke.",
    )
    parser.add_argument("--seed", type=int, help="one seed, with a trace of what happens")
    parser.add_argument("--seeds", metavar="A-B", help="these seeds, without traces")
    parser.add_argument("--mix", choices=sorted(MIXES), default=FULL.name)
    parser.add_argument("--brokers", type=int, help="how many; the seed decides if left out")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="simulated, of each run")
    parser.add_argument("--skip", default="", help="numbers of faults that do not happen")
    parser.add_argument("--shrink", action="store_true", help="look for a smaller run that fails")
    parser.add_argument("--log", action="store_true", help="show the brokers' logs, too")
    options = parser.parse_args(arguments)
    mix = MIXES[options.mix]
    if options.brokers:
        mix = mix._replace(brokers=options.brokers)
    if options.log:
        logging.basicConfig(
            format="             %(message)s", level=logging.INFO, stream=sys.stdout
        )
    else:
        logging.disable(logging.WARNING)
    skipped = frozenset(int(each) for each in options.skip.split(",") if each)
    if options.seeds:
        first, _, last = options.seeds.partition("-")
        runs: Iterable[Run] = (
            Run(seed, mix, options.seconds) for seed in range(int(first), int(last or first) + 1)
        )
        return _run_all(runs)
    what = Run(options.seed or 0, mix, options.seconds, skipped)
    if options.shrink:
        what = shrink(what, print)
        print(f"the smallest run that fails: {what}")
    return _run_all([what], is_traced=True)


def _run_all(runs: Iterable[Run], *, is_traced: bool = False) -> int:
    total, failures = Report(), 0
    began = time.perf_counter()
    for what in runs:
        try:
            total.add(run(what, print if is_traced else None))
        except InvariantBroken as broken:
            failures += 1
            print(f"seed {what.seed}: {broken}", flush=True)
    seconds = time.perf_counter() - began
    if not is_traced:
        print(_summary(total, failures, seconds))
    return 1 if failures else 0


def _summary(total: Report, failures: int, seconds: float) -> str:
    hours = total.simulated_seconds / 3600
    return (
        f"{hours:.2f} simulated hours in {seconds:.0f} s of wall time: "
        f"{hours * 60 / seconds:.2f} hours a minute, {total.simulated_seconds / seconds:.0f} times "
        f"real time; {total.faults.total()} faults, {total.acknowledged} records acknowledged, "
        f"{total.elections} controllers, {failures} runs failed"
    )
