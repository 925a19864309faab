"""What happens to producers on purpose: they are fenced, their transactions expire."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.transaction.state.states import PREPARED
from ..control.verbs import VerbError

if TYPE_CHECKING:
    from ...coordinator.transaction.state.transaction import TransactionalId
    from ..control.verbs import Controlled

logger = logging.getLogger(__name__)

END_SECONDS_MAX = 30.0
"""How long a transaction that ends may take to have its markers."""
LOOK_SECONDS = 0.002

TRY_AGAIN = frozenset({ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


async def fence(target: Controlled, transactional_id: str) -> list[int]:
    """Take the epoch of a transactional id, as another producer of that id does at its start.

    What the one before has open is aborted; whatever it does next, it hears that it is fenced.

    Returns:
        The producer id and the epoch that were taken.
    """
    known = _known(target, transactional_id)
    logger.warning("outage: the producer of transactional id %s is fenced", transactional_id)
    with trio.move_on_after(END_SECONDS_MAX):
        while True:
            error, producer_id, epoch = await _initialize(target, known)
            if not error:
                return [producer_id, epoch]
            if error not in TRY_AGAIN:
                raise VerbError(f"{transactional_id} cannot be fenced: {error.name}")
            await trio.sleep(LOOK_SECONDS)
    raise TimeoutError(f"{transactional_id} was not fenced within {END_SECONDS_MAX:g} s")


async def _initialize(target: Controlled, known: TransactionalId) -> tuple[ErrorCode, int, int]:
    """What another producer's InitProducerId is answered."""
    done = trio.Event()
    answers: list[tuple[ErrorCode, int, int]] = []

    def respond(error: ErrorCode, producer_id: int, epoch: int) -> None:
        answers.append((error, producer_id, epoch))
        done.set()

    target.broker.transaction_coordinator.init_producer_id(
        known.name, known.transaction.timeout_ms, None, respond
    )
    target.broker.server.finish_outside_work()
    await done.wait()
    return answers[0]


async def expire(target: Controlled, transactional_id: str) -> None:
    """Abort an open transaction as one that took too long; answers when it is aborted."""
    known = _known(target, transactional_id)
    logger.warning("outage: the transaction of %s expires", transactional_id)
    try:
        target.broker.transaction_coordinator.expire_transaction(transactional_id)
    except KafkaError as refusal:
        state = known.transaction.state.shown
        raise VerbError(
            f"{transactional_id} has no transaction that could expire: it is {state} "
            f"({refusal.code.name})"
        ) from None
    target.broker.server.finish_outside_work()
    with trio.move_on_after(END_SECONDS_MAX):
        while known.pending in PREPARED or known.transaction.state in PREPARED:
            await trio.sleep(LOOK_SECONDS)
        return
    raise TimeoutError(f"the markers of {transactional_id} were not written in time")


def _known(target: Controlled, transactional_id: str) -> TransactionalId:
    for each in target.broker.transaction_coordinator.ids:
        if each.name == transactional_id:
            return each
    raise VerbError(f"there is no transactional id {transactional_id} on this broker")
