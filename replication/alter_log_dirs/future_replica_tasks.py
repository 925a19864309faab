"""Copies logs from one directory to another, a step at a time beside all else.

The threads of Kafka's ReplicaAlterLogDirsManager: `num.replica.alter.log.dirs.threads` moves
are at work at once, each until it is done or has to wait. What may wait for a disk, reading
what is not at the log's end and syncing, is done in threads; the last step, of which nobody may
be ahead, is one with the swap.
"""

from __future__ import annotations

import logging
from functools import partial

from ...common.errors import KafkaError
from ...runtime import waiting
from ...runtime.clock import Clock
from ...runtime.offload import run_in_thread
from ...runtime.timers import Timer, Timers
from ...storage.errors import StorageError
from ..fetcher.plans import EpochsPlan, FetchPlan, RequestPlan, WaitPlan
from ..fetcher.task import StartTask
from .future_replica import FutureReplica
from .future_replicas import FutureReplicas
from .local_leader import read

logger = logging.getLogger(__name__)

WAIT_AFTER_FAILURE_MS = 1000
"""Before a copy that could not be flushed, or did not fit on the disk, is tried again."""


class FutureReplicaTasks:
    """Copies what `FutureReplicas` wants copied.

    Args:
        futures: the moves.
        tasks_max: `num.replica.alter.log.dirs.threads`.
        start_task: begins a task.
        clock: monotonic and wall time.
        timers: where moves wait.
    """

    def __init__(
        self,
        futures: FutureReplicas,
        tasks_max: int,
        start_task: StartTask,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self._futures = futures
        self._tasks_max = tasks_max
        self._start_task = start_task
        self._clock = clock
        self._timers = timers
        self._timer: Timer | None = None
        self._running = 0
        self._is_stopped = False

    def stop(self) -> None:
        """Begin no more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def wake(self) -> None:
        """Be at work on what is ready, and look again when the next is."""
        if self._is_stopped:
            return
        now_ms = self._clock.monotonic_ms()
        while self._running < self._tasks_max:
            move = self._futures.take_ready(now_ms)
            if move is None:
                break
            self._running += 1
            self._start_task(self._run, move)
        at_ms = self._futures.next_ready_ms()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at_ms is not None and self._running < self._tasks_max:
            self._timer = self._timers.schedule(at_ms, self.wake)

    async def _run(self, move: FutureReplica) -> None:
        try:
            await self.copy(move)
        except KafkaError as error:
            logger.error("%s could not be moved on: %s", move.topic_partition, error)
            move.ready_at_ms = self._clock.monotonic_ms() + WAIT_AFTER_FAILURE_MS
        except Exception:
            # A fault of ours may not end the other moves.
            logger.exception("%s could not be moved on", move.topic_partition)
            move.fetcher.failed.add(move.topic_partition)
        finally:
            self._running -= 1
            move.is_driven = False
            self.wake()

    async def copy(self, move: FutureReplica) -> None:
        """Work on a move until it is done, has been replaced, or has to wait.

        Raises:
            StorageError: a disk fails or is full.
        """
        futures = self._futures
        while futures.is_current(move) and not move.has_failed:
            if move.may_replace:
                futures.replace_current(move)
                return
            if move.has_closed_segments or (move.is_caught_up and not move.has_failed):
                await self._flush(move, closed_segments_only=not move.is_caught_up)
                continue
            now_ms = self._clock.monotonic_ms()
            plan = move.next_request(now_ms)
            if isinstance(plan, WaitPlan):
                wait_ms = WAIT_AFTER_FAILURE_MS
                move.ready_at_ms = now_ms + wait_ms if plan.until_ms is None else plan.until_ms
                return
            has_news = await self._answer(move, plan)
            if not has_news and not move.is_caught_up:
                # Compaction may have taken what was last, and only new records get it on.
                move.ready_at_ms = now_ms + WAIT_AFTER_FAILURE_MS
                return

    async def _answer(self, move: FutureReplica, plan: RequestPlan) -> bool:
        """One request of the fetcher, answered by the log; False if there was nothing."""
        now_ms = self._clock.monotonic_ms()
        has_news = True
        if isinstance(plan, EpochsPlan):
            move.fetcher.epochs_answered(plan, move.leader.epochs(plan), now_ms)
        elif isinstance(plan, FetchPlan):
            generation = move.partition.log.generation
            found = move.leader.find(plan)
            has_news = found != b""
            if move.leader.reaches_end(found):
                records = read(found)  # written just now, and the swap may follow at once
            else:
                records = await run_in_thread(partial(read, found))
                if not self._futures.is_current(move):
                    return True
            if move.partition.log.generation == generation:
                move.fetcher.fetch_answered(plan, move.leader.answer(records), now_ms)
            else:
                move.fetcher.request_abandoned()
        else:
            move.fetcher.offsets_answered(plan, move.leader.offsets(plan), now_ms)
        if not move.may_replace:
            await waiting.checkpoint()
        return has_news

    async def _flush(self, move: FutureReplica, *, closed_segments_only: bool) -> None:
        """Get the copy to the disk, and let go of what retention has no use for.

        Raises:
            StorageError: the disk fails.
        """
        log = move.copy.log
        generation = log.generation
        flush = log.start_flush(closed_segments_only=closed_segments_only)
        if flush is not None:
            try:
                await run_in_thread(flush.run)
            except OSError as error:
                log.flush_failed(error)
                raise StorageError(f"could not sync {log.directory}: {error}") from error
            log.finish_flush(flush, self._clock.monotonic_ms())
        if log.generation == generation and not closed_segments_only:
            move.is_flushed = True
        if self._futures.is_current(move):
            log.delete_old_segments(self._clock.now_ms(), move.copy.high_watermark)
