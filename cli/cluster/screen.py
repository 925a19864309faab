"""How `odradek cluster` looks: a table of brokers, and below it the partitions in trouble."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...common.escaping import escaped
from ..common.show import PIPE_COLUMNS
from .view import BrokerRow, ClusterView, PartitionRow

LIVE_PARTITIONS_MAX = 20
"""A live view has to fit a screen."""

_UNITS = ("B", "KB", "MB", "GB", "TB")
_BROKER_COLUMNS = (
    "broker",
    "rack",
    "address",
    "controller",
    "leads",
    "replicas",
    "under-replicated",
    "in/s",
    "out/s",
    "lag",
)
_LEFT = frozenset({"rack", "address", "controller"})


def print_view(view: ClusterView) -> None:
    """One plain table on standard output."""
    console = Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS)
    console.print(_render(view, (), len(view.troubled)))


def render(view: ClusterView, remarks: Sequence[str]) -> RenderableType:
    """What a live view shows."""
    return _render(view, remarks, LIVE_PARTITIONS_MAX)


def _render(view: ClusterView, remarks: Sequence[str], partitions_max: int) -> Group:
    head = Text(
        f"cluster {escaped(view.cluster_id)}: {len([b for b in view.brokers if b.address])} "
        f"brokers, {view.topics:,} topics, {view.partitions:,} partitions",
        style="bold",
    )
    parts: list[RenderableType] = [head, _brokers(view.brokers)]
    if view.troubled:
        parts.append(_partitions(view.troubled[:partitions_max]))
        hidden = len(view.troubled) - partitions_max
        if hidden > 0:
            parts.append(Text(f"and {hidden:,} more partitions in trouble"))
    else:
        parts.append(Text("every partition has a leader and all its replicas in sync"))
    parts += [Text(escaped(remark), style="yellow") for remark in remarks]
    return Group(*parts)


def _brokers(rows: Sequence[BrokerRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for column in _BROKER_COLUMNS:
        table.add_column(column, justify="left" if column in _LEFT else "right")
    for row in rows:
        style = "red" if row.address is None else "yellow" if row.under_replicated else None
        table.add_row(
            str(row.broker_id),
            Text(escaped(row.rack or "-")),
            Text(escaped(row.address or "not alive")),
            "yes" if row.is_controller else "",
            f"{row.leaders:,}",
            f"{row.replicas:,}",
            f"{row.under_replicated:,}",
            _bytes(row.bytes_in),
            _bytes(row.bytes_out),
            "-" if row.lag is None else f"{row.lag:,}",
            style=style,
        )
    return table


def _partitions(rows: Sequence[PartitionRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("topic", "partition", "state", "leader", "replicas", "in sync", "missing"):
        table.add_column(column, justify="right" if column == "partition" else "left")
    for row in rows:
        table.add_row(
            Text(escaped(row.topic)),
            str(row.partition),
            row.state,
            "none" if row.leader is None else str(row.leader),
            _ids(row.replicas),
            _ids(row.isr),
            _ids(row.missing),
            style="red" if row.leader is None else "yellow",
        )
    return table


def _ids(broker_ids: Sequence[int]) -> str:
    return ",".join(map(str, broker_ids)) or "-"


def _bytes(per_second: float | None) -> str:
    """Bytes in a unit that leaves at most four digits."""
    if per_second is None:
        return "-"
    value = per_second
    for unit in _UNITS[:-1]:
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} {_UNITS[-1]}"
