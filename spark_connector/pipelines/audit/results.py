"""What became of an expectation: what was measured, the verdict on it, and a sentence."""

from __future__ import annotations

from typing import NamedTuple

from .expectations import SEVERITIES, Expectation

PASSED, FAILED = "passed", "failed"
TREND_RUNS_MAX = 30
_LEVELS = "▁▂▃▄▅▆▇█"


class Measured(NamedTuple):
    """What Spark found out for an expectation in one topic."""

    checked: int
    """Records that it looks at."""
    failed: int = 0
    """How many of those are not as expected."""
    newest_ms: int | None = None
    """Of freshness: the latest time, ms since the epoch; None where there is none."""
    sample: str = ""
    """Where one of the failed is, and what it holds."""


class TrendPoint(NamedTuple):
    """One run of an expectation."""

    at_ms: int
    observed: float | None
    verdict: str


class ExpectationResult(NamedTuple):
    """An expectation's outcome in one topic."""

    expectation: str
    kind: str
    topic: str
    columns: tuple[str, ...]
    severity: str
    checked: int
    failed: int
    observed: float | None
    """The share of records that fail; of freshness the age in seconds, None where nothing has one;
    of volume the number of records."""
    verdict: str
    """`passed` or `failed`."""
    sentence: str
    sample: str
    trend: tuple[TrendPoint, ...]
    """Of the last runs that a history knows, the oldest first, and this one."""

    @property
    def has_failed(self) -> bool:
        """Whether the verdict is so."""
        return self.verdict == FAILED


def result_of(
    expectation: Expectation,
    topic: str,
    measured: Measured,
    at_ms: int,
    before: tuple[TrendPoint, ...] = (),
) -> ExpectationResult:
    """The verdict on what was measured.

    Args:
        expectation: whose.
        topic: in which.
        measured: by Spark.
        at_ms: now, ms since the epoch.
        before: runs that a history knows, the oldest first.
    """
    if expectation.kind == "freshness":
        observed, holds, sentence = _freshness(expectation, measured, at_ms)
    elif expectation.kind == "volume":
        observed, holds, sentence = _volume(expectation, measured, before)
    else:
        observed, holds, sentence = _share(expectation, measured)
    verdict = PASSED if holds else FAILED
    return ExpectationResult(
        expectation.name,
        expectation.kind,
        topic,
        expectation.columns,
        expectation.severity,
        measured.checked,
        measured.failed,
        observed,
        verdict,
        sentence,
        measured.sample,
        (*before, TrendPoint(at_ms, observed, verdict))[-TREND_RUNS_MAX:],
    )


def worst_severity(results: tuple[ExpectationResult, ...]) -> str | None:
    """Of those that failed; None where none did."""
    failed = [SEVERITIES.index(each.severity) for each in results if each.has_failed]
    return SEVERITIES[max(failed)] if failed else None


def sparkline(trend: tuple[TrendPoint, ...]) -> str:
    """A trend as a line of text: higher for more, a dot where nothing was observed."""
    known = [point.observed for point in trend if point.observed is not None]
    if not known:
        return "·" * len(trend)
    least, span = min(known), max(known) - min(known)

    def level(observed: float | None) -> str:
        if observed is None:
            return "·"
        return _LEVELS[round((observed - least) / span * (len(_LEVELS) - 1)) if span else 0]

    return "".join(level(point.observed) for point in trend)


def shown_observed(kind: str, observed: float | None) -> str:
    """What was observed, in the unit of an expectation's kind."""
    if observed is None:
        return "-"
    if kind == "volume":
        return f"{observed:,.0f}"
    return _age(observed) if kind == "freshness" else _percent(observed)


_WHAT = {
    "not_null": "have no {}",
    "range": "have {} out of range",
    "unique": "have {} that another one has",
    "referential": "have {} that its reference lacks",
}


def _share(expectation: Expectation, measured: Measured) -> tuple[float, bool, str]:
    if not measured.checked:
        return 0.0, True, "there is no record to look at"
    share = measured.failed / measured.checked
    what = _WHAT[expectation.kind].format(", ".join(expectation.columns))
    sentence = f"{measured.failed:,} of {measured.checked:,} records {what}"
    if expectation.threshold:
        sentence += f" ({_percent(share)}, {_percent(expectation.threshold)} may)"
    return share, share <= expectation.threshold, sentence


def _freshness(
    expectation: Expectation, measured: Measured, at_ms: int
) -> tuple[float | None, bool, str]:
    assert expectation.max_age_s is not None
    limit = _age(expectation.max_age_s)
    if measured.newest_ms is None:
        return None, False, f"no record has a time; the newest may be {limit} old"
    age_s = (at_ms - measured.newest_ms) / 1000
    return (
        age_s,
        age_s <= expectation.max_age_s,
        f"the newest is {_age(age_s)} old, {limit} may be",
    )


def _volume(
    expectation: Expectation, measured: Measured, before: tuple[TrendPoint, ...]
) -> tuple[float, bool, str]:
    records = measured.checked
    limits = []
    if isinstance(expectation.least, int | float) and records < expectation.least:
        limits.append(f"at least {expectation.least:,} are expected")
    if isinstance(expectation.most, int | float) and records > expectation.most:
        limits.append(f"at most {expectation.most:,} are expected")
    sentence = f"{records:,} records"
    if expectation.needs_history:
        last = before[-1].observed if before else None
        if last is None:
            sentence += ", and no run before to compare with"
        else:
            sentence += f", {last:,.0f} in the run before"
            if expectation.min_ratio is not None and records < expectation.min_ratio * last:
                limits.append(f"at least {expectation.min_ratio:g} times those are expected")
            # Of nothing, anything is more than any ratio.
            if (
                expectation.max_ratio is not None
                and last
                and records > expectation.max_ratio * last
            ):
                limits.append(f"at most {expectation.max_ratio:g} times those are expected")
    return float(records), not limits, "; ".join([sentence, *limits])


def _percent(share: float) -> str:
    return f"{share * 100:.4g} %"


def _age(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.1f} s"
