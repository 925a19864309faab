"""An audit as one HTML file: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from .report import AuditFault, AuditReport, PartitionAudit, Plot
from .results import ExpectationResult, TrendPoint, shown_observed, sparkline

WIDTH = 860
HEIGHT = 180
MARGIN = 60
LABELS_MAX = 8
TREND_WIDTH = 160
TREND_HEIGHT = 28

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.clean { color: #1a7f37; } .faulty { color: #b3261e; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #ddd;
         white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
svg { max-width: 100%; height: auto; } .bar { fill: #4472a8; } .bar:hover { fill: #d7604d; }
.trend { vertical-align: middle; } .trend path { fill: none; stroke: #4472a8; stroke-width: 1.5; }
.passed { fill: #1a7f37; } .failed { fill: #b3261e; }
svg text { font-size: 11px; fill: #555; }
code { background: #f3f3f3; padding: 0 .2rem; }
"""


def as_html(report: AuditReport) -> str:
    """The report, to be written to a file and opened anywhere."""
    topics = sorted({each.topic for each in report.partitions})
    failed = sum(1 for each in report.results if each.has_failed)
    verdict = "No fault was found"
    if not report.is_clean:
        counts = [(len(report.faults), "fault"), (failed, "failed expectation")]
        verdict = ", ".join(_count(number, noun) for number, noun in counts if number)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'>",
        f"<title>Audit of {escape(', '.join(topics))}</title><style>{STYLE}</style></head><body>",
        f"<h1 class='{'clean' if report.is_clean else 'faulty'}'>{verdict}</h1>",
        f"<p>{report.records:,} records in {_count(len(report.partitions), 'partition')} of"
        f" {_count(len(topics), 'topic')} at {escape(report.cluster)},"
        f" {moment(report.at_ms)} UTC, in {report.seconds:.1f} s.</p>",
        *_expectations(report),
        *_faults(report.faults),
        *_notes(report.notes),
        "<h2>Partitions</h2>",
        *_table(
            partition_columns(report), [partition_cells(each, report) for each in report.partitions]
        ),
    ]
    for plot in report.plots:
        parts += [f"<h2>{escape(plot.title)}</h2>", _bars(plot)]
    parts.append("</body></html>\n")
    return "\n".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def moment(ms: int | None) -> str:
    """A timestamp as people read it; `-` where there is none."""
    if ms is None:
        return "-"
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def _faults(faults: Sequence[AuditFault]) -> Iterable[str]:
    if not faults:
        return
    yield "<h2>Faults</h2><ul>"
    for fault in faults:
        yield f"<li><b>{escape(fault.kind)}</b>: {escape(fault.sentence)}"
        if fault.samples:
            yield "<ul>"
            yield from (f"<li><code>{escape(sample)}</code></li>" for sample in fault.samples)
            yield "</ul>"
        yield "</li>"
    yield "</ul>"


EXPECTATION_COLUMNS = ["expectation", "topic", "severity", "verdict", "observed", "trend", "what"]
"""The heads of the table of expectations."""


def expectation_cells(result: ExpectationResult) -> list[str]:
    """A line of the table of expectations, with the trend as text."""
    return [
        result.expectation,
        result.topic,
        result.severity,
        result.verdict,
        shown_observed(result.kind, result.observed),
        sparkline(result.trend),
        result.sentence + (f"; {result.sample}" if result.sample else ""),
    ]


def _expectations(report: AuditReport) -> Iterable[str]:
    if not report.results:
        return
    yield "<h2>Expectations</h2><div class='scroll'><table><thead><tr>"
    yield from (f"<th>{column}</th>" for column in EXPECTATION_COLUMNS)
    yield "</tr></thead><tbody>"
    for result in sorted(report.results, key=lambda each: not each.has_failed):
        cells = [escape(cell) for cell in expectation_cells(result)]
        cells[EXPECTATION_COLUMNS.index("trend")] = _trend(result.kind, result.trend)
        if result.has_failed:
            verdict = EXPECTATION_COLUMNS.index("verdict")
            cells[verdict] = f"<b class='faulty'>{cells[verdict]}</b>"
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"


