"""What logs need from time to time: flushing, checkpoints, retention, late deletions.

The loop decides; whatever waits for a disk runs in a thread, and the loop takes note of
its outcome. The names of the periods are Kafka's, which gives the same work to its
scheduler's `background.threads`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from ...common.sentinels import FOREVER_MS
from ...runtime.clock import Clock
from ...runtime.long_work import run_in_steps
from ...runtime.offload import run_in_thread
from ...runtime.steps import Steps
from ...runtime.timers import Timers, repeat
from ...storage.errors import StorageError, is_disk_failure
from ...storage.io.open_files import OPEN_FILES
from ...storage.log.log import Log
from ...storage.log_manager.deferred_deletion import delete_due

if TYPE_CHECKING:
    from ...config.dynamic.dynamic_config import DynamicConfig
    from ...replication.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

CLOSE_UNUSED_MS = 10_000
"""Between two looks for segments whose files nobody uses."""

ROLLED_CHECKPOINT_MS = 1000
"""So soon after a closed segment was flushed the checkpoint says so. Until it does, a recovery
reads the segment, and cuts the log at a damage of any age in it; Kafka leaves that to its period,
which is a minute."""


class LogMaintenance:
    """The work on a broker's logs that is nobody's request.

    Args:
        config: the broker's settings.
        replica_manager: its partitions and their logs.
        clock: the time.
        timers: where the periods wait.
        keep_running: runs an async function beside the requests, again should it fail.
    """

    def __init__(
        self,
        config: DynamicConfig,
        replica_manager: ReplicaManager,
        clock: Clock,
        timers: Timers,
        keep_running: Callable[..., None],
    ) -> None:
        self._config = config
        self._replica_manager = replica_manager
        self._log_manager = replica_manager.log_manager
        self._clock = clock
        self._timers = timers
        self._keep_running = keep_running
        self._flushing_tasks = 0
        self._is_checkpoint_due = False
        """Whether the recovery points are to be written soon, because of flushed segments."""

    def start(self) -> None:
        """Begin; to be called once the broker can start tasks."""
        delay_ms = self._config["log.initial.task.delay.ms"]
        for name, work in (
            ("log.retention.check.interval.ms", self._apply_retention),
            ("log.flush.scheduler.interval.ms", self._flush_old),
            ("log.flush.offset.checkpoint.interval.ms", self._write_recovery_points),
            ("log.flush.start.offset.checkpoint.interval.ms", self._write_start_offsets),
        ):
            self._every(name, work, delay_ms)
        self._every("replica.high.watermark.checkpoint.interval.ms", self._write_high_watermarks)
        self._every("producer.id.expiration.check.interval.ms", self._expire_producers)
        repeat(self._timers, self._clock, lambda: CLOSE_UNUSED_MS, OPEN_FILES.close_unused)
        self._log_manager.on_rolled = self._flush_rolled
        deletions = self._log_manager.deletions
        deletions.on_earlier = self._delete_at
        if deletions.next_due_ms is not None:
            self._delete_at(deletions.next_due_ms)

    async def catch_up(self) -> None:
        """Do at once what time has made due, without waiting for the next period."""
        await self._apply_retention()
        await self._expire_producers()
        await self._delete_due()

    def stop(self) -> None:
        """Start no more tasks; closing the logs does what is left to do."""
        self._log_manager.on_rolled = None
        self._log_manager.deletions.on_earlier = None

    def _every(
        self, setting: str, work: Callable[[], Awaitable[None]], delay_ms: int | None = None
    ) -> None:
        """Do something again and again, one period after it was last done.

        Args:
            setting: the period's name; its value may change.
            work: runs as a task.
            delay_ms: before the first time; one period if None.
        """

        async def work_and_go_on() -> None:
            await work()
            schedule(self._config[setting])

        def schedule(wait_ms: int) -> None:
            at_ms = self._clock.monotonic_ms() + wait_ms
            self._timers.schedule(at_ms, lambda: self._keep_running(work_and_go_on))

        if self._config[setting] < FOREVER_MS:
            schedule(self._config[setting] if delay_ms is None else delay_ms)

    # -- flushing ------------------------------------------------------------------------

    def _flush_rolled(self) -> None:
        """A segment was closed: have it flushed, by no more tasks than Kafka has threads."""
        if self._flushing_tasks < self._config["background.threads"]:
            self._flushing_tasks += 1
            self._keep_running(self._flush_closed_segments)

    async def _flush_closed_segments(self) -> None:
        while (log := self._log_manager.take_rolled()) is not None:
            await self._flush(log, closed_segments_only=True)
            self._write_recovery_points_soon()
        self._flushing_tasks -= 1

    def _write_recovery_points_soon(self) -> None:
        if not self._is_checkpoint_due:
            self._is_checkpoint_due = True
            at_ms = self._clock.monotonic_ms() + ROLLED_CHECKPOINT_MS
            self._timers.schedule(at_ms, lambda: self._keep_running(self._write_recovery_points))

    async def _flush_old(self) -> None:
        """Flush what has waited for its `flush.ms`."""
        for log in await run_in_steps(self._log_manager.logs_to_flush()):
            if self._log_manager.get_log(log.topic_partition) is log:  # not deleted meanwhile
                await self._flush(log)

    async def _flush(self, log: Log, *, closed_segments_only: bool = False) -> None:
        try:
            flush = log.start_flush(closed_segments_only=closed_segments_only)
        except StorageError as error:
            logger.warning("%s", error.message)
            return
        if flush is None:
            return
        try:
            await run_in_thread(flush.run)
        except OSError as error:
            logger.error("could not flush %s: %s", log.topic_partition, error)
            log.flush_failed(error)
        else:
            log.finish_flush(flush, self._clock.monotonic_ms())

    # -- checkpoints ---------------------------------------------------------------------

    async def _write_high_watermarks(self) -> None:
        high_watermark_of = self._replica_manager.high_watermark_of
        await write_checkpoint(self._log_manager.prepare_high_watermarks(high_watermark_of))

    async def _write_recovery_points(self) -> None:
        self._is_checkpoint_due = False
        await write_checkpoint(self._log_manager.prepare_recovery_points())

    async def _write_start_offsets(self) -> None:
        await write_checkpoint(self._log_manager.prepare_start_offsets())

    # -- what goes -----------------------------------------------------------------------

    async def _apply_retention(self) -> None:
        count = await run_in_steps(self._replica_manager.delete_old_segments())
        if count:
            logger.info("%d segments were deleted, since they are too old or too much", count)

    async def _expire_producers(self) -> None:
        await run_in_steps(self._log_manager.remove_expired_producers())

    def _delete_at(self, at_ms: int) -> None:
        self._timers.schedule(at_ms, lambda: self._keep_running(self._delete_due))

    async def _delete_due(self) -> None:
        """Remove what has had its delay, and wait for the next."""
        deletions = self._log_manager.deletions
        due = deletions.take_due(self._clock.monotonic_ms())
        if deletions.next_due_ms is not None:
            self._delete_at(deletions.next_due_ms)
        try:
            failures = await run_in_thread(partial(delete_due, due))
        except BaseException:
            deletions.put_back(due)
            raise
        for path, error in failures:
            logger.warning("could not delete %s: %s", path, error)
            if is_disk_failure(error):
                self._log_manager.disk_failed(path, error)


async def write_checkpoint(preparation: Steps[Callable[[], None] | None]) -> None:
    """Write what is prepared in steps, in a thread: checkpoints wait for the disk."""
    write = await run_in_steps(preparation)
    if write is not None:
        await run_in_thread(write)
