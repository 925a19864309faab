"""What requests cost, in what the interpreter does for them; the table is in `floor.toml`.

    python tests/floor/floor.py                       what each costs now, beside the table
    python tests/floor/floor.py write                 the table anew, from what they cost now
    python tests/floor/floor.py tree produce_small    where a request's calls and bytecodes go
    python tests/floor/floor.py diff produce_small HEAD~3
                                                      which functions cost more than at that commit

Each request is handled by a real broker in this process. The numbers are the same on any machine
and under any load; they differ between versions of Python, so the table is of one, and others are
held to the columns that hold for all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from limits import TABLE, at_most, over, write_table
from measuring import Cost, Measured, measure
from script import CASES, GUARDED

ALL = [*CASES, *GUARDED]

HASH_SEED = "0"
DIFFERENCE_MIN = 0.5
"""Bytecodes or calls per request below which two commits count as equal."""


def with_fixed_hashes() -> None:
    """Begin again with a fixed seed for hashes, so that sets have one order."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.argv])


def show_table(found: Mapping[str, Measured]) -> int:
    """Print every cost, and beside it the table's where it is more than that."""
    limits = at_most()
    print(f"{'a request of':26}" + "".join(f"{name:>14}" for name in Cost._fields))
    for name, measured in found.items():
        print(f"{name:26}" + "".join(f"{value:14g}" for value in measured.cost))
    failures = [
        f"{name}: {text}" for name, each in found.items() for text in over(name, each.cost, limits)
    ]
    print(*failures, sep="\n")
    return 1 if failures else 0


def show_tree(calls: Mapping[str, Sequence[Any]], bytecodes: Mapping[str, float]) -> None:
    """Print who calls whom, how often per request, and the bytecodes of each function."""
    print("calls per request, the function's own bytecodes per request, who is called")

    def show(children: Mapping[str, Sequence[Any]], depth: int) -> None:
        for name, (times, below) in children.items():
            own = bytecodes.get(name)
            own_text = f"{own:9.1f}" if own is not None else " " * 9
            print(f"{times:8.2f} {own_text} {'  ' * depth}{name}")
            show(below, depth + 1)

    show(calls, 0)


def flat(calls: Mapping[str, Sequence[Any]]) -> dict[str, float]:
    """Calls per request of every function, wherever it is called from."""
    total: dict[str, float] = {}

    def add(children: Mapping[str, Sequence[Any]]) -> None:
        for name, (times, below) in children.items():
            total[name] = total.get(name, 0) + times
            add(below)

    add(calls)
    return total


def measure_commit(name: str, commit: str) -> dict[str, Any]:
    """Measure one case with the package as it was at a commit, in another process."""
    here = Path(__file__).parent
    root = here.parents[1]
    with tempfile.TemporaryDirectory(prefix="odradek-commit-") as folder:
        package = Path(folder) / "odradek"
        package.mkdir()
        archive = subprocess.run(
            ["git", "-C", str(root), "archive", commit], check=True, stdout=subprocess.PIPE
        ).stdout
        subprocess.run(["tar", "-x", "-C", str(package)], check=True, input=archive)
        printed = subprocess.run(
            [sys.executable, str(here / "floor.py"), "json", name],
            check=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": folder},
            cwd=folder,
        ).stdout
    return dict(json.loads(printed)[name])


def show_difference(name: str, commit: str, now: Measured) -> None:
    """Print which functions' calls and bytecodes have changed since a commit, largest first."""
    then = measure_commit(name, commit)
    print(f"{name}: {now.says}")
    for field, before, after in zip(Cost._fields, then["cost"], now.cost, strict=True):
        print(f"  {field:14} {before:10g} -> {after:10g}  ({after - before:+g})")
    for what, before, after in (
        ("bytecodes of", then["bytecodes_by_function"], now.bytecodes_by_function),
        ("calls of", flat(then["tree"]), flat(now.tree)),
    ):
        changes = {
            function: after.get(function, 0) - before.get(function, 0)
            for function in {*before, *after}
        }
        for function, change in sorted(changes.items(), key=lambda item: (-abs(item[1]), item[0])):
            if abs(change) >= DIFFERENCE_MIN:
                print(f"{change:+10.1f} {what} {function}")


def main() -> int:
    """The command line; the exit code is 1 where a request costs more than the table says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what", nargs="?", default="show", choices=["show", "write", "tree", "diff", "json"]
    )
    parser.add_argument("case", nargs="?", choices=[*ALL, None], metavar="CASE")
    parser.add_argument("commit", nargs="?", help="for diff: the commit to compare with")
    options = parser.parse_args()
    with_fixed_hashes()
    if options.what in ("tree", "diff") and options.case is None:
        parser.error(f"{options.what} wants the name of a case: {', '.join(ALL)}")
    found = measure([options.case] if options.case else ALL)
    match options.what:
        case "show":
            return show_table(found)
        case "write":
            write_table(found)
            print(f"wrote {TABLE}")
        case "json":
            limits = at_most()
            printed = {
                name: {**each._asdict(), "over": list(over(name, each.cost, limits))}
                for name, each in found.items()
            }
            json.dump(printed, sys.stdout)
        case "tree":
            measured = found[options.case]
            show_tree(measured.tree, measured.bytecodes_by_function)
        case "diff":
            show_difference(options.case, options.commit or "HEAD", found[options.case])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
