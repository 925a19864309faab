"""A partition of a topic, and the name of the folder that holds it."""

from __future__ import annotations

from .named_tuple import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic; sorts by topic, then by number."""

    topic: str
    partition: int

    @property
    def folder_name(self) -> str:
        """The folder in a log directory: topic, dash, number."""
        return f"{self.topic}-{self.partition}"

    @classmethod
    def from_folder_name(cls, name: str) -> TopicPartition | None:
        """The partition a folder belongs to, or None where it is not a partition's."""
        topic, _, number = name.rpartition("-")
        if not topic or not number.isascii() or not number.isdigit():
            return None
        found = cls(topic, int(number))
        return found if found.folder_name == name else None

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
