"""Opening all logs of the log directories, in threads (Kafka's LogManager.loadLogs).

The threads share no state: each makes whole logs, which the caller takes over when all are
loaded. A directory in which anything cannot be read goes offline
with all its logs; the others load.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...common.errors import KafkaError
from ...common.named_tuple import NamedTuple
from ...common.topic_partition import TopicPartition
from ...runtime.clock import Clock
from ..checkpoint.checkpoint_file import CheckpointError
from ..errors import LogDirectoryError
from ..file_names import (
    ABORTED_TRANSACTIONS_FILE,
    LOG_START_OFFSETS_FILE,
    RECOVERY_POINTS_FILE,
)
from ..io.files import Files
from ..io.parallel import Workers
from ..log.log import Log
from ..log.log_config import LogConfig
from ..recovery.log_loader import load_log
from .log_directory import LogDirectory

logger = logging.getLogger(__name__)

PROGRESS_INTERVAL_SECONDS = 1.0


class LoadingStopped(LogDirectoryError):
    """The loading was stopped."""


class LoadProgress(NamedTuple):
    """How far the loading has come."""

    loaded: int
    total: int
    seconds: float
    """Since it began."""
    recovering: bool
    """Whether some logs were not closed properly, so that what may be torn is read."""

    def __str__(self) -> str:
        verb = "recovering" if self.recovering else "loading"
        rate = self.loaded / self.seconds if self.seconds > 0 else 0.0
        return f"{verb} logs: {self.loaded} of {self.total}, {rate:.0f} a second"


class LogLoading:
    """One start's loading.

    Args:
        directories: those that are online.
        clock: the time.
        default_config: of logs whose topic has no settings of its own.
        topic_configs: settings by topic.
        threads: for each directory whose logs are to be recovered.
    """

    def __init__(
        self,
        files: Files,
        directories: Sequence[LogDirectory],
        *,
        clock: Clock,
        default_config: LogConfig,
        topic_configs: Mapping[str, LogConfig],
        threads: int,
    ) -> None:
        self._files = files
        self._directories = directories
        self._clock = clock
        self._now_ms = clock.now_ms()
        self._default_config = default_config
        self._topic_configs = topic_configs
        self._threads = threads
        self._workers = Workers("log-recovery")
        self._loaded: dict[LogDirectory, dict[TopicPartition, Log]] = {}
        self._cleaned: dict[LogDirectory, Mapping[TopicPartition, int] | None] = {}
        """Up to where the logs of each were compacted, if that is known."""
        self.pending_deletion: list[tuple[LogDirectory, str]] = []
        """Folders of logs that were deleted before."""
        self.futures: list[tuple[LogDirectory, TopicPartition, str]] = []
        """Future logs, with their folders."""

    def stop(self) -> None:
        """Load no further; may be called by any thread. `run` raises then."""
        self._workers.stop()

    def run(self, on_progress: Callable[[LoadProgress], None] | None = None) -> None:
        """Load everything into the directories' `logs`.

        Args:
            on_progress: called every second, by this thread.

        Raises:
            LogDirectoryError: a partition lies in two directories.
            LoadingStopped: `stop` was called.
        """
        owners: dict[TopicPartition, LogDirectory] = {}
        began_ms = self._clock.monotonic_ms()
        found = {directory: self._begin(directory) for directory in self._directories}
        for directory, partitions in found.items():
            for topic_partition in partitions:
                other = owners.setdefault(topic_partition, directory)
                if other is not directory:
                    raise LogDirectoryError(
                        f"{topic_partition} lies both in {directory.path} and in "
                        f"{other.path}: remove one of the two folders"
                    )
        for directory, partitions in found.items():
            self._loaded[directory] = {}
            jobs = self._jobs(directory, partitions)
            # What was closed properly is opened by many small calls to the system, between which
            # two threads would hand each other the interpreter: it takes them twice as long as one.
            threads = 1 if directory.was_clean else self._threads
            self._workers.start(jobs, self._load, min(threads, len(partitions)))
        recovering = any(not each.was_clean for each in self._directories)
        while not self._workers.wait(PROGRESS_INTERVAL_SECONDS):
            if on_progress is not None:
                seconds = (self._clock.monotonic_ms() - began_ms) / 1000
                on_progress(LoadProgress(self._workers.done, len(owners), seconds, recovering))
        if self._workers.is_stopped:
            raise LoadingStopped("the loading of the logs was stopped")
        self._take_over(owners)

    def _begin(self, directory: LogDirectory) -> list[TopicPartition]:
        try:
            directory.read_checkpoints()
            self._cleaned[directory] = directory.read_cleaned_offsets()
            contents = directory.contents()
            directory.mark_in_use()
        except OSError as error:
            directory.fail(f"cannot load the logs in {directory.path}: {error}")
            return []
        if contents.partitions and not directory.was_clean:
            logger.info("recovering the logs in %s, not closed properly", directory.path)
        self.pending_deletion += [(directory, path) for path in contents.pending_deletion]
        self.futures += [(directory, *future) for future in contents.futures]
        return contents.partitions

    def _jobs(
        self, directory: LogDirectory, partitions: Sequence[TopicPartition]
    ) -> Iterator[tuple[LogDirectory, TopicPartition]]:
        for topic_partition in partitions:
            if not directory.is_online:
                return
            yield directory, topic_partition

    def _gaps_end(self, directory: LogDirectory, topic_partition: TopicPartition) -> int | None:
        cleaned = self._cleaned[directory]
        return None if cleaned is None else cleaned.get(topic_partition, 0)

    def _load(self, job: tuple[LogDirectory, TopicPartition]) -> None:
        """In a thread: open one log."""
        directory, topic_partition = job
        folder = directory.folder_of(topic_partition)
        try:
            log = load_log(
                folder,
                topic_partition,
                self._topic_configs.get(topic_partition.topic, self._default_config),
                files=self._files,
                now_ms=self._now_ms,
                clean_shutdown=directory.was_clean,
                recovery_point=directory.offset(RECOVERY_POINTS_FILE, topic_partition),
                log_start_offset=directory.offset(LOG_START_OFFSETS_FILE, topic_partition),
                aborted_count=directory.offset(ABORTED_TRANSACTIONS_FILE, topic_partition),
                gaps_end=self._gaps_end(directory, topic_partition),
            )
        except (OSError, CheckpointError, KafkaError, LogDirectoryError) as error:
            directory.fail(f"cannot load the log in {folder}: {error}")
            return
        log.close_files()  # most stay idle
        self._loaded[directory][topic_partition] = log

    def _take_over(self, owners: Mapping[TopicPartition, LogDirectory]) -> None:
        """Hand the logs to their directories, in the order of the folders."""
        for topic_partition, directory in owners.items():
            if directory.is_online:
                directory.logs[topic_partition] = self._loaded[directory][topic_partition]
        for directory in self._directories:
            for name, written in directory.written.items():
                # The same keys as the logs have, so that each is in memory once.
                own = directory.logs
                directory.written[name] = {
                    own[each].topic_partition if each in own else each: offset
                    for each, offset in written.items()
                }
