"""What is expected of topics, by a file in TOML: the file, and what each line of it may say.

TOML because Python reads it without a package more, it has comments, numbers that are not text, and
times; and because a list of tables is all that is needed.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple, Never

from ....common.nearest import did_you_mean
from ...errors import SparkConnectorError

SEVERITIES = ("warning", "error", "critical")
"""From the least to the worst."""

FILE_BYTES_MAX = 1 << 20
EXPECTATIONS_MAX = 200
"""Each adds columns to the one query that looks at them all."""

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

Bound = int | float | str | date | datetime
"""An end of a range; it is in the range."""

_TABLE = re.compile(r"^\s*\[\[\s*expect\s*\]\]", re.MULTILINE)
_AGE = re.compile(r"(\d+(?:\.\d+)?) ?(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Reference(NamedTuple):
    """Where the values are that another column may have."""

    column: str
    """Of a topic: a part of a record, such as `key` or `field:id`."""
    topic: str | None = None
    """Of the same cluster; or else `parquet`."""
    parquet: str | None = None
    """A folder or file, or a URI that Spark knows."""


class Expectation(NamedTuple):
    """One entry of the file; what its kind has no use for is None."""

    name: str
    """The history knows it by this."""
    kind: str
    """One of `KINDS`."""
    severity: str = "error"
    topic: str | None = None
    """None: each topic of the audit."""
    columns: tuple[str, ...] = ()
    threshold: float = 0.0
    """Which share of the records it looks at may fail, from 0 to 1."""
    least: Bound | None = None
    most: Bound | None = None
    max_age_s: float | None = None
    min_ratio: float | None = None
    """To the volume of the run before."""
    max_ratio: float | None = None
    references: Reference | None = None

    @property
    def needs_history(self) -> bool:
        """Whether it is about the run before."""
        return self.min_ratio is not None or self.max_ratio is not None


class _Kind(NamedTuple):
    required: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    """At least one of these."""
    optional: tuple[str, ...] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        return self.required + self.one_of + self.optional


_KINDS = {
    "not_null": _Kind(required=("column",), optional=("threshold",)),
    "range": _Kind(required=("column",), one_of=("min", "max"), optional=("threshold",)),
    "unique": _Kind(one_of=("column", "columns"), optional=("threshold",)),
    "referential": _Kind(required=("column", "references"), optional=("threshold",)),
    "freshness": _Kind(required=("max_age",), optional=("column",)),
    "volume": _Kind(one_of=("min", "max", "min_ratio", "max_ratio")),
}
KINDS = tuple(_KINDS)
_OF_EACH = ("kind", "name", "topic", "severity")


def read_expectations(path: str | Path) -> tuple[Expectation, ...]:
    """The expectations in a file.

    Raises:
        SparkConnectorError: it is not there, is no TOML, or an entry makes no sense; the sentence
            names the file, the line and the entry.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise SparkConnectorError(f"{path} is larger than {FILE_BYTES_MAX >> 10} KiB")
        text = data.decode()
        document = tomllib.loads(text)
    except OSError as error:
        raise SparkConnectorError(f"{path}: {error.strerror}") from None
    # TOML in arrays within arrays without end.
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SparkConnectorError(f"{path} is not TOML: {error}") from None
    for name in document.keys() - {"expect"}:
        raise SparkConnectorError(
            f"{path} has {name!r}, which means nothing; each expectation is a table [[expect]]"
        )
    entries = document.get("expect")
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise SparkConnectorError(
            f"{path} expects nothing; write a table [[expect]] with a kind for each expectation"
        )
    if len(entries) > EXPECTATIONS_MAX:
        raise SparkConnectorError(
            f"{path} has {len(entries)} expectations; an audit takes {EXPECTATIONS_MAX} at most"
        )
    return _all_of(path, text, entries)


def _all_of(path: Path, text: str, entries: list[dict[str, object]]) -> tuple[Expectation, ...]:
    lines = [text.count("\n", 0, found.end()) + 1 for found in _TABLE.finditer(text)]
    found: dict[str, Expectation] = {}
    for place, entry in enumerate(entries):
        # A header within a text of several lines is none: then lines are not told.
        line = f", line {lines[place]}" if len(lines) == len(entries) else ""
        where = f"{path}{line}: expectation {place + 1}"
        if isinstance(entry.get("name"), str):
            where += f" ({entry['name']})"
        expectation = _Entry(where, entry).expectation()
        if expectation.name in found:
            raise SparkConnectorError(
                f"{where} is called {expectation.name!r}, as another one is; give it a name of its"
                " own, by which the history knows it"
            )
        found[expectation.name] = expectation
    return tuple(found.values())


