"""`partition.metadata`: the topic id a partition's folder belongs to (KIP-516)."""

from __future__ import annotations

import os.path

from ...runtime.rng import uuid_from_text, uuid_to_text
from ..errors import LogDirectoryError
from ..file_names import PARTITION_METADATA_FILE
from ..io.files import Files

PARTITION_METADATA_VERSION = 0


def read_topic_id(files: Files, directory: str) -> bytes | None:
    """The topic id noted in a folder, or None where none is.

    Raises:
        LogDirectoryError: the file says something else.
    """
    path = os.path.join(directory, PARTITION_METADATA_FILE)
    try:
        text = files.read_bytes(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    fields = dict(line.partition(": ")[::2] for line in text.splitlines())
    if fields.get("version") != str(PARTITION_METADATA_VERSION):
        raise LogDirectoryError(
            f"{path} has version {fields.get('version')!r}, not {PARTITION_METADATA_VERSION}:"
            " it is damaged"
        )
    topic_id = fields.get("topic_id", "")
    try:
        return uuid_from_text(topic_id)
    except ValueError:
        raise LogDirectoryError(f"{path} has the topic id {topic_id!r}: it is damaged") from None


def write_topic_id(
    files: Files, directory: str, topic_id: bytes, *, was_flushed: bool = False
) -> None:
    """Note the topic id of a folder; it is synced with the log's first flush.

    Args:
        directory: the partition's folder.
        topic_id: of its topic.
        was_flushed: whether that first flush has been, so that this waits for the disk.
    """
    text = f"version: {PARTITION_METADATA_VERSION}\ntopic_id: {uuid_to_text(topic_id)}"
    path = os.path.join(directory, PARTITION_METADATA_FILE)
    files.write_atomically(path, text.encode("ascii"), sync=was_flushed)


def sync_topic_id(files: Files, directory: str) -> None:
    """Wait until what `write_topic_id` wrote is on the disk, if it did."""
    path = os.path.join(directory, PARTITION_METADATA_FILE)
    if files.exists(path):
        files.open(path).sync()
