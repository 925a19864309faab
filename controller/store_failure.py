"""What a client is told when the metadata store did not do its part."""

from __future__ import annotations

import logging

from ..common.errors import ErrorCode, KafkaError
from ..metadata_store.errors import MetadataStoreError, SessionExpired, StoreUnreachable

logger = logging.getLogger(__name__)


def store_failure(error: MetadataStoreError) -> KafkaError:
    """The error for the client; what happened goes to the log."""
    logger.error("the metadata store refused: %s", error)
    if isinstance(error, SessionExpired | StoreUnreachable):
        return KafkaError(ErrorCode.NOT_CONTROLLER, "This broker lost the metadata store.")
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The metadata store refused: {error}.")
