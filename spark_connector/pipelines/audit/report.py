"""Settings of an audit, and its findings."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...errors import SparkConnectorError
from ..archive import ValueSettings
from ..record_fields import require_field
from ..topic_source import TopicSource
from .expectations import Expectation
from .history import HistorySettings
from .results import ExpectationResult, worst_severity

SCOPES = ("topic", "partition")
PARTITIONERS = ("any", "murmur2", "crc32", "none")
DECODERS = ("none", "utf8", "json")

SAMPLES_MAX = 10
"""Of each kind of fault so many are named; all are counted."""


class AuditSettings(NamedTuple):
    """What is looked at, and what counts as a fault."""

    source: TopicSource
    sequence: str | None = None
    """The part of a record that numbers it: `header:NAME` or `field:NAME`."""
    scope: str = "topic"
    """Within what the numbers run: `topic`, `partition`, or a part of a record such as
    `header:producer` or `key`."""
    first_number: int | None = None
    """What each sequence begins with; without it, whatever is least."""
    last_number: int | None = None
    """What each sequence ends with; without it, whatever is greatest."""
    partitioner: str = "any"
    """`any`: all records of a key are in one partition; `murmur2`: in that of Java's clients;
    `crc32`: in that of librdkafka's; `none`: do not look."""
    decode: str = "none"
    """What a value has to be: `json`, `utf8`, or anything."""
    avro_schema: str | None = None
    """What a value has to be, in Avro's JSON; with a registry's header or without."""
    sent_at: str | None = None
    """The part of a record with the time it was sent, in ms since the epoch: latency is the
    record's timestamp less that."""
    future_ms: int = 60_000
    """A timestamp so much later than now is a fault."""
    explain_gaps: bool = True
    """Whether the batches around missing offsets are looked at."""
    values: ValueSettings | None = None
    """How values become columns, of which something is expected: `decoded.NAME` and the like. What
    does not decode is a fault."""
    expectations: tuple[Expectation, ...] = ()
    """See `read_expectations`."""
    history: HistorySettings | None = None
    """Where the runs before are, and this one is added."""

    def check(self) -> AuditSettings:
        """The settings, if they make sense.

        Raises:
            SparkConnectorError: they do not; the sentence names the one.
        """
        for name in (self.sequence, self.sent_at):
            if name is not None:
                require_field(name)
        if self.scope not in SCOPES:
            require_field(self.scope)
        if self.partitioner not in PARTITIONERS:
            raise SparkConnectorError(
                f"there is no partitioner {self.partitioner!r}; it is any, murmur2, crc32 or none"
            )
        if self.decode not in DECODERS:
            raise SparkConnectorError(
                f"there is no decoder {self.decode!r}; it is none, utf8 or json"
            )
        if self.avro_schema is not None and self.values is not None:
            raise SparkConnectorError(
                "there are two schemas of the values; give one of them, or a registry"
            )
        if self.history is not None:
            self.history.check()
            if not self.expectations:
                raise SparkConnectorError("a history is of expectations, and there are none")
        for each in self.expectations:
            if each.needs_history and self.history is None:
                raise SparkConnectorError(
                    f"expectation {each.name!r} compares with the run before: name a history"
                )
        return self


class AuditFault(NamedTuple):
    """Something that must not be."""

    kind: str
    """`lost`, `duplicated`, `swapped`, `gap`, `key moved`, `future`, `poison`."""
    topic: str
    partition: int | None
    """None where it is not of one partition."""
    occurrences: int
    samples: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """One line about it."""
        where = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        meaning = _MEANINGS[self.kind]
        what = meaning.one if self.occurrences == 1 else meaning.many
        return f"{where}: {self.occurrences:,} {what}"


class _Meaning(NamedTuple):
    one: str
    many: str


_MEANINGS = {
    "lost": _Meaning("number of the sequence is missing", "numbers of the sequence are missing"),
    "duplicated": _Meaning("record is there again", "records are there again"),
    "swapped": _Meaning("number comes after a greater one", "numbers come after a greater one"),
    "gap": _Meaning(
        "offset is missing that no transaction or compaction explains",
        "offsets are missing that no transaction or compaction explains",
    ),
    "key moved": _Meaning("key is in a wrong partition", "keys are in wrong partitions"),
    "future": _Meaning("timestamp is in the future", "timestamps are in the future"),
    "poison": _Meaning("value does not decode", "values do not decode"),
}
FAULTS = tuple(_MEANINGS)


class PartitionAudit(NamedTuple):
    """One partition."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    records: int
    missing_offsets: int
    """Offsets between start and end without a record."""
    explained_offsets: int | None
    """Of those, how many are markers, aborted or compacted; None where nobody looked."""
    bytes: int
    """Of keys and values."""
    tombstones: int
    null_keys: int
    keys: int
    """Different ones, about."""
    first_ms: int | None
    """The earliest timestamp, ms since the epoch."""
    last_ms: int | None
    backwards: int
    """Records with an earlier timestamp than the one before them."""
    backwards_ms_max: int
    sizes: tuple[int, int, int, int]
    """Bytes of key and value: half, 95 %, 99 % and all have no more."""
    latencies_ms: tuple[int, int, int, int] | None
    unnumbered: int
    """Records without a number, where a sequence is named."""


class Bar(NamedTuple):
    """One bar of a plot."""

    label: str
    height: float


class Plot(NamedTuple):
    """A row of bars."""

    title: str
    unit: str
    bars: tuple[Bar, ...]


class AuditReport(NamedTuple):
    """All that was found."""

    run_id: str
    """A UUID; in the history, too."""
    cluster: str
    at_ms: int
    seconds: float
    partitions: tuple[PartitionAudit, ...]
    faults: tuple[AuditFault, ...]
    notes: tuple[str, ...]
    plots: tuple[Plot, ...]
    results: tuple[ExpectationResult, ...] = ()
    """Of each expectation in each topic."""

    @property
    def is_clean(self) -> bool:
        """Whether there is no fault, and all is as expected."""
        return not self.faults and self.worst_severity is None

    @property
    def worst_severity(self) -> str | None:
        """Of the expectations that failed; None where none did."""
        return worst_severity(self.results)

    @property
    def records(self) -> int:
        """Of all partitions."""
        return sum(each.records for each in self.partitions)

    def as_json(self) -> dict[str, Any]:
        """The report for other programs."""
        return {
            "run_id": self.run_id,
            "cluster": self.cluster,
            "at_ms": self.at_ms,
            "seconds": round(self.seconds, 3),
            "clean": self.is_clean,
            "records": self.records,
            "partitions": [each._asdict() for each in self.partitions],
            "faults": [each._asdict() for each in self.faults],
            "notes": list(self.notes),
            "expectations": [
                each._asdict() | {"trend": [point._asdict() for point in each.trend]}
                for each in self.results
            ],
        }
