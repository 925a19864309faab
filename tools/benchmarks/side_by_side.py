"""odradek beside Apache Kafka and kfake on this machine.

    python -m odradek.tools.benchmarks.side_by_side


All three run at once and take turns, so that a machine that changes its speed changes it
for all; three brokers of each come after, when the single ones have ended. Needs Java, Maven and
Go, and fetches Kafka's jars and kfake once. `--compare EARLIER.json` shows, too, how the figures
changed since a run whose file was kept; with `--of LATER.json` nothing runs, and two files are
compared.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from .compared import report
from .compared.loads import GUARDED, ONE_BROKER, SPARK, THREE_BROKERS, warm_ups
from .compared.loads.load import ComparedLoad, Tools
from .compared.makes import ApacheKafka, Kfake, Odradek
from .compared.peers import Peer
from .compared.plot import plot
from .compared.rounds import Turns
from .compared.slots import ComparedRun, load_run, medians
from .compared.time_left import TimeLeft
from .compared.watching import Shown
from .measure import machine

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILT = ROOT / ".cache" / "bench"
KAFKA_POM = ROOT / "tests" / "interop" / "java" / "pom.xml"
PEERS = (Odradek.name, ApacheKafka.name, Kfake.name)
WIDTH_MIN = 160


class Stage(NamedTuple):
    """Peers that run at the same time, and their loads.

    Attributes:
        brokers: of each make.
        starts: how often each is started.
        start_name: of the row that tells how that went.
        groups: loads that run in all rounds before the next group's.
        guarded: whether ACLs decide who may do what.
    """

    brokers: int
    starts: int
    start_name: str
    groups: list[list[ComparedLoad]]
    guarded: bool = False


def main() -> int:
    """Run the loads that were requested; 1 if a goal was missed."""
    options = _options()
    console = Console()
    if console.width < WIDTH_MIN:
        console = Console(width=WIDTH_MIN)
    earlier = _run_of(options.compare) if options.compare else None
    run = _run_of(options.of) if options.of else measured(options, console)
    table = medians(run.slots)
    names = [name for name in PEERS if any(name in by_peer for by_peer in table.values())]
    console.print(run.machine, "; ".join(f"{k} {v}" for k, v in run.versions.items()), sep="\n")
    report.show(table, names, console)
    for line in run.failures:
        console.print(line, highlight=False, markup=False)
    reached = Odradek.name not in names or report.show_goals(table, console)
    if earlier is not None:
        report.show_changes(medians(earlier.slots), table, names, str(options.compare), console)
    return 0 if reached else 1


def measured(options: argparse.Namespace, console: Console) -> ComparedRun:
    """Ask all peers, and keep the figures."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # which ends the peers, too
    _raise_limit_of_descriptors()
    stages = _stages(options)
    chosen = [name for name in PEERS if re.search(options.peers, name)]
    planned = [
        (load.name, name)
        for stage in stages
        for group in stage.groups
        for load in group
        for name in (_guarded(chosen) if stage.guarded else chosen) * options.rounds
    ]
    tools = Tools(build_go("load", HERE / "load"), kafka_jars(), options.seconds, options.scale)
    kfake = build_go("kfake", HERE / "compared" / "kfake")
    console.print(machine(), f"{len(planned)} slots in {options.rounds} rounds", sep="; ")
    with Shown(console, TimeLeft(planned)) as shown, tools.closing:
        turns = Turns(tools, shown)
        try:
            for stage in stages:
                peers: list[Peer] = [
                    Odradek(stage.brokers, guarded=stage.guarded),
                    ApacheKafka(tools.jars, stage.brokers, guarded=stage.guarded),
                    Kfake(kfake, stage.brokers),
                ]
                names = _guarded(chosen) if stage.guarded else chosen
                selected = [peer for peer in peers if peer.name in names]
                run_stage(stage, selected, turns, shown, options.rounds)
        except KeyboardInterrupt:
            shown.say("interrupted; here is what was measured so far")
    console.print(
        f"medians of {options.rounds} rounds; {turns.calibration.repeated} slots were repeated, "
        f"{turns.calibration.slowed} kept though something slowed them"
    )
    failures = [f"{load} is left out: {why}" for load, why in turns.left_out.items()]
    failures += [f"{load} on {peer} failed: {why}" for (load, peer), why in turns.failures.items()]
    run = ComparedRun(machine(), versions(), turns.slots, failures)
    options.out.mkdir(parents=True, exist_ok=True)
    run.save(options.out / "bench.json")
    plot(options.out / "bench.png", medians(run.slots), chosen, run.machine)
    console.print(f"all figures in {options.out}/bench.json, drawn in {options.out}/bench.png")
    return run


