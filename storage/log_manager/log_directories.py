"""The log directories of a broker together: whose they are, and which are left.

One that cannot be used at the start, or whose disk fails later, is offline until a restart
with everything in it; the others work (Kafka's LogDirFailureChannel). The broker ends when
none is left.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Iterator, Sequence

from ...runtime.rng import random_uuid, uuid_to_text
from ..checkpoint.store_reference import (
    StoreReference,
    read_store_reference,
    write_store_reference,
)
from ..errors import LogDirectoryError, is_disk_failure
from ..io.files import Files
from .log_directory import LogDirectory

logger = logging.getLogger(__name__)


class LogDirectories:
    """Takes each directory for this process.

    Args:
        paths: at least one; each is made if need be.

    Raises:
        LogDirectoryError: a directory is in use by another process, or none can be used.
    """

    def __init__(self, files: Files, paths: Sequence[str]) -> None:
        self._files = files
        self._all: list[LogDirectory] = []
        self._failures: deque[tuple[str, OSError]] = deque()
        try:
            for path in dict.fromkeys(paths):
                self._all.append(LogDirectory(files, path))
            self.require_one_online()
        except LogDirectoryError:
            self.release()
            raise

    def __iter__(self) -> Iterator[LogDirectory]:
        """All of them, offline or not."""
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def online(self) -> list[LogDirectory]:
        """Those in use."""
        return [directory for directory in self._all if directory.is_online]

    @property
    def has_offline(self) -> bool:
        """Whether some logs may be there that are not known."""
        return any(not directory.is_online for directory in self._all)

    def require_one_online(self) -> None:
        """Raises `LogDirectoryError` if none is left."""
        if not self.online:
            reasons = "; ".join(str(directory.failure) for directory in self._all)
            raise LogDirectoryError(f"no log directory is left: {reasons}")

    def cluster_id(self) -> str | None:
        """The cluster that they belong to, or None if all are new.

        Raises:
            LogDirectoryError: a `meta.properties` is damaged, or no directory can be read.
        """
        cluster_id = None
        for directory in self._all:
            found = directory.meta_properties()
            if found is not None and cluster_id is None:
                cluster_id = found.cluster_id
        self.require_one_online()
        return cluster_id

    def claim(self, node_id: int, cluster_id: str, source: random.Random) -> None:
        """Mark new ones as this broker's, and make sure that the others are.

        Args:
            node_id: the broker's id.
            cluster_id: the cluster's id.
            source: makes the ids of new directories.

        Raises:
            LogDirectoryError: one belongs to another broker or cluster, or none can be used.
        """
        for directory in self._all:
            directory_id = uuid_to_text(random_uuid(source))
            directory.claim(node_id, cluster_id, directory_id)
        self.require_one_online()

    def directory_ids(self) -> frozenset[str]:
        """The `directory.id` of each that can be read.

        Raises:
            LogDirectoryError: a `meta.properties` is damaged.
        """
        found = [directory.meta_properties() for directory in self._all]
        return frozenset(each.directory_id for each in found if each and each.directory_id)

    def store_references(self) -> list[StoreReference]:
        """What those in use say of the metadata store that knows their logs."""
        references = []
        for directory in self.online:
            try:
                reference = read_store_reference(self._files, directory.path)
            except OSError as error:
                self.note_failure(directory.path, error)
                continue
            if reference is not None:
                references.append(reference)
        return references

    def refer_to_store(self, reference: StoreReference) -> None:
        """Note in all that are in use which metadata store knows their logs."""
        for directory in self.online:
            try:
                write_store_reference(self._files, directory.path, reference)
            except OSError as error:
                if is_disk_failure(error):
                    self.note_failure(directory.path, error)
                else:
                    logger.warning(
                        "cannot write to the log directory %s: %s", directory.path, error
                    )

    def note_failure(self, path: str, error: OSError) -> None:
        """Take note that a disk fails; may be called by any thread.

        Args:
            path: of a directory or of anything in it.
            error: what the operating system said.
        """
        self._failures.append((path, error))

    @property
    def has_failures(self) -> bool:
        """Whether `take_failures` has something to tell."""
        return bool(self._failures)

    @property
    def has_trouble(self) -> bool:
        """Whether one is offline or about to be."""
        return self.has_offline or self.has_failures

    def take_failures(self) -> list[tuple[LogDirectory, str]]:
        """The directories whose disks have failed since the last call, and why."""
        failed: dict[LogDirectory, str] = {}
        while self._failures:
            path, error = self._failures.popleft()
            holders = [directory for directory in self._all if directory.holds(path)]
            innermost = max(holders, key=lambda each: len(each.path), default=None)
            if innermost is not None and innermost.is_online:
                failed.setdefault(innermost, str(error))
        return list(failed.items())

    def release(self) -> None:
        """Let other processes have them."""
        for directory in self._all:
            directory.release()
            directory.logs.clear()
            directory.futures.clear()
