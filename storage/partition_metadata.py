"""`partition.metadata`: the topic id a partition's folder belongs to (KIP-516)."""

from __future__ import annotations

import os.path

from ..runtime.randomness import uuid_from_text, uuid_to_text
from .files import Files

FILE_NAME = "partition.metadata"
VERSION = 0


def read_topic_id(files: Files, directory: str) -> bytes | None:
    """The topic id noted in a folder, or None where none (or half of one) is.

    Raises:
        OSError: the file cannot be read.
    """
    path = os.path.join(directory, FILE_NAME)
    if not files.exists(path):
        return None
    fields = dict(
        line.partition(": ")[::2]
        for line in files.read_bytes(path).decode("utf-8", "replace").splitlines()
    )
    if fields.get("version") != str(VERSION):
        return None
    try:
        return uuid_from_text(fields.get("topic_id", ""))
    except ValueError:
        return None


def write_topic_id(files: Files, directory: str, topic_id: bytes) -> None:
    """Note the topic id of a folder.

    Raises:
        OSError: the file cannot be written.
    """
    text = f"version: {VERSION}\ntopic_id: {uuid_to_text(topic_id)}"
    files.write_atomically(os.path.join(directory, FILE_NAME), text.encode("ascii"))
