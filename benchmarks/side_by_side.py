"""odradek beside Apache Kafka and kfake on this machine: `python benchmarks/side_by_side.py`.

All three run at once and are asked in turns, so that a machine that changes its speed changes it
for all. Needs Java, Maven and Go, and fetches Kafka's jars and kfake once.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import re
import subprocess
import sys
from pathlib import Path

from compared import report
from compared.loads import LOADS, Tools, small_produce
from compared.peers import ApacheKafka, Kfake, Odradek, Peer
from compared.rounds import Slot, Turns, medians
from measure import machine
from rich.console import Console

HERE = Path(__file__).parent
ROOT = HERE.parent
BUILT = ROOT / ".cache" / "bench"
KAFKA_POM = ROOT / "tests" / "interop" / "java" / "pom.xml"


def main() -> int:
    """Run the loads that were asked for; 1 if a goal was missed."""
    options = _options()
    console = Console(width=160)
    chosen = [load for load in LOADS if re.search(options.only, load.name)]
    tools = Tools(build_go("load", HERE / "load"), kafka_jars(), options.seconds, options.scale)
    kfake = build_go("kfake", HERE / "compared" / "kfake")
    console.print(machine())
    with contextlib.ExitStack() as stack:
        peers: list[Peer] = [Odradek(), ApacheKafka(tools.jars), Kfake(kfake)]
        peers = [peer for peer in peers if re.search(options.peers, peer.name)]
        starts = start_in_turns(peers, options.starts, stack)
        turns = Turns(peers, tools, lambda line: console.print(line, highlight=False))
        turns.slots += starts
        for peer in peers:
            turns.warm_up(small_produce(16, 1), peer)
        turns.run(chosen, options.rounds)
    table = medians(turns.slots)
    names = [peer.name for peer in peers]
    console.print(
        f"{machine()}; medians of {options.rounds} rounds; of the slots {turns.dropped} were done "
        f"again, and {turns.slowed} kept, though something slowed them"
    )
    report.show(table, names, console)
    reached = report.show_goals(table, console)
    options.out.mkdir(parents=True, exist_ok=True)
    report.save(options.out / "bench.json", machine(), versions(), turns.slots)
    report.plot(options.out / "bench.png", table, names, machine())
    console.print(f"all figures in {options.out}/bench.json, drawn in {options.out}/bench.png")
    return 0 if reached else 1


def start_in_turns(peers: list[Peer], times: int, stack: contextlib.ExitStack) -> list[Slot]:
    """Start each so often, and leave it running at last; how long that took, and its memory."""
    slots = []
    for number in range(times):
        for peer in peers:
            peer.start()
            figures = {"ready_s": peer.ready_seconds, "memory_mb": peer.resident_mb()}
            slots.append(Slot("start", peer.name, figures, 0.0))
            if number < times - 1:
                peer.end()
            else:
                stack.callback(peer.stop)
    return slots


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
    """What was compared."""
    kafka = re.search(r"<kafka.version>(.+?)<", KAFKA_POM.read_text())
    kfake = re.search(r"kfake (\S+)", (HERE / "compared" / "kfake" / "go.mod").read_text())
    assert kafka is not None
    assert kfake is not None
    return {"python": platform.python_version(), "Apache Kafka": kafka[1], "kfake": kfake[1]}


def _run(command: list[str], folder: Path, needs: str) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True)
    except FileNotFoundError:
        raise SystemExit(f"{command[0]} is needed for this comparison: install {needs}.") from None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each load of requests")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--only", default="", metavar="REGEX", help="loads whose name matches")
    parser.add_argument("--peers", default="", metavar="REGEX", help="brokers whose name matches")
    parser.add_argument("--out", type=Path, default=Path(".cache/bench/results"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
