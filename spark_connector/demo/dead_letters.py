"""Values that were damaged, and where they end: a topic of dead letters.

The demo damages them itself. Among the flights there are some again whose values are cut; who reads
the topic has to do without them, and nobody should have to do without knowing of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..decoding import decode_json
from ..decoding.values import ERROR_HEADER, dead_records
from .delays_check import Comparison
from .flight_delays import FLIGHT_SCHEMA
from .flights import KeyedRecord
from .flights_topics import DemoTopics, read_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DAMAGED_EVERY = 1_000
CUT_TO_BYTES = 12


def damaged_records(flights: Sequence[KeyedRecord]) -> list[KeyedRecord]:
    """Every thousandth flight again, with what is left of its value."""
    return [
        flight._replace(value=flight.value[:CUT_TO_BYTES]) for flight in flights[::DAMAGED_EVERY]
    ]


def write_dead_letters(archived: DataFrame, bootstrap_servers: str, topics: DemoTopics) -> None:
    """Send the archived records that are no JSON to their topic, with the reason in headers."""
    dead = dead_records(decode_json(archived, FLIGHT_SCHEMA))
    dead.select("key", "value", "headers").write.format("kafka").option(
        "kafka.bootstrap.servers", bootstrap_servers
    ).option("topic", topics.flights_dead).save()


def compare_dead_letters(
    bootstrap_servers: str, topics: DemoTopics, damaged: Sequence[KeyedRecord]
) -> Comparison:
    """Compare the dead letters with the damaged records, by key, value and topic of origin."""
    origin = f"{ERROR_HEADER}topic"
    found = Counter(
        (message.key(), message.value(), dict(message.headers())[origin])
        for message in read_to_end(bootstrap_servers, topics.flights_dead)
    )
    expected = Counter((each.key, each.value, topics.flights.encode()) for each in damaged)
    unexpected = found - expected
    return Comparison(
        rows=len(damaged),
        missing=[f"missing: {each}" for each in (expected - found).elements()],
        unexpected=[f"unexpected: {each}" for each in unexpected if each not in expected],
        doubled=[f"doubled: {each}" for each in unexpected if each in expected],
        different=[],
    )
