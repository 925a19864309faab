"""Where the time of a Produce and of a Fetch goes: the figures and graphs of docs/performance.md.

    python -m odradek.tools.benchmarks.profiles [--before COMMIT] [--seconds 6] [--only produce_16]

Brokers of two states of this checkout, that commit's and the one that lies here, are put under
the same loads in turns. The operating system says what CPU time an exchange took, inside the
kernel and outside; py-spy, which samples the broker in a second run of the load, says in which
functions; `profiling/stages.py` says which stage of a request's way a function is. Without
`--before` the earlier state's figures stay what they are. Needs py-spy (`pip install py-spy`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .measure import MeasuredBroker, broker, machine
from .profiling.account import Account, Counted, Figures, account_of, filled_page, load, save
from .profiling.flame import flame_graph
from .profiling.loads import LOADS, BrokerAddress, ProfiledLoad
from .profiling.samples import Sampling, Stacks, py_spy
from .profiling.stages import in_microseconds

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "performance.md"
FOLDER = ROOT / "docs" / "performance"
FIGURES = FOLDER / "figures.json"
WARM_UP_SECONDS = 1.0
PYTHON_CALLS, BYTECODES = 0, 2
"""Where they stand among the costs that the floor measures."""
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


@contextmanager
def packages(commit: str | None) -> Iterator[dict[str, Path]]:
    """Folders that hold the package `odradek`, as it was at a commit and as it is."""
    with tempfile.TemporaryDirectory(prefix="odradek-profiles-") as name:
        folder = Path(name)
        (folder / "after").mkdir()
        (folder / "after" / "odradek").symlink_to(ROOT)
        found = {"after": folder / "after"}
        if commit is not None:
            package = folder / "before" / "odradek"
            package.mkdir(parents=True)
            archive = subprocess.run(
                ["git", "-C", str(ROOT), "archive", commit], check=True, stdout=subprocess.PIPE
            ).stdout
            subprocess.run(["tar", "-x", "-C", str(package)], check=True, input=archive)
            found = {"before": folder / "before", **found}
        yield found


@contextmanager
def broker_of(package: Path) -> Iterator[MeasuredBroker]:
    """A broker that runs the package in that folder."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(package)
    try:
        with broker() as running:
            yield running
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def cpu_seconds(pid: int) -> tuple[float, float]:
    """A process's CPU time so far, outside the kernel and inside."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) * TICK_SECONDS, int(fields[12]) * TICK_SECONDS


def profile(
    load: ProfiledLoad, package: Path, seconds: float
) -> tuple[Account, dict[tuple[str, ...], float]]:
    """Put a broker under a load, first to measure, then to sample; the cost of each stack, too."""
    with broker_of(package) as running:
        where, pid = BrokerAddress(running.host, running.port), running.process.pid
        load.prepare(where)
        load.run(where, time.monotonic() + WARM_UP_SECONDS)
        began, before = time.monotonic(), cpu_seconds(pid)
        exchanges = load.run(where, began + seconds)
        took, after = time.monotonic() - began, cpu_seconds(pid)
        stacks = sample(load, where, pid, seconds)
    user_us, kernel_us = (
        (later - earlier) / exchanges * 1e6 for earlier, later in zip(before, after, strict=True)
    )
    costs = in_microseconds(stacks, user_us, kernel_us)
    return account_of(load.title, exchanges / took, sum(stacks.values()), costs), costs


def sample(load: ProfiledLoad, where: BrokerAddress, pid: int, seconds: float) -> Stacks:
    """The broker's stacks while the load goes on."""
    until = time.monotonic() + seconds + 2 * WARM_UP_SECONDS
    failures: list[BaseException] = []

    def run() -> None:
        try:
            load.run(where, until)
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    stacks = Sampling(pid, seconds).finish()
    thread.join()
    if failures:
        raise SystemExit(f"the load {load.name} ended while it was sampled: {failures[0]}")
    return stacks


def counted(package: Path) -> dict[str, Counted]:
    """What the floor's script costs with a package, in bytecodes and calls."""
    printed = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "floor" / "floor.py"), "json"],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=package,
    ).stdout
    rows = json.loads(printed)
    return {
        name: Counted(row["says"], row["cost"][BYTECODES], row["cost"][PYTHON_CALLS])
        for name, row in rows.items()
    }


def main() -> int:
    """Measure, and write graphs, figures and the page's tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", metavar="COMMIT", help="measure the earlier state, too")
    parser.add_argument("--seconds", type=float, default=6, help="of each slot")
    parser.add_argument("--only", choices=[load.name for load in LOADS], help="one load")
    options = parser.parse_args()
    py_spy()
    FOLDER.mkdir(exist_ok=True)
    figures = Figures("", {"before": {}, "after": {}}, {"before": {}, "after": {}})
    if FIGURES.exists():
        figures = load(FIGURES)
    elif options.before is None:
        parser.error("there are no earlier figures yet: name a state to compare with, by --before")
    with packages(options.before) as found:
        for which, package in found.items():
            figures.floor[which] = counted(package)
        for each in LOADS:
            if options.only not in (None, each.name):
                continue
            for which, package in found.items():
                account, costs = profile(each, package, options.seconds)
                figures.accounts[which][each.name] = account
                print(
                    f"{each.name:14} {which:7} {account.rate:10,.0f} a second  "
                    f"user {account.user_us:7.1f} us  kernel {account.kernel_us:7.1f} us  "
                    f"{account.samples} samples"
                )
                title = f"{each.title}, {which}: {account.total_us:.1f} us of CPU time each"
                graph = flame_graph(costs, title)
                (FOLDER / f"{each.name}-{which}.svg").write_text(graph)
    figures = figures._replace(machine=machine())
    save(FIGURES, figures)
    PAGE.write_text(filled_page(PAGE.read_text(), figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
