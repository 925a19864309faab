"""Kafka's small text files: a version, a count, and as many lines.

`replication-offset-checkpoint`, `recovery-point-offset-checkpoint` and
`log-start-offset-checkpoint` map partitions to offsets; `leader-epoch-checkpoint` maps
epochs to offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...common.topic_partition import TopicPartition
from ..io.files import Files

CHECKPOINT_VERSION = 0


class CheckpointError(Exception):
    """A checkpoint file that is not in Kafka's format."""


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Offsets by partition; none if the file is not there.

    Raises:
        CheckpointError: the file is damaged.
    """
    offsets = {}
    for line in _read_lines(files, path):
        try:
            topic, partition, offset = line.split(" ")
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise CheckpointError(f"{path} has the line {line!r}") from None
    return offsets


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the file, and wait until it is on the disk."""
    lines = [f"{topic} {partition} {at}" for (topic, partition), at in offsets.items()]
    _write_lines(files, path, lines, sync=True)


def read_epochs(files: Files, path: str) -> list[tuple[int, int]]:
    """Epochs and their start offsets in the file's order; none if it is not there.

    Raises:
        CheckpointError: the file is damaged.
    """
    epochs = []
    for line in _read_lines(files, path):
        try:
            epoch, offset = line.split(" ")
            epochs.append((int(epoch), int(offset)))
        except ValueError:
            raise CheckpointError(f"{path} has the line {line!r}") from None
    return epochs


def write_epochs(files: Files, path: str, epochs: Iterable[tuple[int, int]]) -> None:
    """Replace the file, without waiting for the disk."""
    _write_lines(files, path, [f"{epoch} {at}" for epoch, at in epochs], sync=False)


def _read_lines(files: Files, path: str) -> list[str]:
    if not files.exists(path):
        return []
    data = files.read_bytes(path)
    if not data:
        return []  # as Kafka makes it before there is anything to say
    if not data.endswith(b"\n"):
        raise CheckpointError(f"{path} ends inside a line: a number in it may be cut")
    lines = data.decode("utf-8", "replace").splitlines()
    try:
        version, count = int(lines[0]), int(lines[1])
    except (ValueError, IndexError):
        raise CheckpointError(f"{path} does not begin with a version and a count") from None
    entries = lines[2:]
    if version != CHECKPOINT_VERSION or count != len(entries):
        raise CheckpointError(f"{path} has version {version} and {len(entries)} of {count} entries")
    return entries


def _write_lines(files: Files, path: str, lines: list[str], *, sync: bool) -> None:
    text = "\n".join([str(CHECKPOINT_VERSION), str(len(lines)), *lines]) + "\n"
    files.write_atomically(path, text.encode("utf-8"), sync=sync)
