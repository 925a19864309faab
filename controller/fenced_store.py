"""Writing in the name of an election: nothing is written once another broker was elected.

Every write checks the version of `/controller_epoch` in the same transaction, as Kafka's
KafkaZkClient does; so a controller that does not know yet that it was replaced cannot undo
what its successor decided.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..common.errors import ErrorCode, KafkaError
from ..metadata_store import znodes
from ..metadata_store.errors import (
    BadVersion,
    MetadataStoreError,
    NoNode,
    SessionExpired,
    StoreUnreachable,
)
from ..metadata_store.store import Check, MetadataStore, Operation, Result

logger = logging.getLogger(__name__)


class ControllerMoved(Exception):
    """Another broker was elected: this one is not the controller any more."""


class FencedStore:
    """The store, for one election's writes.

    Args:
        store: reads go to it directly.
        epoch_version: of `/controller_epoch`, as this election left it.

    Attributes:
        is_unsure: the answer to a write was lost, so what the store holds may not be what the
            controller thinks: it has to read everything again.
    """

    def __init__(self, store: MetadataStore, epoch_version: int) -> None:
        self.store = store
        self.is_unsure = False
        self._check = Check(znodes.CONTROLLER_EPOCH, epoch_version)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations in order, or none.

        Raises:
            ControllerMoved: there has been another election.
            MetadataStoreError: that of the first operation that cannot be done.
        """
        try:
            results = await self.store.multi([self._check, *operations])
        except (BadVersion, NoNode) as refusal:
            if refusal.path == znodes.CONTROLLER_EPOCH:
                raise ControllerMoved from refusal
            raise
        except StoreUnreachable:
            self.is_unsure = True
            raise
        return results[1:]


def kafka_error_of(error: KafkaError | MetadataStoreError) -> KafkaError:
    """The error that a client gets, as a value: a refusal as it is; one of the store, which goes
    to the log, in Kafka's codes."""
    if isinstance(error, KafkaError):
        return error.as_value()
    logger.error("the metadata store refused: %s", error)
    if isinstance(error, SessionExpired | StoreUnreachable):
        return KafkaError(ErrorCode.NOT_CONTROLLER, "This broker lost the metadata store.")
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The metadata store refused: {error}.")
