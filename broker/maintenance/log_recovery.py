"""Recovering logs while others are served.

A start recovers what it can in half a second. What is left is recovered here, some logs at a time:
those that this broker leads first, and each is served as soon as it is there. Kafka's broker
recovers all of them before it serves any (LogManager.loadLogs).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...replication.replica_manager import ReplicaManager
from ...runtime import waiting
from ...runtime.offload import run_in_stoppable_thread
from ...storage.log_manager.log_loading import PROGRESS_INTERVAL_SECONDS

logger = logging.getLogger(__name__)


async def recover_logs(replica_manager: ReplicaManager, flush: Callable[[], None]) -> None:
    """Recover all logs that are not open yet.

    Args:
        replica_manager: gets each as soon as it is there.
        flush: publishes what that has brought about, and takes directories offline that have
            failed.
    """
    manager = replica_manager.log_manager
    told = began = waiting.current_time()
    count = len(manager.unrecovered)
    logger.info("%d logs are still to be recovered: they are served one after another", count)
    while (work := manager.prepare_recovery(replica_manager.awaited_logs)) is not None:
        recovered = await run_in_stoppable_thread(work, manager.stop_loading)
        progress = manager.take_up_recovered(recovered)
        replica_manager.logs_recovered(recovered)
        flush()
        now = waiting.current_time()
        if progress is not None and now - told >= PROGRESS_INTERVAL_SECONDS:
            logger.info("%s", progress)
            told = now
    logger.info("%d logs were recovered in %.1f s", count, waiting.current_time() - began)
