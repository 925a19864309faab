"""The records that the demo produces, against the package's own table."""

from __future__ import annotations

import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from odradek.spark_connector.demo.flights import FLIGHTS, KeyedRecord, read_airlines, read_flights

pytestmark = pytest.mark.slow

NEW_YORK = ZoneInfo("America/New_York")


@pytest.fixture(scope="module")
def flights() -> list[KeyedRecord]:
    return read_flights()


def test_every_flight_becomes_a_record_in_the_order_of_departures(
    flights: list[KeyedRecord],
) -> None:
    assert len(flights) == FLIGHTS
    timestamps = [flight.timestamp_ms for flight in flights]
    assert timestamps == sorted(timestamps)


def test_a_record_is_dated_at_its_scheduled_departure(flights: list[KeyedRecord]) -> None:
    # One in a thousand, over the whole year and both changes of the clock.
    for flight in flights[::1000]:
        row = json.loads(flight.value)
        local = datetime(
            *(row[name] for name in ("year", "month", "day", "hour", "minute")), tzinfo=NEW_YORK
        )
        assert flight.timestamp_ms == local.timestamp() * 1000


def test_the_key_is_the_carrier(flights: list[KeyedRecord]) -> None:
    assert all(
        json.loads(flight.value)["carrier"].encode() == flight.key for flight in flights[::500]
    )
    assert len({flight.key for flight in flights}) == 16


def test_what_is_not_available_is_null(flights: list[KeyedRecord]) -> None:
    rows = [json.loads(flight.value) for flight in flights]
    cancelled = [row for row in rows if row["dep_time"] is None]
    assert len(cancelled) == 8_255
    assert {row["dep_delay"] for row in cancelled} == {None}
    assert not any("NA" in row.values() for row in rows)


def test_fewer_rows_are_the_first_of_the_year(flights: list[KeyedRecord]) -> None:
    assert read_flights(100) == flights[:100]


def test_airlines_are_keyed_like_flights(flights: list[KeyedRecord]) -> None:
    names = {record.key: json.loads(record.value)["name"] for record in read_airlines()}
    assert set(names) == {flight.key for flight in flights}
    assert names[b"HA"] == "Hawaiian Airlines Inc."
