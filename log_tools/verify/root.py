"""What stands at the root of a data folder: whose it is, how it was left, its checkpoints."""

from __future__ import annotations

import json
import os.path
from collections.abc import Iterator
from typing import NamedTuple

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...storage.checkpoint.meta_properties import MetaProperties, read_meta_properties
from ...storage.checkpoint.partition_metadata import read_topic_id
from ...storage.errors import LogDirectoryError
from ...storage.file_names import META_PROPERTIES_FILE, PARTITION_METADATA_FILE
from ...storage.io.files import Files
from ...storage.log_manager.log_directory import KRAFT_TOPIC
from .finding import Finding, FindingKind, unusable
from .folders import PartitionFolder

Offsets = dict[TopicPartition, int]


class Ends(NamedTuple):
    """Where a log was found to begin and end."""

    start_offset: int
    end_offset: int


class OwnerCheck:
    """All folders of a command line belong to one broker."""

    def __init__(self) -> None:
        self._first: tuple[MetaProperties, str] | None = None

    def root(self, files: Files, root: str) -> Iterator[Finding]:
        """Look at the `meta.properties` of another folder."""
        path = os.path.join(root, META_PROPERTIES_FILE)
        try:
            found = read_meta_properties(files, root)
        except (LogDirectoryError, KafkaError, OSError) as error:
            yield unusable(FindingKind.META_PROPERTIES, path, error)
            return
        if found is None:
            message = "it is missing: no broker has used this folder, or the file is lost"
            yield Finding(FindingKind.NOTE, path, message)
            return
        if self._first is None:
            self._first = found, path
        other, where = self._first
        if (found.cluster_id, found.node_id) != (other.cluster_id, other.node_id):
            yield Finding(
                FindingKind.META_PROPERTIES,
                path,
                f"the folder is of broker {found.node_id} in cluster {found.cluster_id}, but "
                f"{where} says broker {other.node_id} in cluster {other.cluster_id}",
            )


class IdentityCheck:
    """Each partition is in one folder, and those of a topic have one topic id.

    Args:
        files: the file system.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._seen: dict[TopicPartition, str] = {}
        self._topic_ids: dict[str, tuple[bytes, str]] = {}

    def partition(self, folder: PartitionFolder) -> Iterator[Finding]:
        """Look at the `partition.metadata` of another folder."""
        topic = folder.topic_partition.topic
        other = self._seen.setdefault(folder.topic_partition, folder.path)
        if other != folder.path:
            message = f"{folder.topic_partition} lies in {other} too: no broker starts with both"
            yield Finding(FindingKind.DIRECTORY, folder.path, message)
        if topic == KRAFT_TOPIC:
            return
        path = os.path.join(folder.path, PARTITION_METADATA_FILE)
        if not self._files.exists(path):
            return
        try:
            topic_id = read_topic_id(self._files, folder.path)
        except (LogDirectoryError, KafkaError, OSError, ValueError) as error:
            yield unusable(FindingKind.PARTITION_METADATA, path, error)
            return
        if topic_id is None:
            message = "it tells no topic id: it should have the lines 'version: 0' and 'topic_id: '"
            yield Finding(FindingKind.PARTITION_METADATA, path, message)
            return
        known, where = self._topic_ids.setdefault(topic, (topic_id, path))
        if known != topic_id:
            message = f"its topic id is not the one in {where}, of the same topic"
            yield Finding(FindingKind.PARTITION_METADATA, path, message)


def check_clean_shutdown(files: Files, path: str) -> Iterator[Finding]:
    """Whether the mark of a clean shutdown is there, and is what a broker writes."""
    if not files.exists(path):
        message = "it is missing: the last broker was not stopped properly; the next start recovers"
        yield Finding(FindingKind.NOTE, path, message)
        return
    try:
        fields = json.loads(files.read_bytes(path))
    except OSError as error:
        yield unusable(FindingKind.CLEAN_SHUTDOWN, path, error)
        return
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or fields.get("version") != 0:
        message = 'the mark of a clean shutdown is not JSON such as {"version":0,"brokerEpoch":-1}'
        yield Finding(FindingKind.CLEAN_SHUTDOWN, path, message)


def check_offsets(
    path: str, offsets: Offsets, ends: dict[TopicPartition, Ends], *, may_be_behind: bool
) -> Iterator[Finding]:
    """Whether a checkpoint's offsets lie in the logs that they are of.

    Args:
        path: of the checkpoint.
        offsets: what it says.
        ends: where each log was found to begin and end.
        may_be_behind: whether logs may have grown since.
    """
    for topic_partition, offset in offsets.items():
        found = ends.get(topic_partition)
        if found is None:
            message = f"{topic_partition} has no folder here, or none that could be read"
            yield Finding(FindingKind.NOTE, path, message)
        elif offset < 0 or (offset > found.end_offset and not may_be_behind):
            yield Finding(
                FindingKind.CHECKPOINT,
                path,
                f"it has offset {offset} of {topic_partition}, whose log ends at "
                f"{found.end_offset}",
                offset,
            )