def run_stage(stage: Stage, peers: Sequence[Peer], turns: Turns, shown: Shown, rounds: int) -> None:
    """Start its peers, warm them up, ask them, and end them."""
    with contextlib.ExitStack() as stack:
        for peer in peers:
            stack.callback(peer.stop)
        turns.start(peers, stage.starts, stage.start_name)
        running = [peer for peer in peers if peer.runs()]
        for peer in peers:
            if peer not in running:
                for load in (load for group in stage.groups for load in group):
                    shown.no_more(load.name, peer.name)
        if not running:
            return
        for group in stage.groups:
            for load in warm_ups(group):
                for peer in running:
                    turns.warm_up(load, peer)
            turns.run(group, running, rounds)


def _guarded(names: Sequence[str]) -> list[str]:
    """Those of the peers that have ACLs."""
    return [name for name in names if name != Kfake.name]


def _stages(options: argparse.Namespace) -> list[Stage]:
    def chosen(loads: Sequence[ComparedLoad]) -> list[ComparedLoad]:
        return [load for load in loads if re.search(options.only, load.name)]

    one = [group for group in (chosen(ONE_BROKER), chosen(SPARK)) if group]
    guarded = [group for group in (chosen(GUARDED),) if group]
    three = [group for group in (chosen(THREE_BROKERS),) if group]
    stages = []
    if one or not (guarded or three):
        stages.append(Stage(1, options.starts, "start", one))
    if guarded:
        stages.append(Stage(1, 1, "with ACLs, start", guarded, guarded=True))
    if three:
        stages.append(Stage(3, 1, "three brokers, start", three))
    return stages


def build_go(name: str, source: Path) -> Path:
    """Compile a Go program of ours."""
    program = BUILT / name
    BUILT.mkdir(parents=True, exist_ok=True)
    _run(["go", "build", "-o", str(program), "."], source, "Go from Debian's golang or go's site")
    return program


def kafka_jars() -> Path:
    """A folder with Apache Kafka's jars, fetched once."""
    jars = BUILT / "kafka"
    if not jars.is_dir():
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}.partial"]
        _run(["mvn", "-q", "-f", str(KAFKA_POM), *goal], ROOT, "Debian's maven")
        Path(f"{jars}.partial").rename(jars)
    return jars


def versions() -> dict[str, str]:
    """What was compared, and by which clients."""
    kafka = re.search(r"<kafka.version>(.+?)<", KAFKA_POM.read_text())
    kfake = re.search(r"kfake (\S+)", (HERE / "compared" / "kfake" / "go.mod").read_text())
    assert kafka is not None
    assert kfake is not None
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    found = {
        "odradek": metadata.version("odradek"),
        "Apache Kafka": kafka[1],
        "kfake": kfake[1],
        "Python": platform.python_version(),
        "Java": java.stderr.partition("\n")[0],
    }
    for client in ("trio", "kafka-python", "confluent-kafka", "pyspark"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[client] = metadata.version(client)
    return found


def _run(command: list[str], folder: Path, needs: str) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True)
    except FileNotFoundError:
        raise SystemExit(f"{command[0]} is needed for this comparison: install {needs}.") from None
    except subprocess.CalledProcessError:
        raise SystemExit(f"{command[0]} failed in {folder}; what it said is above.") from None


def _run_of(path: Path) -> ComparedRun:
    try:
        return load_run(path)
    except ValueError as error:
        raise SystemExit(str(error)) from error


def _raise_limit_of_descriptors() -> None:
    """Thousands of connections need one each, here and in the peers, which inherit the limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each load of requests")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--only", default="", metavar="REGEX", help="loads whose name matches")
    parser.add_argument("--peers", default="", metavar="REGEX", help="brokers whose name matches")
    parser.add_argument("--out", type=Path, default=Path(".cache/bench/results"))
    parser.add_argument(
        "--compare", type=Path, metavar="EARLIER.json", help="an earlier run's file"
    )
    parser.add_argument("--of", type=Path, metavar="LATER.json", help="a file in place of a run")
    options = parser.parse_args()
    if options.of and not options.compare:
        parser.error("--of needs --compare, the file to compare with.")
    if options.rounds < 1 or options.starts < 1:
        parser.error("--rounds and --starts are at least 1.")
    return options


if __name__ == "__main__":
    sys.exit(main())