class _Entry:
    """One table of the file."""

    def __init__(self, where: str, entry: Mapping[str, object]) -> None:
        self._where = where
        self._entry = entry

    def expectation(self) -> Expectation:
        kind = self._one_of("kind", KINDS)
        self._require_settings(kind, _KINDS[kind])
        columns = self._columns()
        topic = self._text("topic")
        name = self._text("name") or " ".join([kind, *filter(None, [topic]), *columns])
        least, most = self._bounds(kind)
        ratios = [self._ratio("min_ratio"), self._ratio("max_ratio")]
        if None not in ratios and ratios[0] > ratios[1]:  # type: ignore[operator]  # neither is None
            self._refuse("has a min_ratio above its max_ratio")
        return Expectation(
            name=name,
            kind=kind,
            severity=self._one_of("severity", SEVERITIES, "error"),
            topic=topic,
            columns=columns,
            threshold=self._threshold(),
            least=least,
            most=most,
            max_age_s=self._age(),
            min_ratio=ratios[0],
            max_ratio=ratios[1],
            references=self._references(),
        )

    def _refuse(self, what: str) -> Never:
        raise SparkConnectorError(f"{self._where} {what}")

    def _require_settings(self, name: str, kind: _Kind) -> None:
        legal = (*_OF_EACH, *kind.settings)
        for setting in self._entry:
            if setting not in legal:
                self._refuse(
                    f"has the setting {setting!r}, which {name} does not take"
                    f"{did_you_mean(setting, legal)}"
                )
        for setting in kind.required:
            if setting not in self._entry:
                self._refuse(f"lacks {setting}, which {name} needs")
        if kind.one_of and not any(each in self._entry for each in kind.one_of):
            self._refuse(f"needs {' or '.join(kind.one_of)}")

    def _one_of(self, setting: str, legal: tuple[str, ...], default: str | None = None) -> str:
        value = self._entry.get(setting, default)
        if value is None:
            self._refuse(f"has no {setting}; it is one of {', '.join(legal)}")
        if value not in legal:
            self._refuse(
                f"has the {setting} {value!r}{did_you_mean(str(value), legal, cutoff=0.5)}; "
                f"it is one of {', '.join(legal)}"
            )
        return str(value)

    def _text(self, setting: str) -> str | None:
        value = self._entry.get(setting)
        if value is None:
            return None
        if not (isinstance(value, str) and value.strip()):
            self._refuse(f"has a {setting} that is no text: {value!r}")
        return value

    def _columns(self) -> tuple[str, ...]:
        if "columns" not in self._entry:
            column = self._text("column")
            return () if column is None else (column,)
        columns = self._entry["columns"]
        if "column" in self._entry:
            self._refuse("has both column and columns; give one of them")
        if not (isinstance(columns, list) and columns):
            self._refuse("needs columns as a list of texts")
        for each in columns:
            if not (isinstance(each, str) and each.strip()):
                self._refuse(f"has a column that is no text: {each!r}")
        return tuple(columns)

    def _number(self, setting: str) -> float | None:
        value = self._entry.get(setting)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            self._refuse(f"has a {setting} that is no number: {value!r}")
        return float(value)

    def _threshold(self) -> float:
        share = self._number("threshold") or 0.0
        if not 0 <= share <= 1:
            self._refuse(
                f"has the threshold {share:g}; it is the share of records that may fail, from 0"
                " to 1"
            )
        return share

    def _ratio(self, setting: str) -> float | None:
        ratio = self._number(setting)
        if ratio is not None and ratio < 0:
            self._refuse(f"has the {setting} {ratio:g}; a volume is at least 0 times another")
        return ratio

    def _bounds(self, kind: str) -> tuple[Bound | None, Bound | None]:
        bounds = [self._bound(each) for each in ("min", "max")]
        families = {bound_family(each) for each in bounds if each is not None}
        if len(families) > 1:
            self._refuse("has a min and a max of different types")
        if kind == "volume" and not families <= {"number"}:
            self._refuse("needs numbers of records as min and max")
        least, most = bounds
        if least is not None and most is not None and least > most:  # type: ignore[operator]  # of one family
            self._refuse(f"has a min of {least} above its max of {most}")
        return least, most

    def _bound(self, setting: str) -> Bound | None:
        value = self._entry.get(setting)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | str | date):
            self._refuse(f"has a {setting} that is no number, text, date or time: {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            self._refuse(f"has a {setting} of {value}; leave it out where there is no limit")
        if isinstance(value, int) and not LONG_MIN <= value <= LONG_MAX:
            self._refuse(f"has a {setting} that does not fit into 64 bits")
        if isinstance(value, datetime) and value.tzinfo is None:
            return value.replace(tzinfo=UTC)
        return value

    def _age(self) -> float | None:
        value = self._entry.get("max_age")
        if value is None:
            return None
        match = _AGE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            self._refuse(f"has the max_age {value!r}; write it as '90s', '15m', '36h' or '7d'")
        return float(match[1]) * _SECONDS[match[2]]

    def _references(self) -> Reference | None:
        value = self._entry.get("references")
        if value is None:
            return None
        example = "{ topic = 'customers', column = 'key' }"
        if not isinstance(value, dict):
            self._refuse(f"needs references as {example}")
        inner = _Entry(f"{self._where}, references:", value)
        for setting in value:
            if setting not in Reference._fields:
                inner._refuse(
                    f"{setting!r} is not known{did_you_mean(setting, Reference._fields)}; write"
                    f" {example}"
                )
        column = inner._text("column")
        topic, parquet = inner._text("topic"), inner._text("parquet")
        if column is None or (topic is None) == (parquet is None):
            inner._refuse(f"give a column, and either topic or parquet, as in {example}")
        return Reference(column, topic, parquet)


def bound_family(bound: Bound) -> str:
    """What it can be compared with: `text`, `time`, `day` or `number`."""
    if isinstance(bound, str):
        return "text"
    if isinstance(bound, datetime):
        return "time"
    return "day" if isinstance(bound, date) else "number"
