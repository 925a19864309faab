"""Compaction, run by a broker: its loop chooses and swaps, a thread reads and copies.

One log is cleaned at a time, however many `log.cleaner.threads` there are: two threads would
share one interpreter. As in Kafka each is given its share of the memory, so more of them mean
less for the one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...config.dynamic.dynamic_config import DynamicConfig
from ...replication.replica_manager import ReplicaManager
from ...runtime import waiting
from ...runtime.clock import Clock
from ...runtime.long_work import run_in_steps
from ...runtime.offload import rest, run_in_thread
from ...runtime.timers import Timer, Timers
from ...storage.cleaner.cleaning_plan import CleanerSettings
from ...storage.cleaner.log_cleaner_manager import Cleaning, LogCleanerManager
from ...storage.cleaner.throttler import CleanerThrottler, CleaningCancelled
from ...storage.errors import StorageError
from ...storage.log.log import Log
from .log_maintenance import write_checkpoint

logger = logging.getLogger(__name__)

DEDUPE_BUFFER_BYTES_MAX = 2**31 - 1
"""Kafka uses no more of `log.cleaner.dedupe.buffer.size` for one thread."""

IO_BUFFER_BYTES_MIN = 4096
"""A smaller buffer would read a file a header at a time."""


class LogCleanerTask:
    """Cleans what is dirty enough, and looks again after `log.cleaner.backoff.ms`.

    Args:
        config: the broker's settings.
        replica_manager: its partitions and their logs.
        clock: the time.
        timers: where the next look waits.
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
        self._log_manager = log_manager = replica_manager.log_manager
        self._clock = clock
        self._timers = timers
        self._keep_running = keep_running
        self.manager = LogCleanerManager(
            log_manager.logs,
            lambda: [directory.path for directory in log_manager.directories.online],
            self._last_stable_offset_of,
            clock,
            noted_recovery_point_of=self._noted_recovery_point_of,
        )
        self._pace = CleanerThrottler(clock, rest)
        self._timer: Timer | None = None
        self._rate_changed()
        config.subscribe(["log.cleaner.io.max.bytes.per.second"], self._rate_changed)
        config.subscribe(["log.cleaner.backoff.ms"], self._backoff_changed)

    def start(self) -> None:
        """Look for something to clean now."""
        self._timer = None
        self._keep_running(self._run)

    async def _run(self) -> None:
        async with waiting.open_nursery() as nursery:
            nursery.start_soon(self._cancel_with_task)
            while await self._clean_filthiest():
                pass
            nursery.cancel_scope.cancel()
        self._look_again_later()

    async def _cancel_with_task(self) -> None:
        """Make the thread stop when the broker does: it cannot be cancelled from outside."""
        self._pace.is_cancelled = False
        try:
            await waiting.sleep_forever()
        finally:
            self._pace.cancel()

    def _look_again_later(self) -> None:
        at_ms = self._clock.monotonic_ms() + self._config["log.cleaner.backoff.ms"]
        self._timer = self._timers.schedule(at_ms, self.start)

    def _backoff_changed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._look_again_later()

    def _rate_changed(self) -> None:
        config = self._config
        self._pace.bytes_per_second = config["log.cleaner.io.max.bytes.per.second"]

    async def _clean_filthiest(self) -> bool:
        """Clean one log, if one needs it; whether it is worth while to look at once again."""
        candidate = await run_in_steps(self.manager.find_filthiest())
        is_done = False
        if candidate is not None:
            try:
                await self._flush(candidate.log)
                cleaning = self.manager.begin(candidate, self._settings(), self._pace)
                is_done = await self._clean(cleaning)
            except KafkaError as error:  # the disk failed while it was planned
                logger.warning("cannot clean %s: %s", candidate.log.topic_partition, error)
        await self._write_checkpoints()
        return is_done

    async def _flush(self, log: Log) -> None:
        """Get the closed segments of a log to the disk, and note that they are.

        Raises:
            StorageError: the disk fails.
        """
        flush = log.start_flush(closed_segments_only=True)
        if flush is not None:
            try:
                await run_in_thread(flush.run)
            except OSError as error:
                log.flush_failed(error)
                raise StorageError(f"could not sync {log.topic_partition}: {error}") from error
            log.finish_flush(flush)
        await write_checkpoint(self._log_manager.prepare_recovery_points())

    async def _clean(self, cleaning: Cleaning) -> bool:
        round = cleaning.round
        try:
            for group in await run_in_thread(round.prepare):
                cleaned = await run_in_thread(partial(round.clean, group))
                self.manager.swap_in(cleaning, cleaned)
            await run_in_thread(round.sync_names)
        except CleaningCancelled:
            logger.info("cleaning %s was given up", cleaning.log.topic_partition)
            return False
        except Exception as error:  # of a thread that must not end others' compaction
            self.manager.failed(cleaning, error)
            return False
        self.manager.finished(cleaning)
        stats = round.stats
        logger.info(
            "cleaned %s up to offset %d: %d of %d records and %d of %d bytes are left, "
            "the map was %.1f%% full",
            cleaning.log.topic_partition,
            round.end_offset,
            stats.records_after,
            stats.records_before,
            stats.bytes_after,
            stats.bytes_before,
            100 * stats.map_utilization,
        )
        return True

    async def _write_checkpoints(self) -> None:
        checkpoints = self.manager.checkpoints
        write = checkpoints.prepare_write()
        if write is None:
            return
        checkpoints.write_done(await run_in_thread(write))

    def _settings(self) -> CleanerSettings:
        config = self._config
        threads = max(config["log.cleaner.threads"], 1)
        return CleanerSettings(
            min(config["log.cleaner.dedupe.buffer.size"] // threads, DEDUPE_BUFFER_BYTES_MAX),
            config["log.cleaner.io.buffer.load.factor"],
            max(config["log.cleaner.io.buffer.size"] // threads // 2, IO_BUFFER_BYTES_MIN),
        )

    def _noted_recovery_point_of(self, topic_partition: TopicPartition) -> int:
        """None of a log that is moving, so that nothing is swapped into it any more."""
        if topic_partition in self._log_manager.future_logs:
            return 0
        return self._log_manager.noted_recovery_point(topic_partition)

    def _last_stable_offset_of(self, topic_partition: TopicPartition) -> int | None:
        """None of a log that is moving as well: its copy, with a record, might miss the tombstone
        that both have gone with here (Kafka's abortAndPauseCleaning)."""
        if topic_partition in self._log_manager.future_logs:
            return None
        partition = self._replica_manager.get_partition(topic_partition)
        return None if partition is None else partition.last_stable_offset
