"""Runs by their seed: what is found is said with the command that replays it, and made smaller."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .checkers.invariants import InvariantBroken
from .cluster import simulation
from .mix import FULL, MIXES, Mix

SECONDS = 40
"""Simulated seconds of a run in which faults happen; about as many pass without."""


class Run(NamedTuple):
    """What a run is made by.

    Attributes:
        seed: decides everything.
        mix: of clients and faults.
        seconds: with faults, simulated.
        skipped: numbers of faults that do not happen.
    """

    seed: int
    mix: Mix = FULL
    seconds: float = SECONDS
    skipped: frozenset[int] = frozenset()

    def __str__(self) -> str:
        """As the command line takes it."""
        text = f"--seed {self.seed} --mix {self.mix.name} --seconds {self.seconds:g}"
        if self.mix.brokers != MIXES[self.mix.name].brokers:
            text += f" --brokers {self.mix.brokers}"
        if self.skipped:
            text += " --skip " + ",".join(map(str, sorted(self.skipped)))
        return text

    @classmethod
    def parse(cls, line: str) -> Run:
        """A line of the regression file, as `__str__` gives it."""
        words = line.split()
        found = dict(zip(words[::2], words[1::2], strict=True))
        mix = MIXES[found.get("--mix", FULL.name)]
        if "--brokers" in found:
            mix = mix._replace(brokers=int(found["--brokers"]))
        return cls(
            int(found["--seed"]),
            mix,
            float(found.get("--seconds", SECONDS)),
            frozenset(int(each) for each in found.get("--skip", "").split(",") if each),
        )


@dataclass
class Report:
    """What happened in a run, or in several.

    Attributes:
        simulated_seconds: how much time passed in them.
        faults: how often each happened.
        acknowledged: records that producers were.
        expired: records that retention has deleted.
        committed: transactions that were, and offsets of groups.
        elections: of controllers.
        rests: how often the cluster came to rest.
        numbered: faults that were drawn, whether they could happen or not.
    """

    simulated_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    expired: int = 0
    committed: int = 0
    elections: int = 0
    rests: int = 0
    numbered: int = 0

    def add(self, other: Report) -> None:
        """Count another run, too."""
        self.simulated_seconds += other.simulated_seconds
        self.faults.update(other.faults)
        self.acknowledged += other.acknowledged
        self.expired += other.expired
        self.committed += other.committed
        self.elections += other.elections
        self.rests += other.rests
        self.numbered += other.numbered


def run(what: Run, trace: Callable[[str], None] | None = None) -> Report:
    """One run.

    Raises:
        InvariantBroken: with the command that replays it, and the `report` up to there.
    """
    report = Report()
    with simulation(what.seed, what.mix, trace, skipped=what.skipped) as made:
        try:
            made.run(what.seconds)
        except Exception as error:
            raise InvariantBroken(
                f"{type(error).__name__} after {made.kernel.now_us / 1e6:.3f} s: {error}\n"
                f"replay: python -m odradek.tools.simulation {what}"
            ) from error
        finally:
            report.simulated_seconds = made.kernel.now_us / 1e6
            report.faults = made.faults.counts
            report.acknowledged = made.log_checker.acknowledged
            report.expired = made.log_checker.expired
            report.committed = made.transaction_checker.committed_count + made.group_checker.commits
            report.elections = made.store_checker.controllers
            report.rests = made.rests
            report.numbered = made.faults.numbered
    return report


def shrink(what: Run, say: Callable[[str], None] = lambda text: None) -> Run:
    """The smallest run found that fails as well: as short, and with as few faults, as it goes.

    What fails may be something else in the end: any failure is one to be mended.

    Raises:
        ValueError: the run does not fail.
    """
    failure = _failure(what)
    if failure is None:
        raise ValueError(f"{what} does not fail")
    seconds, numbered = failure
    smaller = what._replace(seconds=min(what.seconds, math.ceil(seconds)))
    if _failure(smaller) is not None:
        what = smaller
        say(f"it fails within {what.seconds:g} s, of {numbered} faults")
    kept: Sequence[int] = range(numbered)
    size = max(len(kept) // 2, 1)
    while True:
        for start in range(0, len(kept), size):
            skipped = what.skipped | set(kept[start : start + size])
            found = _failure(what._replace(skipped=skipped))
            if found is not None:
                what = what._replace(skipped=skipped)
                say(f"without {len(skipped)} of the faults it fails still")
        kept = [each for each in kept if each not in what.skipped]
        if size == 1:
            return what
        size = max(size // 2, 1)


def _failure(what: Run) -> tuple[float, int] | None:
    """After how long a run fails, and how many faults were drawn; None: it does not."""
    with simulation(what.seed, what.mix, skipped=what.skipped) as made:
        try:
            made.run(what.seconds)
        except Exception:
            return made.kernel.now_us / 1e6, made.faults.numbered
    return None
