"""`odradek bench`: what a broker does on this machine, in figures."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from ..common.client_settings import CommandConfig, connection_settings
from ..common.connection import check_addresses, nobody_at
from ..common.errors import fail
from ..common.show import note
from ..declarations import Option
from .screen import Screen, show_comparison, show_loads

if TYPE_CHECKING:
    from ...bench.loads.load import Load
    from ...bench.report import BenchReport
    from ...bench.run.rounds import Rounds
    from ...bench.target import BenchTarget

SECONDS, QUICK_SECONDS = 3.0, 0.3
ROUNDS, QUICK_ROUNDS = 3, 1
TRIES, QUICK_TRIES = 3, 1
SECONDS_MAX = 120.0
ROUNDS_MAX = 100
OTHER_SECONDS = 2.0
"""About what a slot takes beside its measuring."""


class Choices(NamedTuple):
    """What a run is made of."""

    loads: list[Load]
    seconds: float
    rounds: int
    tries_max: int


def bench(
    bootstrap_server: Annotated[
        str | None,
        Option(
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT",
            help="Measure this broker, odradek or any other Kafka; by default one is started in a"
            " temporary folder.",
        ),
    ] = None,
    command_config: CommandConfig = None,
    pid: Annotated[
        int | None,
        Option(
            "--pid",
            min=1,
            help="The process of that broker, if it is on this machine: its CPU time is shown too.",
        ),
    ] = None,
    only: Annotated[
        str, Option("--only", metavar="REGEX", help="Only loads whose name matches.")
    ] = "",
    seconds: Annotated[
        float | None,
        Option(
            "--seconds",
            min=0.05,
            max=SECONDS_MAX,
            help=f"How long each load is measured, in each round; {SECONDS:g} by default.",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        Option(
            "--rounds",
            min=1,
            max=ROUNDS_MAX,
            help=f"How often; the table has medians. {ROUNDS} by default.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        Option(
            "--quick", help=f"{QUICK_ROUNDS} round of {QUICK_SECONDS:g} s: a look, no measurement."
        ),
    ] = False,
    json_file: Annotated[
        Path | None,
        Option("--json", metavar="FILE", help="Write all figures, to compare runs by."),
    ] = None,
    compare: Annotated[
        Path | None,
        Option("--compare", metavar="FILE", help="Show ratios to an earlier run's --json."),
    ] = None,
    plot: Annotated[
        Path | None,
        Option("--plot", metavar="FILE", help="Draw the figures (PNG, SVG; matplotlib)."),
    ] = None,
    list_loads: Annotated[
        bool, Option("--list", help="Tell what loads there are, and run none.")
    ] = False,
) -> None:
    """Measure a broker: requests a second, latencies, and what they cost it.

    ```
    odradek bench
    odradek bench --quick
    odradek bench --only 'Produce|fetch' --seconds 10 --json before.json
    odradek bench --only 'Produce|fetch' --seconds 10 --compare before.json --plot bench.png
    odradek bench --bootstrap-server 127.0.0.1:9092 --pid 4711
    ```

    Each load runs in a process of its own, for some seconds, once a round; shown are medians. A
    fixed piece of work is timed around each; where another process slowed that, the load is run
    again. Figures of different machines cannot be compared, nor those of a busy one.

    What is written goes to topics named odradek-bench-..., which are deleted after each load.
    docs/bench.md tells how to read the table.
    """
    from ...bench.errors import BenchError
    from ...bench.run.interruptible import interruptible

    if list_loads:
        _list(only)
        return
    choices = Choices(
        _chosen(only, bootstrap_server),
        seconds or (QUICK_SECONDS if quick else SECONDS),
        rounds or (QUICK_ROUNDS if quick else ROUNDS),
        QUICK_TRIES if quick else TRIES,
    )
    try:
        earlier = _earlier(compare, json_file, plot)
        with interruptible():
            report = _run(choices, bootstrap_server, command_config, pid)
        _finish(report, earlier, json_file, plot)
    except BenchError as error:
        fail(str(error))
    if report.failures:
        fail("; ".join(f"{load} failed: {why}" for load, why in report.failures.items()))


def _list(only: str) -> None:
    from ..common.show import show_table

    rows = [[load.name, load.about] for load in _chosen(only, None)]
    show_table(["load", "what it does"], rows)


def _chosen(only: str, bootstrap_server: str | None) -> list[Load]:
    """The loads to run; those that start a broker have no part in measuring another."""
    from ...bench.loads.loads import LOADS

    try:
        requested = re.compile(only)
    except re.error as error:
        fail(f"--only {only!r} is no regular expression: {error}")
    named = [load for load in LOADS if requested.search(load.name)]
    if not named:
        fail(f"no load's name matches --only {only!r}; see: odradek bench --list")
    found = [load for load in named if bootstrap_server is None or not load.starts_broker]
    if not found:
        fail(f"{named[0].name!r} starts brokers of its own: leave --bootstrap-server out")
    return found


def _earlier(compare: Path | None, json_file: Path | None, plot: Path | None) -> Any:
    """The figures to compare with, and their machine.

    It also looks whether the files can be written, before anything is run for nothing.
    """
    from ...bench.plot import check_picture
    from ...bench.report import read_loads

    for path in (json_file, plot):
        if path is not None and not path.absolute().parent.is_dir():
            fail(f"{path.absolute().parent} is no folder, and {path} was to be written to it")
    if plot is not None:
        check_picture(plot)
    return None if compare is None else read_loads(compare)


def _run(
    choices: Choices, bootstrap_server: str | None, command_config: Path | None, pid: int | None
) -> BenchReport:
    from ...bench.machine import in_words, machine, versions
    from ...bench.report import BenchReport
    from ...bench.run.calibration import Calibration
    from ...bench.run.rounds import Rounds
    from ...bench.run.worker_process import measure

    run_id = f"{time.strftime('%m%d%H%M%S')}-{os.getpid()}"
    report = BenchReport(
        began=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        target=bootstrap_server or "odradek, started for this run",
        seconds=choices.seconds,
        rounds=choices.rounds,
        machine=machine(),
        versions=versions(),
    )
    with _target(choices, bootstrap_server, command_config, pid, run_id) as target:
        note(in_words(report.machine, report.versions))

        def measured(load: Load) -> dict[str, float]:
            if load.starts_broker:
                return load.run(target, choices.seconds)
            return measure(load, target, choices.seconds, run_id)

        with Screen(len(choices.loads) * choices.rounds) as screen:
            rounds = Rounds(measured, screen, Calibration(choices.tries_max))
            try:
                rounds.run(choices.loads, choices.rounds)
            except KeyboardInterrupt:
                screen.stop()
                _gather(report, rounds)
                show_loads(report)
                note("interrupted: what was begun is being removed")
                raise
        _gather(report, rounds)
    return report


def _gather(report: BenchReport, rounds: Rounds) -> None:
    from ...bench.run.rounds import medians

    report.loads = medians(rounds.slots)
    report.slots = [slot._asdict() for slot in rounds.slots]
    report.again, report.slowed = rounds.calibration.repeated, rounds.calibration.slowed
    report.left_out, report.failures = rounds.left_out, rounds.failures


@contextmanager
def _target(
    choices: Choices,
    bootstrap_server: str | None,
    command_config: Path | None,
    pid: int | None,
    run_id: str,
) -> Iterator[BenchTarget]:
    """What is measured: the given broker, or a new one that lives as long as this."""
    about = choices.rounds * len(choices.loads) * (choices.seconds * 1.25 + OTHER_SECONDS)
    slots = f"{len(choices.loads)} loads, {choices.rounds} x {choices.seconds:g} s each"
    if bootstrap_server is None:
        if pid is not None:
            fail("--pid is for a broker named with --bootstrap-server")
        from ...bench.run.own_broker import own_broker, target_of

        with own_broker() as broker:
            note(f"odradek is ready at {broker.bootstrap}; {slots}: about {about:.0f} s")
            yield target_of(broker)
        return
    target = _existing_target(bootstrap_server, command_config, pid)
    _tell_what_is_written(target, run_id)
    note(f"{slots}: about {about:.0f} s")
    try:
        yield target
    finally:
        _remove_topics(target, run_id)


def _existing_target(
    bootstrap_server: str, command_config: Path | None, pid: int | None
) -> BenchTarget:
    """The first of the brokers named that answers."""
    from ...bench.cluster import TargetCluster
    from ...bench.errors import BenchError
    from ...bench.target import BenchTarget

    settings = connection_settings(command_config)
    if settings.authenticate is not None or not settings.is_verified:
        fail(f"{command_config}: bench speaks no SASL, and verifies every certificate")
    addresses = check_addresses(bootstrap_server)
    for address in addresses:
        host, _, port = address.rpartition(":")
        target = BenchTarget(host.strip("[]"), int(port), pid, settings.tls)
        target.cpu_seconds()  # says so if there is no such process
        try:
            TargetCluster(target).close()
            break
        except BenchError:
            continue
    else:
        fail(nobody_at(addresses, settings.ssl_context))
    return target


def _tell_what_is_written(target: BenchTarget, run_id: str) -> None:
    from ...bench.cluster import NAME_PREFIX
    from ...bench.loads.produce_load import WRITTEN_BYTES_MAX

    note(
        f"this writes as fast as {target.address} takes it, at most {WRITTEN_BYTES_MAX >> 30} GB a"
        f" load, into topics named {NAME_PREFIX}{run_id}-..., and deletes each; if any is left:"
        f" odradek topics delete NAME -b {target.address}"
    )


def _remove_topics(target: BenchTarget, run_id: str) -> None:
    """Delete what loads that were killed have left."""
    from ...bench.cluster import NAME_PREFIX, TargetCluster
    from ...bench.errors import BenchError

    try:
        with TargetCluster(target) as cluster:
            cluster.delete_topics(cluster.topics_named(f"{NAME_PREFIX}{run_id}-"))
    except BenchError as error:
        note(
            f"topics named {NAME_PREFIX}{run_id}-... may be left, for {error}; once it answers:"
            f" odradek topics list -b {target.address}, and odradek topics delete NAME"
        )


def _finish(report: BenchReport, earlier: Any, json_file: Path | None, plot: Path | None) -> None:
    """Show and write everything."""
    show_loads(report)
    runs = {"this run": report.loads}
    if earlier is not None:
        loads, machine = earlier
        show_comparison(report, loads, machine)
        runs = {"earlier": loads, **runs}
    sys.stdout.flush()
    if json_file is not None:
        report.save(json_file)
        note(f"all figures are in {json_file}")
    if plot is not None:
        _draw(plot, runs, report)


def _draw(path: Path, runs: Any, report: BenchReport) -> None:
    from ...bench.machine import in_words
    from ...bench.plot import plot

    plot(path, runs, in_words(report.machine, report.versions))
    note(f"picture: {path}")
