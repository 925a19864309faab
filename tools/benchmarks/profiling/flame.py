"""A flame graph as a small SVG without scripts: wide is dear, colours are stages."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from .stages import KERNEL, STAGES, stage_of

WIDTH, ROW, LEFT, TOP = 1200, 17, 10, 34
CHARACTER = 6.3
FRAME_SHARE_MIN = 0.002
COLOURS = (
    "#8dd3c7",
    "#bcdff1",
    "#c9b8e0",
    "#fdd49e",
    "#fbb4ae",
    "#e7969c",
    "#b3de69",
    "#ccebc5",
    "#a6cee3",
    "#d9c2a3",
    "#fccde5",
    "#80b1d3",
    "#d9d9d9",
    "#eeeeee",
    "#f5f5f5",
)
KERNEL_STROKE = "#555"


class _Box:
    __slots__ = ("children", "cost", "stages")

    def __init__(self) -> None:
        self.cost = 0.0
        self.children: dict[str, _Box] = {}
        self.stages: dict[str, float] = {}

    def add(self, stack: tuple[str, ...], cost: float, stage: str) -> None:
        self.cost += cost
        self.stages[stage] = self.stages.get(stage, 0) + cost
        if stack:
            child = self.children.get(stack[0])
            if child is None:
                child = self.children[stack[0]] = _Box()
            child.add(stack[1:], cost, stage)

    def depth(self, least: float) -> int:
        below = [box.depth(least) for box in self.children.values() if box.cost >= least]
        return 1 + max(below, default=0)


def flame_graph(costs: Mapping[tuple[str, ...], float], title: str) -> str:
    """The graph.

    Args:
        costs: microseconds of each stack.
        title: above it.
    """
    root = _Box()
    for stack, cost in costs.items():
        root.add(stack, cost, stage_of(stack))
    least = root.cost * FRAME_SHARE_MIN
    height = TOP + root.depth(least) * ROW + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="Menlo,Consolas,monospace" font-size="10.5">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
    scale = (WIDTH - 2 * LEFT) / max(root.cost, 1e-9)

    def draw(box: _Box, x: float, y: int) -> None:
        for name, child in sorted(box.children.items(), key=lambda item: -item[1].cost):
            width = child.cost * scale
            if child.cost >= least:
                parts.append(_rectangle(name, child, x, y, width))
                draw(child, x, y + ROW)
            x += width

    draw(root, LEFT, TOP)
    parts.append(_legend(root, height - 10))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _rectangle(name: str, box: _Box, x: float, y: int, width: float) -> str:
    stage = max(box.stages, key=lambda key: box.stages[key])
    colour = COLOURS[STAGES.index(stage)]
    is_kernel = name.partition(" ")[0] in KERNEL
    stroke = f' stroke="{KERNEL_STROKE}"' if is_kernel else ' stroke="#fff"'
    room = int((width - 6) / CHARACTER)
    label = name if len(name) <= room else name.partition(" ")[0]
    text = ""
    if len(label) > room:
        label = label[: room - 1] + "…" if room >= 4 else ""
    if label:
        text = f'<text x="{x + 3:.1f}" y="{y + 12}">{escape(label)}</text>'
    tip = f"{name}: {box.cost:.1f} us ({stage})"
    return (
        f"<g><title>{escape(tip)}</title>"
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 1}" rx="1" '
        f'fill="{colour}"{stroke}/>{text}</g>'
    )


def _legend(root: _Box, y: int) -> str:
    x, parts = float(LEFT), []
    for stage, colour in zip(STAGES, COLOURS, strict=True):
        if stage not in root.stages:
            continue
        parts.append(
            f'<rect x="{x:.0f}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
            f'<text x="{x + 13:.0f}" y="{y}">{escape(stage)}</text>'
        )
        x += 24 + len(stage) * CHARACTER
    return "".join(parts)
