"""Settings of a comparison of replicas, and its findings."""

from __future__ import annotations

from typing import Any, NamedTuple

SAMPLES_MAX = 10
"""Of each kind of difference so many are named; all are counted."""


class VerifyReplicasSettings(NamedTuple):
    """What is compared."""

    folders: tuple[str, ...]
    """The data folders of a cluster's brokers, or copies of them."""
    topics: tuple[str, ...] = ()
    """Only these; without any, all."""
    replicas: int | None = None
    """So many every partition must have; None: as many as there are."""
    deep: bool = False
    """Compare every record, also those of batches with equal headers and checksums."""
    live: bool = False
    """Brokers may be running: their folders are not locked, and what is being written can look
    like a difference."""


class ReplicaDifference(NamedTuple):
    """Something in which replicas of a partition are not the same."""

    kind: str
    """`absent`, `other topic`, `short`, `damaged`, `missing` or `different`."""
    topic: str
    partition: int
    occurrences: int
    samples: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """One line about it."""
        one, many = _MEANINGS[self.kind]
        what = one if self.occurrences == 1 else many
        return f"{self.topic}-{self.partition}: {self.occurrences:,} {what}"


_MEANINGS = {
    "absent": ("replica is not in any of the folders", "replicas are not in any of the folders"),
    "other topic": (
        "replica is of another topic of that name",
        "replicas are of another topic of that name",
    ),
    "short": (
        "replica ends below the high watermark",
        "replicas end below the high watermark",
    ),
    "damaged": ("batch has a wrong checksum", "batches have wrong checksums"),
    "missing": ("record is not in every replica", "records are not in every replica"),
    "different": ("record is not the same in all", "records are not the same in all"),
}
KINDS = tuple(_MEANINGS)


class ComparedPartition(NamedTuple):
    """One partition."""

    topic: str
    partition: int
    folders: tuple[str, ...]
    """Where its replicas lie."""
    begin: int
    """The first offset that was compared."""
    until: int
    """The one behind the last: the high watermark."""
    ends: tuple[int, ...]
    """Where each replica ends."""

    @property
    def offsets(self) -> int:
        """So many were compared."""
        return max(0, self.until - self.begin)


class ReplicaReport(NamedTuple):
    """All that was found."""

    partitions: tuple[ComparedPartition, ...]
    differences: tuple[ReplicaDifference, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether all replicas are the same."""
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        """The report for other programs."""
        return {
            "clean": self.is_clean,
            "seconds": round(self.seconds, 3),
            "partitions": [each._asdict() for each in self.partitions],
            "differences": [each._asdict() for each in self.differences],
            "notes": list(self.notes),
        }
