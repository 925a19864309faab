"""The loads of each peer; each gives figures by name.

`rate` is in requests or records a second, `cpu_us` the broker's own processor time for one of
them in microseconds, and names that end in `_ms` are times of a client.
"""

from __future__ import annotations

from collections.abc import Sequence

from .load import ComparedLoad
from .of_bench import LOAD_NAMES, OF_THREE_BROKERS, bench_load
from .performance import (
    ACKS,
    COMPRESSIONS,
    SIZES,
    consumer_performance,
    memory_after_a_gigabyte,
    producer_performance,
    share_consumer_performance,
    three_brokers,
)
from .round_trips import confluent_round_trip, kafka_python_round_trip
from .small_produce import guarded_produce, idle_connections_cost, small_produce
from .spark_count import spark_count

PARTITIONS_MANY = 1000

ONE_BROKER = [
    small_produce(1, 1),
    small_produce(16, 1),
    small_produce(4, 8),
    small_produce(16, 1, idle=256),
    *(
        producer_performance(size, acks, compression)
        for size in SIZES
        for acks in ACKS
        for compression in COMPRESSIONS
    ),
    *(consumer_performance(size, each) for size in SIZES for each in COMPRESSIONS),
    *map(share_consumer_performance, SIZES),
    kafka_python_round_trip(),
    confluent_round_trip(),
    confluent_round_trip(PARTITIONS_MANY),
    *map(bench_load, LOAD_NAMES),
    memory_after_a_gigabyte(),
    idle_connections_cost(5000),
]
GUARDED = [guarded_produce()]
"""Of brokers that look at ACLs."""
SPARK = [spark_count()]
"""After the others, for Spark is a guest that takes memory."""
THREE_BROKERS = [three_brokers(), *(bench_load(name, 3) for name in OF_THREE_BROKERS)]


def warm_ups(loads: Sequence[ComparedLoad]) -> list[ComparedLoad]:
    """What is repeated on each peer, before its figures count, until it gets no faster.

    Small requests for any load of one broker, and a tool of Kafka's for the loads that move much
    by it; a cluster gets its own load. Spark comes after those, and counts twice itself.
    """
    names = {load.name for load in loads}
    if names & {load.name for load in THREE_BROKERS}:
        return [load for load in THREE_BROKERS if load.name in names][:1]
    if names <= {load.name for load in SPARK}:
        return []
    tools = [
        *(producer_performance(100, "1"), consumer_performance(100)),
        share_consumer_performance(100),
    ]
    kinds = {name.split()[0] for name in names}
    return [small_produce(16, 1), *(load for load in tools if load.name.split()[0] in kinds)]