def _trend(kind: str, trend: Sequence[TrendPoint]) -> str:
    """A line over the runs, and a dot for each; what was not observed has none."""
    known = [point.observed for point in trend if point.observed is not None]
    least, span = min(known, default=0.0), max(known, default=0.0) - min(known, default=0.0)
    places, dots = [], []
    for place, point in enumerate(trend):
        if point.observed is None:
            continue
        left = 4 + (TREND_WIDTH - 8) * place / max(len(trend) - 1, 1)
        height = (point.observed - least) / span if span else 0.5
        top = TREND_HEIGHT - 4 - (TREND_HEIGHT - 8) * height
        places.append(f"{left:.1f},{top:.1f}")
        dots.append(
            f"<circle class='{point.verdict}' cx='{left:.1f}' cy='{top:.1f}' r='2'><title>"
            f"{moment(point.at_ms)}: {shown_observed(kind, point.observed)}</title></circle>"
        )
    line = f"<path d='M{' L'.join(places)}'/>" if len(places) > 1 else ""
    return (
        f"<svg class='trend' viewBox='0 0 {TREND_WIDTH} {TREND_HEIGHT}' width='{TREND_WIDTH}'"
        f" height='{TREND_HEIGHT}' role='img' aria-label='trend'>{line}{''.join(dots)}</svg>"
    )


def _notes(notes: Sequence[str]) -> Iterable[str]:
    if notes:
        yield "<h2>Not faults, but worth knowing</h2><ul>"
        yield from (f"<li>{escape(note)}</li>" for note in notes)
        yield "</ul>"


def partition_columns(report: AuditReport) -> list[str]:
    """The heads of the table of partitions."""
    columns = ["partition", "start", "end", "records", "missing", "explained", "bytes"]
    columns += ["tombstones", "no key", "keys", "first", "last", "backwards", "size 50/95/99/100 %"]
    if any(each.latencies_ms for each in report.partitions):
        columns.append("latency ms 50/95/99/100 %")
    return columns


def partition_cells(audit: PartitionAudit, report: AuditReport) -> list[object]:
    """A line of the table of partitions."""
    cells: list[object] = [
        f"{audit.topic}-{audit.partition}",
        audit.start_offset,
        audit.end_offset,
        audit.records,
        audit.missing_offsets,
        audit.explained_offsets,
        audit.bytes,
        audit.tombstones,
        audit.null_keys,
        audit.keys,
        moment(audit.first_ms),
        moment(audit.last_ms),
        audit.backwards,
        _percentiles(audit.sizes),
    ]
    if any(each.latencies_ms for each in report.partitions):
        cells.append(_percentiles(audit.latencies_ms))
    return cells


def _percentiles(numbers: Sequence[int] | None) -> str:
    return "-" if numbers is None else " / ".join(f"{number:,}" for number in numbers)


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterable[str]:
    yield "<div class='scroll'><table><thead><tr>"
    yield from (f"<th>{escape(column)}</th>" for column in columns)
    yield "</tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(_cell(cell))}</td>" for cell in row) + "</tr>"
    yield "</tbody></table></div>"


def _cell(value: object) -> str:
    if value is None:
        return "?"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _bars(plot: Plot) -> str:
    """Bars over a line; each tells its numbers where the pointer rests."""
    if not plot.bars:
        return "<p>Nothing to show.</p>"
    highest = max(bar.height for bar in plot.bars) or 1
    step = WIDTH / len(plot.bars)
    every = -(-len(plot.bars) // LABELS_MAX)
    shapes = []
    for place, bar in enumerate(plot.bars):
        height = HEIGHT * bar.height / highest
        left, top = MARGIN + place * step, 10 + HEIGHT - height
        label = escape(bar.label)
        shapes.append(
            f"<rect class='bar' x='{left:.1f}' y='{top:.1f}' width='{max(step - 1, 0.5):.1f}'"
            f" height='{height:.1f}'><title>{label}: {bar.height:,.0f} {plot.unit}</title></rect>"
        )
        if place % every == 0:
            shapes.append(
                f"<text x='{left:.1f}' y='{HEIGHT + 28}' transform='rotate(18 {left:.1f}"
                f" {HEIGHT + 28})'>{label}</text>"
            )
    axis = (
        f"<line x1='{MARGIN}' x2='{MARGIN + WIDTH}' y1='{HEIGHT + 10}' y2='{HEIGHT + 10}'"
        " stroke='#999'/>"
        f"<text x='{MARGIN - 6}' y='20' text-anchor='end'>{highest:,.0f}</text>"
        f"<text x='{MARGIN - 6}' y='{HEIGHT + 12}' text-anchor='end'>0</text>"
    )
    return (
        f"<svg viewBox='0 0 {WIDTH + 2 * MARGIN} {HEIGHT + 80}' width='{WIDTH + 2 * MARGIN}'"
        f" role='img' aria-label='{escape(plot.title)}'>{axis}{''.join(shapes)}</svg>"
    )
