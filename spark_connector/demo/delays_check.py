"""The demo's end-to-end check: the same table by another way, compared row by row.

Expected rows are computed with pandas straight from the package's files. Nothing here is
shared with the way through the broker: neither the reader of the files, nor the aggregation,
nor the hour (there the record's timestamp, here the table's own column).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SparkConnectorError
from .flight_delays import TABLE_COLUMNS, TABLE_KEY
from .flights import data_folder
from .flights_topics import read_to_end

if TYPE_CHECKING:
    from pandas import DataFrame


class Comparison(NamedTuple):
    """How a table differs from the expected one; each difference is a line of text."""

    rows: int
    """Rows of the expected table."""
    missing: list[str]
    unexpected: list[str]
    doubled: list[str]
    different: list[str]

    @property
    def is_equal(self) -> bool:
        """Whether nothing is missing, unexpected, doubled or different."""
        return not self.differences

    @property
    def differences(self) -> list[str]:
        """All lines."""
        return [*self.missing, *self.unexpected, *self.doubled, *self.different]


def expected_table(rows: int | None = None) -> DataFrame:
    """The delays of the first `rows` flights of the year, computed by pandas."""
    import pandas as pd

    folder = data_folder()
    flights = pd.read_csv(folder / "flights.csv.zip")
    airlines = pd.read_csv(folder / "airlines.csv").set_index("carrier")["name"]
    flights["hour"] = pd.to_datetime(flights["time_hour"], utc=True)
    if rows is not None:
        departure = flights["hour"] + pd.to_timedelta(flights["minute"], unit="min")
        flights = flights.loc[departure.sort_values(kind="stable").index[:rows]]
    groups = flights.groupby(list(TABLE_KEY))
    table = pd.DataFrame(
        {
            "flights": groups.size(),
            "cancelled": groups["dep_time"].size() - groups["dep_time"].count(),
            "arrivals": groups["arr_delay"].count(),
            "departure_delay_minutes": groups["dep_delay"].sum().astype("int64"),
            "arrival_delay_minutes": groups["arr_delay"].sum().astype("int64"),
            "mean_departure_delay": groups["dep_delay"].mean(),
            "mean_arrival_delay": groups["arr_delay"].mean(),
        }
    ).reset_index()
    table["airline"] = table["carrier"].map(airlines)
    return table[list(TABLE_COLUMNS)]


def compare_tables(actual: DataFrame, expected: DataFrame) -> Comparison:
    """Compare two tables of TABLE_COLUMNS, exactly: counts, sums, names and means.

    A mean of whole minutes is one division of two exact numbers, so even these must be equal
    to the last bit; null equals null.
    """
    actual_rows = list(_rows(actual))
    expected_rows = dict(_rows(expected))
    seen: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    doubled, unexpected, different = [], [], []
    for key, values in actual_rows:
        if key in seen:
            doubled.append(f"doubled: {_name(key)}")
        elif key not in expected_rows:
            unexpected.append(f"unexpected: {_name(key)}")
        elif values != expected_rows[key]:
            different.append(_difference(key, values, expected_rows[key]))
        seen[key] = values
    missing = [f"missing: {_name(key)}" for key in expected_rows if key not in seen]
    return Comparison(len(expected_rows), missing, unexpected, doubled, different)


def read_parquet_table(output: Path) -> DataFrame:
    """The table that the stream left in `output`: of each row its last version.

    A row that one batch wrote twice stays twice.
    """
    import pandas as pd

    folders = sorted((output / "delays").glob("batch=*"), key=_batch_number)
    if not folders:
        raise SparkConnectorError(f"the stream wrote no batch into {output / 'delays'}")
    batches = [pd.read_parquet(folder).assign(batch=_batch_number(folder)) for folder in folders]
    table = pd.concat(batches, ignore_index=True)
    # Spark's Parquet holds UTC without saying so.
    table["hour"] = pd.to_datetime(table["hour"], utc=True)
    return _last_versions(table)


def _batch_number(folder: Path) -> int:
    return int(folder.name.removeprefix("batch="))


def read_topic_table(bootstrap_servers: str, topic: str) -> DataFrame:
    """The table that the stream left in `topic`, read with confluent-kafka to the topic's end."""
    import pandas as pd

    rows = [
        json.loads(message.value()) | {"batch": int(dict(message.headers())["batch"])}
        for message in read_to_end(bootstrap_servers, topic)
    ]
    table = pd.DataFrame(rows, columns=[*TABLE_COLUMNS, "batch"])
    table["hour"] = pd.to_datetime(table["hour"], utc=True)
    return _last_versions(table)


def _last_versions(table: DataFrame) -> DataFrame:
    """Only the rows of the last batch that wrote their key."""
    last = table.groupby(list(TABLE_KEY))["batch"].transform("max")
    return table.loc[table["batch"] == last, list(TABLE_COLUMNS)]


def _rows(table: DataFrame) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Each row as its key and its other columns, in types that compare by value."""
    values = [name for name in TABLE_COLUMNS if name not in TABLE_KEY]
    keys = zip(table["carrier"], table["hour"].dt.strftime("%Y-%m-%dT%H:%MZ"), strict=True)
    rows = table[values].astype(object).where(table[values].notna(), None)
    return zip(keys, rows.itertuples(index=False, name=None), strict=True)


def _name(key: tuple[Any, ...]) -> str:
    return " ".join(map(str, key))


def _difference(key: tuple[Any, ...], values: tuple[Any, ...], expected: tuple[Any, ...]) -> str:
    names = [name for name in TABLE_COLUMNS if name not in TABLE_KEY]
    parts = [
        f"{name} is {value!r}, expected {right!r}"
        for name, value, right in zip(names, values, expected, strict=True)
        if value != right
    ]
    return f"different: {_name(key)}: {'; '.join(parts)}"
