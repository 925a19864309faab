"""What a broker of several log directories does ahead, since one of them may fail.

The directory that fails may be the one that holds the embedded metadata store. What lies in
the others is served all the same: from the metadata that the broker knows, by clients that
connect only then. For a producer that is idempotent, as most are by default, that takes an
id, and those come from the store a thousand at a time.
"""

from __future__ import annotations

import logging

from ...controller.controller import Controller
from ...metadata_store.errors import MetadataStoreError
from ...storage.log_manager.log_manager import LogManager

logger = logging.getLogger(__name__)


async def hold_producer_ids(log_manager: LogManager, controller: Controller) -> None:
    """Have a block of producer ids at hand, as Kafka's brokers do from their start on.

    A broker with one directory ends with it, and waits until the first producer asks.
    """
    if len(log_manager.directories) < 2:
        return
    try:
        await controller.producer_ids.take()
    except MetadataStoreError as error:
        logger.warning("no producer ids could be taken ahead: %s", error)
