"""The demo's check must see every difference that is planted, and no other."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from odradek.spark_connector.demo.delays_check import (
    compare_tables,
    expected_table,
    read_parquet_table,
    read_topic_table,
)
from odradek.spark_connector.demo.flight_delays import TABLE_COLUMNS
from odradek.spark_connector.demo.flights import data_folder
from odradek.spark_connector.errors import SparkConnectorError

ROWS = 800
SOME_ROW = 5


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """The right table of the year's first flights."""
    return expected_table(ROWS)


def row_name(table: pd.DataFrame, index: int) -> str:
    row = table.iloc[index]
    return f"{row['carrier']} {row['hour']:%Y-%m-%dT%H:%MZ}"


def test_equal_tables_compare_equal_in_any_order(table: pd.DataFrame) -> None:
    comparison = compare_tables(table.sample(frac=1, random_state=7), table)
    assert comparison.is_equal
    assert comparison.rows == len(table)


def test_a_missing_row_is_named(table: pd.DataFrame) -> None:
    comparison = compare_tables(table.drop(index=SOME_ROW), table)
    assert comparison.differences == [f"missing: {row_name(table, SOME_ROW)}"]
    assert not comparison.is_equal


def test_an_unexpected_row_is_named(table: pd.DataFrame) -> None:
    comparison = compare_tables(table, table.drop(index=SOME_ROW))
    assert comparison.differences == [f"unexpected: {row_name(table, SOME_ROW)}"]


def test_a_doubled_row_is_named(table: pd.DataFrame) -> None:
    doubled = pd.concat([table, table.iloc[[SOME_ROW]]])
    assert compare_tables(doubled, table).differences == [f"doubled: {row_name(table, SOME_ROW)}"]


@pytest.mark.parametrize(
    "column", [name for name in TABLE_COLUMNS if name not in ("carrier", "hour")]
)
def test_one_changed_value_is_named(table: pd.DataFrame, column: str) -> None:
    changed = table.copy()
    before = changed[column].tolist()[SOME_ROW]  # a plain str, int or float
    changed.loc[SOME_ROW, column] = "Nobody's Airline" if column == "airline" else before + 1
    (difference,) = compare_tables(changed, table).differences
    assert difference.startswith(f"different: {row_name(table, SOME_ROW)}: {column} is ")
    assert difference.endswith(f"expected {before!r}")


def test_a_lost_mean_is_a_difference_and_two_lost_means_are_none(table: pd.DataFrame) -> None:
    without = table.copy()
    without.loc[SOME_ROW, "mean_departure_delay"] = None
    assert len(compare_tables(without, table).different) == 1
    assert compare_tables(without, without).is_equal


def test_expected_rows_are_those_counted_by_hand(table: pd.DataFrame) -> None:
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive:
        lines = csv.DictReader(io.TextIOWrapper(archive.open("flights.csv")))
        first_day = [line for line in lines if line["time_hour"] < "2013-01-02T00:00:00Z"]
    flights = [line for line in first_day if line["carrier"] == "EV"]
    hour = pd.Timestamp("2013-01-01T13:00:00Z")
    of_the_hour = [f for f in flights if f["time_hour"] == "2013-01-01T13:00:00Z"]
    delays = [int(f["dep_delay"]) for f in of_the_hour if f["dep_delay"] != "NA"]
    row = table[(table["carrier"] == "EV") & (table["hour"] == hour)].iloc[0]
    assert of_the_hour
    assert row["flights"] == len(of_the_hour)
    assert row["departure_delay_minutes"] == sum(delays)
    assert row["cancelled"] == len(of_the_hour) - len(delays)
    assert row["airline"] == "ExpressJet Airlines Inc."


def test_the_whole_year_is_in_the_table() -> None:
    table = expected_table()
    # The data set's well-known numbers: 336,776 flights of 16 airlines, 8,255 of them without
    # a departure.
    assert table["flights"].sum() == 336_776
    assert table["cancelled"].sum() == 8_255
    assert table["carrier"].nunique() == 16


def write_batch(table: pd.DataFrame, output: Path, batch: int) -> None:
    folder = output / "delays" / f"batch={batch}"
    folder.mkdir(parents=True)
    # Spark writes UTC without a zone.
    table.assign(hour=table["hour"].dt.tz_localize(None)).to_parquet(folder / "part-0.parquet")


def test_the_last_batch_of_a_row_counts_in_parquet(table: pd.DataFrame, tmp_path: Path) -> None:
    early = table.head(60).copy()
    early["flights"] = 1
    write_batch(early, tmp_path, 9)
    write_batch(table.tail(len(table) - 40), tmp_path, 10)
    write_batch(table.head(40), tmp_path, 11)
    assert compare_tables(read_parquet_table(tmp_path), table).is_equal


def test_a_row_twice_in_one_parquet_batch_is_doubled(table: pd.DataFrame, tmp_path: Path) -> None:
    write_batch(pd.concat([table, table.iloc[[SOME_ROW]]]), tmp_path, 0)
    comparison = compare_tables(read_parquet_table(tmp_path), table)
    assert comparison.doubled == [f"doubled: {row_name(table, SOME_ROW)}"]


def test_no_batch_at_all_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SparkConnectorError, match="the stream wrote no batch"):
        read_parquet_table(tmp_path)


@pytest.mark.clients
def test_differences_planted_in_a_topic_are_named(
    broker: Any, topic: str, table: pd.DataFrame
) -> None:
    table = table.head(30)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics({topic: {"num_partitions": 2}}, wait_for_metadata=True)

    def send(producer: KafkaProducer, rows: pd.DataFrame, batch: int) -> None:
        for row in rows.to_dict("records"):
            fields = {name: None if value != value else value for name, value in row.items()}
            fields["hour"] = row["hour"].isoformat()
            key = f"{row['carrier']}|{fields['hour']}".encode()
            headers = [("batch", str(batch).encode())]
            producer.send(topic, key=key, value=json.dumps(fields).encode(), headers=headers)

    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        old = table.head(10).assign(flights=0)
        send(producer, old, batch=0)
        send(producer, table, batch=1)
        producer.flush()
        assert compare_tables(read_topic_table(broker.bootstrap, topic), table).is_equal

        send(producer, table.iloc[[3]], batch=1)
        send(producer, table.iloc[[4]].assign(flights=0), batch=2)
        producer.flush()
    comparison = compare_tables(read_topic_table(broker.bootstrap, topic), table)
    assert comparison.doubled == [f"doubled: {row_name(table, 3)}"]
    (different,) = comparison.different
    assert different.startswith(f"different: {row_name(table, 4)}: flights is 0")
    assert not comparison.missing
    assert not comparison.unexpected
