"""Opening all logs of the log directories, in threads (Kafka's LogManager.loadLogs).

The threads share no state: each makes whole logs, which the caller takes over when all are
loaded. A directory in which anything cannot be read goes offline with all its logs; the others
load. What is not recovered within the time that the caller gives to it is recovered later, some
logs at a time, while the others are served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from ...common.errors import KafkaError
from ...common.named_tuple import NamedTuple
from ...common.topic_partition import TopicPartition
from ...runtime.clock import Clock
from ..checkpoint.checkpoint_file import CheckpointError
from ..checkpoint.partition_metadata import read_topic_id
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


LOADING_FAILURES = (OSError, CheckpointError, KafkaError, LogDirectoryError)

Recovered = dict[TopicPartition, "Log | Exception"]
"""Logs by their partitions, or why one could not be opened."""


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
        recovery_ms: no further logs are recovered after so long; None: all are.
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
        recovery_ms: int | None = None,
    ) -> None:
        self._files = files
        self._directories = directories
        self._clock = clock
        self._now_ms = clock.now_ms()
        self._default_config = default_config
        self._topic_configs = topic_configs
        self._threads = threads
        self._began_ms = clock.monotonic_ms()
        self._recovery_ms = recovery_ms
        self._total = 0
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
        """Load everything into the directories' `logs`, but for what is left to be recovered.

        Args:
            on_progress: called every second, by this thread.

        Raises:
            LogDirectoryError: a partition lies in two directories.
            LoadingStopped: `stop` was called.
        """
        owners: dict[TopicPartition, LogDirectory] = {}
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
        self._total = len(owners)
        recovering = any(not each.was_clean for each in self._directories)
        while not self._workers.wait(PROGRESS_INTERVAL_SECONDS):
            if on_progress is not None:
                on_progress(self._progress(self._workers.done, recovering=recovering))
        if self._workers.is_stopped:
            raise LoadingStopped("the loading of the logs was stopped")
        self._take_over(owners)

    def recover(self, jobs: Sequence[tuple[LogDirectory, TopicPartition]]) -> Recovered:
        """In a thread: open some logs that `run` has left; raises nothing.

        Returns:
            what became of each; nothing of those that `stop` came before.
        """
        loaded: Recovered = {}

        def load(job: tuple[LogDirectory, TopicPartition]) -> None:
            try:
                loaded[job[1]] = self._load_log(*job)
            except LOADING_FAILURES as error:
                loaded[job[1]] = error

        self._workers = Workers("log-recovery")
        self._workers.start(jobs, load, min(self._threads, len(jobs)))
        self._workers.wait()
        return loaded

    def progress(self, left: int) -> LoadProgress:
        """How far the recovery has come, where so many logs are left."""
        return self._progress(self._total - left, recovering=True)

    def _progress(self, done: int, *, recovering: bool) -> LoadProgress:
        seconds = (self._clock.monotonic_ms() - self._began_ms) / 1000
        return LoadProgress(done, self._total, seconds, recovering)

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
            if not directory.is_online or (not directory.was_clean and self._is_late()):
                return
            yield directory, topic_partition

    def _is_late(self) -> bool:
        """Whether what is to be recovered has to wait."""
        if self._recovery_ms is None:
            return False
        return self._clock.monotonic_ms() - self._began_ms >= self._recovery_ms

    def _gaps_end(self, directory: LogDirectory, topic_partition: TopicPartition) -> int | None:
        cleaned = self._cleaned[directory]
        return None if cleaned is None else cleaned.get(topic_partition, 0)

    def _load(self, job: tuple[LogDirectory, TopicPartition]) -> None:
        """In a thread: open one log."""
        directory, topic_partition = job
        try:
            self._loaded[directory][topic_partition] = self._load_log(directory, topic_partition)
        except LOADING_FAILURES as error:
            folder = directory.folder_of(topic_partition)
            directory.fail(f"cannot load the log in {folder}: {error}")

    def _load_log(self, directory: LogDirectory, topic_partition: TopicPartition) -> Log:
        log = load_log(
            directory.folder_of(topic_partition),
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
        log.close_files()  # most stay idle
        return log

    def _topic_id(self, directory: LogDirectory, topic_partition: TopicPartition) -> bytes | None:
        """The id of a log that is not open yet; None where it has none, or a crash has torn it."""
        try:
            return read_topic_id(self._files, directory.folder_of(topic_partition))
        except (OSError, LogDirectoryError):
            return None  # whoever opens the log says what is wrong

    def _take_over(self, owners: Mapping[TopicPartition, LogDirectory]) -> None:
        """Hand the logs to their directories, in the order of the folders."""
        for topic_partition, directory in owners.items():
            if not directory.is_online:
                continue
            log = self._loaded[directory].get(topic_partition)
            if log is not None:
                directory.logs[topic_partition] = log
            else:
                directory.unrecovered[topic_partition] = self._topic_id(directory, topic_partition)
        self._loaded.clear()
        for directory in self._directories:
            for name, written in directory.written.items():
                # The same keys as the logs have, so that each is in memory once.
                own = directory.logs
                directory.written[name] = {
                    own[each].topic_partition if each in own else each: offset
                    for each, offset in written.items()
                }
