"""Which replicas lie in some data folders, and between which offsets they have to be the same."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....common.topic_partition import TopicPartition
from ....storage.checkpoint.checkpoint_file import CheckpointError, read_offsets
from ....storage.checkpoint.partition_metadata import read_topic_id
from ....storage.errors import LogDirectoryError
from ....storage.file_names import CLEANER_OFFSETS_FILE
from ....storage.io.read_only_files import READ_ONLY_FILES
from ...errors import SparkConnectorError
from ...log_source.folders import PartitionLog, partition_logs
from ...log_source.options import log_options


class ReplicaLog(NamedTuple):
    """A partition's log in one folder."""

    folder: str
    """As it was given."""
    start: int
    """No record before it is there any more."""
    empty_end: int
    """Where the log ends if there is no batch in it."""
    high_watermark: int | None
    """As written down beside the log."""
    cleaned_to: int
    """Compaction may have removed records before it."""
    topic_id: bytes | None


class ReplicatedPartition(NamedTuple):
    """All replicas of a partition that were found."""

    topic: str
    partition: int
    replicas: tuple[ReplicaLog, ...]

    @property
    def begin(self) -> int:
        """From here on every replica has what there is; before it retention may have been."""
        return max(each.start for each in self.replicas)

    @property
    def high_watermark(self) -> int | None:
        """The greatest that any replica has written down: others heard of it later, or not."""
        known = [each.high_watermark for each in self.replicas if each.high_watermark is not None]
        return max(known, default=None)

    @property
    def cleaned_to(self) -> int:
        """Before it, compaction may have removed what another replica still has."""
        return max(each.cleaned_to for each in self.replicas)


def replicated_partitions(
    folders: Sequence[str], topics: Iterable[str]
) -> list[ReplicatedPartition]:
    """The partitions in some folders, by topic and number.

    Args:
        folders: data folders, or partitions' folders; each is one replica's place.
        topics: only these; all, if there are none.

    Raises:
        SparkConnectorError: a folder, or what lies beside its logs, cannot be read.
    """
    options = {"paths": _as_json(folders)}
    if names := ",".join(topics):
        options["subscribe"] = names
    found: dict[tuple[str, int], list[ReplicaLog]] = {}
    for log in partition_logs(log_options(options)):
        found.setdefault((log.topic, log.partition), []).append(_replica(log))
    return [ReplicatedPartition(*where, tuple(found[where])) for where in sorted(found)]


def _as_json(folders: Sequence[str]) -> str:
    import json

    return json.dumps(list(folders))


def _replica(log: PartitionLog) -> ReplicaLog:
    beside = os.path.join(os.path.dirname(log.path), CLEANER_OFFSETS_FILE)
    try:
        cleaned = read_offsets(READ_ONLY_FILES, beside)
        topic_id = read_topic_id(READ_ONLY_FILES, log.path)
    except (CheckpointError, LogDirectoryError, OSError) as error:
        raise SparkConnectorError(f"{log.path} cannot be read: {error}") from None
    last = log.segments[-1].base_offset if log.segments else 0
    return ReplicaLog(
        log.folder,
        log.log_start_offset,
        max(last, log.log_start_offset),
        log.high_watermark,
        cleaned.get(TopicPartition(log.topic, log.partition), 0),
        topic_id,
    )
