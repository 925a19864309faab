"""What a request costs by stage, and the page that tells it.

Samples say how a broker's time is divided; the operating system says how much it is, outside the
kernel and inside. The product is microseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .stages import STAGES, by_stage

MARK = re.compile(r"(<!-- account: (\w+) -->\n).*?(<!-- end of account -->)", re.DOTALL)
SHOWN_US_MIN = 0.05


class Account(NamedTuple):
    """One load on one broker.

    Attributes:
        title: of the load.
        rate: exchanges per second while nothing was sampled.
        user_us: of the broker's CPU time outside the kernel, per exchange.
        kernel_us: likewise inside it.
        samples: how many the division by stage rests on.
        stages: microseconds outside and inside the kernel, by stage.
    """

    title: str
    rate: float
    user_us: float
    kernel_us: float
    samples: int
    stages: Mapping[str, Sequence[float]]

    @property
    def total_us(self) -> float:
        """Per exchange."""
        return self.user_us + self.kernel_us


class Counted(NamedTuple):
    """What the floor counts of one kind of request, per request."""

    says: str
    bytecodes: float
    python_calls: float


class Figures(NamedTuple):
    """All that the page's tables are made from; rows by "before" and "after", then by name."""

    machine: str
    accounts: dict[str, dict[str, Account]]
    floor: dict[str, dict[str, Counted]]


def account_of(
    title: str, rate: float, samples: int, costs: Mapping[tuple[str, ...], float]
) -> Account:
    """Divide a load's CPU time among the stages.

    Args:
        title: of the load.
        rate: exchanges per second.
        samples: how many there were.
        costs: microseconds of each stack.
    """
    stages = by_stage(costs)
    user_us, kernel_us = (sum(each[inside] for each in stages.values()) for inside in (0, 1))
    return Account(
        title,
        round(rate, 1),
        round(user_us, 2),
        round(kernel_us, 2),
        samples,
        {stage: [round(each, 2) for each in stages[stage]] for stage in STAGES if stage in stages},
    )


def table(before: Account, after: Account) -> str:
    """The account of one load, before beside after, as Markdown."""
    lines = [
        "| stage | before: user | kernel | after: user | kernel |",
        "|---|---:|---:|---:|---:|",
    ]
    none = (0.0, 0.0)
    for stage in STAGES:
        then, now = before.stages.get(stage, none), after.stages.get(stage, none)
        if sum(then) >= SHOWN_US_MIN or sum(now) >= SHOWN_US_MIN:
            cells = " | ".join(_cell(value) for value in (*then, *now))
            lines.append(f"| {stage} | {cells} |")
    whole = (before.user_us, before.kernel_us, after.user_us, after.kernel_us)
    lines.append("| **all, microseconds** | " + " | ".join(f"**{us:.1f}**" for us in whole) + " |")
    lines.append(f"| exchanges a second | {before.rate:,.0f} | | {after.rate:,.0f} | |")
    return "\n".join(lines) + "\n"


def overview(before: Mapping[str, Account], after: Mapping[str, Account]) -> str:
    """All loads in one table: CPU time per exchange."""
    lines = [
        "| load | before: user | kernel | after: user | kernel | samples |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, now in after.items():
        then = before[name]
        lines.append(
            f"| {now.title} | {then.user_us:.1f} | {then.kernel_us:.1f} | {now.user_us:.1f} "
            f"| {now.kernel_us:.1f} | {then.samples} and {now.samples} |"
        )
    return "\n".join(lines) + "\n"


def floor_table(before: Mapping[str, Counted], after: Mapping[str, Counted]) -> str:
    """What the floor counts of each kind of request, before and after, as Markdown."""
    lines = [
        "| request | bytecodes before | after | Python calls before | after |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, now in after.items():
        then = before[name]
        lines.append(
            f"| {now.says} | {then.bytecodes:,.0f} | {now.bytecodes:,.0f} "
            f"| {then.python_calls:,.0f} | {now.python_calls:,.0f} |"
        )
    return "\n".join(lines) + "\n"


def filled_page(page: str, figures: Figures) -> str:
    """A page with the tables between its marks written anew.

    Args:
        page: Markdown with `<!-- account: NAME -->` and `<!-- end of account -->`.
        figures: what the tables are of.
    """
    before, after = figures.accounts["before"], figures.accounts["after"]

    def filled(match: re.Match[str]) -> str:
        name = match[2]
        if name == "machine":
            text = figures.machine + "\n"
        elif name == "overview":
            text = overview(before, after)
        elif name == "floor":
            text = floor_table(figures.floor["before"], figures.floor["after"])
        else:
            text = table(before[name], after[name])
        return f"{match[1]}{text}{match[3]}"

    return MARK.sub(filled, page)


def save(path: Path, figures: Figures) -> None:
    """Keep the figures beside the page."""
    content = {
        "machine": figures.machine,
        "accounts": _as_json(figures.accounts),
        "floor": _as_json(figures.floor),
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def load(path: Path) -> Figures:
    """The figures that were kept."""
    content: dict[str, Any] = json.loads(path.read_text())

    def rows(key: str, kind: Any) -> dict[str, dict[str, Any]]:
        return {
            which: {name: kind(**fields) for name, fields in each.items()}
            for which, each in content[key].items()
        }

    return Figures(content["machine"], rows("accounts", Account), rows("floor", Counted))


def _as_json(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        which: {name: row._asdict() for name, row in each.items()} for which, each in rows.items()
    }


def _cell(microseconds: float) -> str:
    return f"{microseconds:.1f}" if microseconds >= SHOWN_US_MIN else ""
