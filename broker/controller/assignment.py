"""Which brokers hold which partitions of a topic (Kafka's AdminUtils, without racks).

The first replicas go round the brokers from a random start; the others follow at a shift
that grows with each round, so that one broker's partitions have their followers spread
over all others.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from random import Random

from ...protocol.errors import ErrorCode, KafkaError

Assignment = dict[int, tuple[int, ...]]
"""Partition index to the brokers that hold it, the preferred leader first."""


def assign_replicas(
    broker_ids: Sequence[int],
    partition_count: int,
    replication_factor: int,
    *,
    start_index: int,
    shift: int,
    first_partition: int = 0,
) -> Assignment:
    """Spread partitions over brokers.

    Args:
        broker_ids: at least `replication_factor` of them.
        start_index: the place in `broker_ids` of partition 0's first replica.
        shift: how far after the first replica the second begins, growing by one each time
            the first replicas have gone round.
        first_partition: the index of the first partition to assign.
    """
    brokers = len(broker_ids)
    assignment: Assignment = {}
    for partition in range(first_partition, first_partition + partition_count):
        if partition > 0 and partition % brokers == 0:
            shift += 1
        first = (partition + start_index) % brokers
        replicas = [broker_ids[first]]
        for follower in range(replication_factor - 1):
            distance = 1 + (shift + follower) % (brokers - 1)
            replicas.append(broker_ids[(first + distance) % brokers])
        assignment[partition] = tuple(replicas)
    return assignment


def assign_new_topic(
    broker_ids: Sequence[int], partition_count: int, replication_factor: int, random: Random
) -> Assignment:
    """An assignment for a new topic, starting somewhere at random.

    Raises:
        KafkaError: INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    _require_brokers(broker_ids, replication_factor)
    return assign_replicas(
        broker_ids,
        partition_count,
        replication_factor,
        start_index=random.randrange(len(broker_ids)),
        shift=random.randrange(len(broker_ids)),
    )


def assign_more_partitions(
    broker_ids: Sequence[int], existing: Assignment, added_count: int
) -> Assignment:
    """An assignment for partitions added to a topic, going on where its others end.

    Raises:
        KafkaError: INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    first_replicas = existing[0]
    _require_brokers(broker_ids, len(first_replicas))
    leader = first_replicas[0]
    start_index = broker_ids.index(leader) if leader in broker_ids else 0
    return assign_replicas(
        broker_ids,
        added_count,
        len(first_replicas),
        start_index=start_index,
        shift=start_index,
        first_partition=len(existing),
    )


def _require_brokers(broker_ids: Sequence[int], replication_factor: int) -> None:
    if replication_factor > len(broker_ids):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"A replication factor of {replication_factor} needs as many brokers; "
            f"there are {len(broker_ids)}.",
        )


def validate_manual_assignment(
    assignments: Iterable[Sequence[int]],
    broker_ids: Container[int],
    replication_factor: int | None = None,
) -> None:
    """Accept replica lists that a client made up itself.

    Args:
        assignments: the brokers of each partition.
        broker_ids: those that are registered.
        replication_factor: what each list's length must be; None: that of the first.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT.
    """
    for replicas in assignments:
        if not replicas:
            raise _invalid("A partition was assigned to no broker.")
        for broker_id in replicas:
            if broker_id not in broker_ids:
                raise _invalid(f"A partition was assigned to broker {broker_id}, which is unknown.")
        if len(set(replicas)) != len(replicas):
            raise _invalid(f"A partition was assigned to a broker twice: {list(replicas)}.")
        if replication_factor is None:
            replication_factor = len(replicas)
        elif len(replicas) != replication_factor:
            raise _invalid(
                f"A partition was assigned to {len(replicas)} brokers, others of the topic "
                f"to {replication_factor}."
            )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
