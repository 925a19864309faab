"""Holds what clients saw of replicated partitions, and says what of it broke a promise.

Clients tell what they sent, what was acknowledged, what they read and where partitions were
said to begin and end; brokers' folders tell which batches each replica holds in the end. A
value is known by its `Token`: who sent it, and as which of the sender's records for that
partition. Senders are idempotent, and send to each partition in the order of their numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

CAUSES_TOLD_MAX = 5
"""Of each kind of violation so many are described in full."""


ProducerEpoch = tuple[int, int]
"""A producer id and an epoch of it."""
NO_PRODUCERS: Mapping[int, ProducerEpoch] = {}


class Token(NamedTuple):
    """A record as its sender knows it."""

    sender: str
    number: int


class Violation(NamedTuple):
    """A broken promise."""

    kind: str
    """Such as "lost"; see the methods of `ReplicationChecker`."""
    text: str


class Replica(NamedTuple):
    """What one broker holds of a partition: batches by first offset, from its log start on."""

    broker_id: int
    log_start_offset: int
    batches: Mapping[int, bytes]


class ReplicationChecker:
    """A state machine without clock or threads: told of events, asked for violations.

    Events of one reader, and of all acknowledgements of one sender, are told in their order.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """How many events of each kind there were: what was not tried cannot have failed."""
        self._violations: list[Violation] = []
        self._sent: dict[tuple[int, str], int] = defaultdict(int)
        self._acknowledged: dict[int, dict[int, Token]] = defaultdict(dict)
        self._somewhere: dict[int, list[Token]] = defaultdict(list)
        self._seen: dict[int, dict[int, Token]] = defaultdict(dict)
        self._positions: dict[tuple[str, int], int] = {}
        self._listed: dict[tuple[str, int, str], int] = {}

    # -- what happens -------------------------------------------------------------------

    def sent(self, sender: str, partition: int) -> Token:
        """A sender is about to send another record to a partition; returns its token."""
        number = self._sent[partition, sender]
        self._sent[partition, sender] = number + 1
        self.counts["sent"] += 1
        return Token(sender, number)

    def acknowledged(self, token: Token, partition: int, offset: int | None) -> None:
        """A sender was told that its record is safe at this offset; None: it is not told where.

        librdkafka infers that when a later batch is acknowledged whose sequence follows on.
        "lost": another record was acknowledged at that offset before.
        """
        self.counts["acknowledged"] += 1
        if offset is None:
            self.counts["acknowledged without offset"] += 1
            self._somewhere[partition].append(token)
            return
        former = self._acknowledged[partition].setdefault(offset, token)
        if former != token:
            self._break("lost", f"{former} and {token} both acknowledged at {partition}:{offset}")

    def refused(self, token: Token, partition: int, reason: str) -> None:
        """A sender gave a record up ("refused"): brokers come back before it may do so."""
        self._break("refused", f"{token} for partition {partition}: {reason}")

    def began_to_read(self, reader: str, partition: int, offset: int) -> None:
        """A reader goes to an offset that is to be there."""
        self._positions[reader, partition] = offset

    def read(self, reader: str, partition: int, offset: int, token: Token) -> None:
        """A reader got a record.

        "skipped": records before it were not given to the reader. "repeated": it had it.
        "changed": somebody has read another record at this offset before.
        "invented": nobody has sent it.
        """
        self.counts["read"] += 1
        expected = self._positions.get((reader, partition), offset)
        if offset != expected:
            kind = "skipped" if offset > expected else "repeated"
            self._break(kind, f"{reader} read {partition}:{offset}, {expected} was next")
        self._positions[reader, partition] = offset + 1
        self._require_sent(token, partition, offset)
        former = self._seen[partition].setdefault(offset, token)
        if former != token:
            self._break("changed", f"{partition}:{offset} was {former} and is {token}")

    def listed(self, reader: str, partition: int, which: str, offset: int) -> None:
        """A reader was told where a partition begins or ends, after its former question.

        "went back": it was told a later offset before.
        """
        self.counts["listed"] += 1
        key = reader, partition, which
        former = self._listed.get(key, offset)
        if offset < former:
            self._break("went back", f"the {which} of {partition} was {former} and is {offset}")
        self._listed[key] = offset

    def silent(self, text: str) -> None:
        """Acknowledgements did not come again in time ("silent")."""
        self._break("silent", text)

    # -- the end ------------------------------------------------------------------------

    def finish(
        self,
        partition: int,
        contents: Mapping[int, Token],
        log_start_offset: int = 0,
        producers: Mapping[int, ProducerEpoch] = NO_PRODUCERS,
    ) -> None:
        """Nobody sends any more: hold what a partition contains to what was promised.

        "lost": what was acknowledged is not at its offset, or nowhere. "vanished": the same of
        what was read. "doubled": a record is there twice; where the second was sent in another
        epoch of its producer, that is counted and no fault, for no broker can know it.
        "reordered": a sender's records are not in the order of their numbers. "invented": nobody
        has sent it.

        Args:
            partition: which one.
            contents: its records up to the high watermark, by offset.
            log_start_offset: what lies before was deleted.
            producers: in which epoch of which producer each record was sent, by offset.
        """
        self.counts["kept"] += len(contents)
        for kind, promised in (("lost", self._acknowledged), ("vanished", self._seen)):
            for offset, token in promised[partition].items():
                if offset >= log_start_offset and contents.get(offset) != token:
                    found = contents.get(offset, "nothing")
                    self._break(kind, f"{token} at {partition}:{offset}, where there is {found}")
        kept = set(contents.values())
        for token in self._somewhere[partition]:
            if token not in kept and not log_start_offset:
                self._break("lost", f"{token} is nowhere in {partition}")
        offsets: dict[Token, int] = {}
        latest: dict[str, int] = {}
        for offset, token in sorted(contents.items()):
            self._require_sent(token, partition, offset)
            former = offsets.setdefault(token, offset)
            if former != offset and producers.get(former) != producers.get(offset):
                self.counts["sent again in another epoch"] += 1
            elif former != offset:
                self._break("doubled", f"{token} in {partition} at {former} and {offset}")
            elif token.number < latest.get(token.sender, -1):
                self._break(
                    "reordered",
                    f"{token} at {partition}:{offset} follows {latest[token.sender]}",
                )
            latest[token.sender] = max(latest.get(token.sender, -1), token.number)

    def compare_replicas(
        self, partition: int, replicas: Sequence[Replica], high_watermark: int
    ) -> None:
        """Replicas hold the same bytes from the highest log start up to the high watermark.

        "diverged": they do not.
        """
        start = max(replica.log_start_offset for replica in replicas)
        first, *others = replicas
        expected = _within(first, start, high_watermark)
        self.counts["compared"] += len(expected)
        for other in others:
            actual = _within(other, start, high_watermark)
            for offset in sorted(expected.keys() | actual.keys()):
                if expected.get(offset) != actual.get(offset):
                    self._break(
                        "diverged",
                        f"{partition}:{offset} on brokers {first.broker_id} and "
                        f"{other.broker_id}: {_outline(expected.get(offset))} and "
                        f"{_outline(actual.get(offset))}",
                    )

    @property
    def violations(self) -> Sequence[Violation]:
        """All that was found so far."""
        return self._violations

    def kinds(self) -> set[str]:
        """The kinds of all that was found."""
        return {violation.kind for violation in self._violations}

    def report(self) -> str:
        """All that was found, in words."""
        return "\n".join([f"counts: {dict(self.counts)}", *self._told()])

    def _told(self) -> Iterator[str]:
        reported: Counter[str] = Counter()
        for kind, text in self._violations:
            reported[kind] += 1
            if reported[kind] <= CAUSES_TOLD_MAX:
                yield f"{kind}: {text}"
        for kind, count in reported.items():
            if count > CAUSES_TOLD_MAX:
                yield f"{kind}: {count} in all"

    def _require_sent(self, token: Token, partition: int, offset: int) -> None:
        if token.number >= self._sent.get((partition, token.sender), 0):
            self._break("invented", f"{token} at {partition}:{offset} was never sent")

    def _break(self, kind: str, text: str) -> None:
        self._violations.append(Violation(kind, text))


def _within(replica: Replica, start: int, end: int) -> dict[int, bytes]:
    """The batches that begin from `start` on and before `end`."""
    return {offset: data for offset, data in replica.batches.items() if start <= offset < end}


def _outline(batch: bytes | None) -> str:
    return "nothing" if batch is None else f"{len(batch)} bytes ({batch[:40].hex()}...)"
