"""Outages of groups and producers: sessions and locks expire, producers are fenced."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..control.framing import VerbError
from ..control.target import POLL_INTERVAL_S
from ..control.verbs import verb

if TYPE_CHECKING:
    from ...common.errors import ErrorCode
    from ...coordinator.group.classic.group import ClassicGroup
    from ...coordinator.group.consumer.group import ConsumerGroup
    from ...coordinator.group.share.share_group import ShareGroup
    from ...coordinator.group.streams.group import StreamsGroup
    from ...coordinator.transaction.transaction import TransactionMetadata
    from ..control.target import ControlTarget

logger = logging.getLogger(__name__)

TRANSACTION_END_SECONDS_MAX = 30.0
"""How long a transaction that ends may take to have its markers."""


LAST_OFFSET = 2**63 - 1


@verb
def expire_session(target: ControlTarget, group: str, member: str | None = None) -> list[str]:
    """End the session of a group's member now: it is out, and its partitions go to others.

    The member gets UNKNOWN_MEMBER_ID for its next heartbeat, and joins again. What a member of a
    share group has acquired stays with it: see `expire_lock`.

    Args:
        member: a member id, an instance id or a client id; None: all of them.

    Returns:
        The member ids of those that are out.
    """
    known = _group(target, group)
    expired = [
        member_id
        for member_id, each in known.members.items()
        if member in (None, member_id, _instance_id(each), each.client_id)
    ]
    if not expired:
        there = ", ".join(known.members) or "nobody"
        raise VerbError(f"group {group} has no member {member or ''}: in it is {there}")
    for member_id in expired:
        logger.warning("outage: the session of %s in group %s expires", member_id, group)
        target.broker.coordinators.group.admin_overrides.expire_session(group, member_id)
    return expired


def _instance_id(member: object) -> str | None:
    found: str | None = getattr(member, "group_instance_id", getattr(member, "instance_id", None))
    return found


@verb
def force_rebalance(target: ControlTarget, group: str) -> None:
    """Have a group's members share its partitions anew."""
    found = _group(target, group)
    if not found.members:
        raise VerbError(f"group {group} has no members to share anything")
    if found in target.broker.coordinators.group.share_groups:
        raise VerbError(f"group {group} is a share group: its members have nothing to hand over")
    logger.warning("outage: group %s rebalances", group)
    target.broker.coordinators.group.admin_overrides.rebalance(group, "requested by a test")


@verb
def expire_lock(
    target: ControlTarget, group: str, topic: str, partition: int = 0, offset: int | None = None
) -> int:
    """Have the locks of records expire now that members of a share group have acquired.

    They are handed out again, or, at the delivery limit, to nobody. Who acknowledges them then
    gets INVALID_RECORD_STATE. The broker must lead the partition.

    Args:
        offset: of one record; None: all that are acquired.

    Returns:
        How many records.
    """
    manager = target.broker.coordinators.share_partitions
    for led in manager.led:
        if led.key.group_id == group and led.requested.topic_partition == (topic, partition):
            break
    else:
        raise VerbError(f"group {group} reads nothing of {topic}-{partition} on this broker")
    logger.warning("outage: locks of group %s on %s-%d expire", group, topic, partition)
    count = manager.expire_locks(led, *((0, LAST_OFFSET) if offset is None else (offset, offset)))
    if not count:
        what = "no record" if offset is None else f"offset {offset}"
        raise VerbError(f"nobody has acquired it: {what} of {topic}-{partition} in group {group}")
    return count


def _group(
    target: ControlTarget, name: str
) -> ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup:
    """The group of a name. Raises VerbError: this broker does not know it."""
    for each in target.broker.coordinators.group.all_groups:
        if each.group_id == name:
            return each
    raise VerbError(f"there is no group {name} on this broker")


@verb
async def fence_producer(target: ControlTarget, transactional_id: str) -> tuple[int, int]:
    """Fence a producer off, as another one with its transactional id does at its start.

    What it has open is aborted; whatever it does next, it gets PRODUCER_FENCED.

    Returns:
        The producer id and epoch that are valid now.
    """
    import trio

    from ...common.errors import ErrorCode

    try_again = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    known = _known(target, transactional_id)
    logger.warning("outage: the producer of transactional id %s is fenced", transactional_id)
    with trio.move_on_after(TRANSACTION_END_SECONDS_MAX):
        while True:
            error, producer_id, epoch = await _initialize(target, known)
            if not error:
                return producer_id, epoch
            if error not in try_again:
                raise VerbError(f"{transactional_id} cannot be fenced: {error.name}")
            await trio.sleep(POLL_INTERVAL_S)
    raise TimeoutError(
        f"{transactional_id} was not fenced within {TRANSACTION_END_SECONDS_MAX:g} s"
    )


async def _initialize(
    target: ControlTarget, known: TransactionMetadata
) -> tuple[ErrorCode, int, int]:
    """What another producer's InitProducerId is answered."""
    import trio

    done = trio.Event()
    answers: list[tuple[ErrorCode, int, int]] = []

    def respond(error: ErrorCode, producer_id: int, epoch: int) -> None:
        answers.append((error, producer_id, epoch))
        done.set()

    target.broker.coordinators.transaction.init_producer_id(
        known.name, known.transaction.timeout_ms, None, respond
    )
    target.broker.server.finish_outside_work()
    await done.wait()
    return answers[0]


@verb
async def expire_transaction(target: ControlTarget, transactional_id: str) -> None:
    """Abort a producer's open transaction as one that took too long; its producer is fenced."""
    from ...common.errors import KafkaError
    from ...coordinator.transaction.states import PREPARED

    known = _known(target, transactional_id)
    logger.warning("outage: the transaction of %s expires", transactional_id)
    try:
        target.broker.coordinators.transaction.expire_transaction(transactional_id)
    except KafkaError as refusal:
        state = known.transaction.state.shown
        raise VerbError(
            f"{transactional_id} has no transaction that could expire: it is {state} "
            f"({refusal.code.name})"
        ) from None
    target.broker.server.finish_outside_work()
    if not await target.wait_until(
        lambda: not (known.pending in PREPARED or known.transaction.state in PREPARED),
        TRANSACTION_END_SECONDS_MAX,
    ):
        raise TimeoutError(f"the markers of {transactional_id} were not written in time")


def _known(target: ControlTarget, transactional_id: str) -> TransactionMetadata:
    for each in target.broker.coordinators.transaction.ids:
        if each.name == transactional_id:
            return each
    raise VerbError(f"there is no transactional id {transactional_id} on this broker")
