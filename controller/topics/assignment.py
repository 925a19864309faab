"""Which brokers hold which partitions of a topic (Kafka's AdminUtils, with KIP-36's racks).

The first replicas go round the brokers from a random start; the others follow at a shift
that grows with each round, so that one broker's partitions have their followers spread
over all others. Brokers of different racks take turns, and no rack gets a second replica of
a partition before each rack has one. Where no racks are known each broker is its own.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import zip_longest
from random import Random

from ...common.errors import ErrorCode, KafkaError
from ...common.partition_state import shared_replicas
from ...runtime.steps import Steps

Assignment = dict[int, tuple[int, ...]]
"""Partition index to the brokers that hold it, the preferred leader first."""

Racks = Mapping[int, str | None]
"""The brokers that may be given partitions, and the rack of each, None where it names none."""


def assign_replicas(
    racks: Racks,
    partition_count: int,
    replication_factor: int,
    *,
    start_index: int,
    shift: int,
    first_partition: int = 0,
) -> Steps[Assignment]:
    """Spread partitions over brokers, and their replicas over racks; it yields after each.

    Args:
        racks: of at least `replication_factor` brokers. Unless all of them name one, racks
            do not count.
        start_index: the place, among the brokers in their turns, of partition 0's first
            replica.
        shift: how far after the first replica the second begins, in rounds of the racks;
            it grows by one each time the first replicas have gone round.
        first_partition: the index of the first partition to assign.
    """
    members = _members_of_racks(racks)
    rack_of = {broker_id: rack for rack, group in enumerate(members) for broker_id in group}
    turns = [each for turn in zip_longest(*members) for each in turn if each is not None]
    assignment: Assignment = {}
    for partition in range(first_partition, first_partition + partition_count):
        if partition > 0 and partition % len(turns) == 0:
            shift += 1
        first = (partition + start_index) % len(turns)
        assignment[partition] = _pick(turns, rack_of, replication_factor, first, shift)
        yield
    return assignment


def _members_of_racks(racks: Racks) -> list[list[int]]:
    """The brokers of each rack: racks in the order of their names, brokers of their ids."""
    if None in racks.values():
        return [[broker_id] for broker_id in sorted(racks)]
    members: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        members.setdefault(str(racks[broker_id]), []).append(broker_id)
    return [members[name] for name in sorted(members)]


def _pick(
    turns: Sequence[int],
    rack_of: Mapping[int, int],
    replication_factor: int,
    first: int,
    shift: int,
) -> tuple[int, ...]:
    """The brokers of one partition, of which the first is known."""
    rack_count = len(set(rack_of.values()))
    chosen = [turns[first]]
    covered = {rack_of[turns[first]]}
    distance = shift * rack_count
    while len(chosen) < replication_factor:
        broker_id = turns[(first + 1 + distance % (len(turns) - 1)) % len(turns)]
        distance += 1
        helps = rack_of[broker_id] not in covered or len(covered) == rack_count
        if helps and broker_id not in chosen:
            chosen.append(broker_id)
            covered.add(rack_of[broker_id])
    return shared_replicas(chosen)


def assign_new_topic(
    racks: Racks, partition_count: int, replication_factor: int, random: Random
) -> Steps[Assignment]:
    """An assignment for a new topic, starting somewhere at random; it yields after each partition.

    Raises:
        KafkaError: INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    _require_brokers(racks, replication_factor)
    start_index, shift = random.randrange(len(racks)), random.randrange(len(racks))
    return (
        yield from assign_replicas(
            racks, partition_count, replication_factor, start_index=start_index, shift=shift
        )
    )


def assign_more_partitions(
    racks: Racks, existing: Assignment, added_count: int
) -> Steps[Assignment]:
    """An assignment for partitions added to a topic, going on where its others end.

    It yields after each partition.

    Raises:
        KafkaError: INVALID_REPLICATION_FACTOR when there are too few brokers.
    """
    first_replicas = existing[0]
    _require_brokers(racks, len(first_replicas))
    # As in Kafka a place among the ids, though the turns are taken by racks.
    start_index = sum(broker_id < first_replicas[0] for broker_id in racks) % len(racks)
    return (
        yield from assign_replicas(
            racks,
            added_count,
            len(first_replicas),
            start_index=start_index,
            shift=start_index,
            first_partition=len(existing),
        )
    )


def _require_brokers(racks: Racks, replication_factor: int) -> None:
    if replication_factor > len(racks):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target "
            f"replication factor of {replication_factor} cannot be reached because only "
            f"{len(racks)} broker(s) are registered or some brokers have all their log "
            "directories cordoned.",
        )


def validate_manual_assignment(
    assignments: Iterable[Sequence[int]],
    broker_ids: Container[int],
    replication_factor: int | None = None,
) -> Steps[None]:
    """Accept replica lists that a client made up itself; it yields after each.

    Args:
        assignments: the brokers of each partition.
        broker_ids: those that are registered.
        replication_factor: what each list's length must be; None: that of the first.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT.
    """
    for replicas in assignments:
        yield
        validate_replicas(replicas, broker_ids)
        if replication_factor is None:
            replication_factor = len(replicas)
        elif len(replicas) != replication_factor:
            raise _invalid(
                f"The manual partition assignment includes a partition with {len(replicas)} "
                "replica(s), but this is not consistent with previous partitions, which have "
                f"{replication_factor} replica(s)."
            )


def validate_replicas(replicas: Sequence[int], broker_ids: Container[int]) -> None:
    """Accept one partition's replicas.

    Args:
        replicas: the brokers.
        broker_ids: those that are registered.

    Raises:
        KafkaError: INVALID_REPLICA_ASSIGNMENT.
    """
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(replicas):
        if broker_id not in broker_ids:
            raise _invalid(
                f"The manual partition assignment includes broker {broker_id}, but no such broker "
                "is registered."
            )
        if broker_id == previous:
            raise _invalid(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
