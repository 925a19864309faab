"""Numbers that a broker gave, and those that another gave in their place: epochs, generations.

An id means the same wherever it stands; `IdMapping` knows those. Numbers that count something
mean it of a group, a producer or a partition only. So they are paired by what they belong to, as
answers to the same request tell them, and put into what is sent later. records carry some, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...common.errors import KafkaError
from ...common.sentinels import ZERO_UUID
from ...protocol.codec.message import Message
from ...protocol.codec.types import Array, Struct, StructType, records
from ...protocol.records import iter_batches
from ...protocol.records.batch import BATCH_HEADER, RecordBatch
from ...protocol.records.builder import write_crc
from ...protocol.records.validation import has_valid_crc
from ..comparison.normalisation import PRODUCER_ID, TOPIC_ID, IdMapping

GENERATION = "generation"
PRODUCER_EPOCH = "producer epoch"
LEADER_EPOCH = "leader epoch"
TELEMETRY = "telemetry"

NUMBER_FIELDS = {
    "generation_id": GENERATION,
    "generation_id_or_member_epoch": GENERATION,
    "member_epoch": GENERATION,
    "group_epoch": GENERATION,
    "assignment_epoch": GENERATION,
    "producer_epoch": PRODUCER_EPOCH,
    "v3_and_below_producer_epoch": PRODUCER_EPOCH,
    "leader_epoch": LEADER_EPOCH,
    "current_leader_epoch": LEADER_EPOCH,
    "last_fetched_epoch": LEADER_EPOCH,
    "committed_leader_epoch": LEADER_EPOCH,
    "client_instance_id": TELEMETRY,
    "subscription_id": TELEMETRY,
}
"""What of a message is such a number."""

PARTITION_FIELDS = ("partition_index", "partition", "index")
TOPIC_FIELDS = ("topic", "topic_name", "name")
PRODUCER_FIELDS = ("producer_id", "v3_and_below_producer_id")

Key = tuple[str, Any]
"""The kind of a number, and what it belongs to."""


class _Owner(NamedTuple):
    """What the numbers at some place of a message belong to, in the ids of the other broker."""

    group: str = ""
    producer_id: int = -1
    topic: Any = None
    partition: int = -1

    def key(self, kind: str) -> Key:
        """The key of a number."""
        if kind == GENERATION:
            return kind, self.group
        if kind == PRODUCER_EPOCH:
            return kind, self.producer_id
        return kind, (self.topic, self.partition) if kind == LEADER_EPOCH else None


class _Place(NamedTuple):
    """Where a message holds a number, or records."""

    holder: Struct
    field: str
    owner: _Owner
    kind: str | None
    """None: records."""


class AssignedNumbers:
    """Which number of the one broker stands for which of the other.

    Args:
        ids: the ids of the same conversation.
    """

    def __init__(self, ids: IdMapping) -> None:
        self._ids = ids
        self._actual: dict[tuple[Key, Any], Any] = {}
        self._expected: dict[tuple[Key, Any], Any] = {}
        self._names: dict[bytes, str] = {}

    def learn(self, expected: Message, actual: Message, group: str) -> None:
        """Pair the numbers of two answers to the same request.

        Args:
            expected: the recorded answer.
            actual: the other broker's.
            group: which the request was about; empty for none.
        """
        before, after = self._numbers(expected, group, True), self._numbers(actual, group, False)
        for key, values in before.items():
            for old, new in zip(values, after.get(key, ()), strict=False):
                if (key, old) not in self._actual and (key, new) not in self._expected:
                    self._actual[key, old] = new
                    self._expected[key, new] = old

    def translate(self, message: Message, group: str, *, with_ids: bool) -> None:
        """Put the other broker's numbers into a message, its records too.

        Args:
            message: of the recorded conversation; changed in place.
            group: which it is about; empty for none.
            with_ids: whether producer ids in records are replaced as well.
        """
        for place in self._places(type(message), message, _Owner(group), True):
            held = getattr(place.holder, place.field)
            if place.kind is not None:
                number = self._actual.get((place.owner.key(place.kind), held), held)
                setattr(place.holder, place.field, number)
            elif held is not None:
                setattr(place.holder, place.field, self._records(held, place.owner, with_ids))

    def _numbers(self, message: Message, group: str, is_recorded: bool) -> dict[Key, list[Any]]:
        found: dict[Key, list[Any]] = defaultdict(list)
        for place in self._places(type(message), message, _Owner(group), is_recorded):
            held = getattr(place.holder, place.field)
            if place.kind is not None:
                if not _is_nothing(place.kind, held):
                    found[place.owner.key(place.kind)].append(held)
                continue
            for batch in _batches(held):
                owner = place.owner._replace(producer_id=self._id(batch.producer_id, is_recorded))
                found[owner.key(LEADER_EPOCH)].append(batch.partition_leader_epoch)
                if batch.has_producer_id:
                    found[owner.key(PRODUCER_EPOCH)].append(batch.producer_epoch)
        return found

    def _places(
        self, struct: StructType, value: Struct, owner: _Owner, is_recorded: bool
    ) -> Iterator[_Place]:
        owner = self._owner_in(value, owner, is_recorded)
        for field in struct.fields:
            kind = field.type.element if isinstance(field.type, Array) else field.type
            if isinstance(kind, StructType):
                held = getattr(value, field.name)
                for each in held if isinstance(held, list) else [held]:
                    if each is not None:
                        yield from self._places(kind, each, owner, is_recorded)
            elif kind is records:
                yield _Place(value, field.name, owner, None)
            elif field.name in NUMBER_FIELDS and kind is field.type:
                yield _Place(value, field.name, owner, NUMBER_FIELDS[field.name])

    def _owner_in(self, value: Struct, owner: _Owner, is_recorded: bool) -> _Owner:
        group = getattr(value, "group_id", None)
        if group:
            owner = owner._replace(group=group)
        for name in PRODUCER_FIELDS:
            producer_id = getattr(value, name, -1)
            if producer_id > -1:
                owner = owner._replace(producer_id=self._id(producer_id, is_recorded))
        topic = self._topic_in(value, is_recorded)
        if topic is not None:
            owner = owner._replace(topic=topic)
        for name in PARTITION_FIELDS:
            partition = getattr(value, name, None)
            if isinstance(partition, int):
                owner = owner._replace(partition=partition)
        return owner

    def _topic_in(self, value: Struct, is_recorded: bool) -> Any:
        """The name of the topic that a struct is about, or its id; None if it is about none."""
        topic_id = getattr(value, "topic_id", None) or ZERO_UUID
        if is_recorded:
            topic_id = self._ids.actual(TOPIC_ID, topic_id)
        for name in TOPIC_FIELDS:
            text = getattr(value, name, None)
            if isinstance(text, str) and text:
                if topic_id != ZERO_UUID:
                    self._names[topic_id] = text
                return text
        return None if topic_id == ZERO_UUID else self._names.get(topic_id, topic_id)

    def _id(self, producer_id: int, is_recorded: bool) -> int:
        actual: int = self._ids.actual(PRODUCER_ID, producer_id) if is_recorded else producer_id
        return actual

    def _records(self, records: Any, owner: _Owner, with_ids: bool) -> Any:
        """The same records from the producers, and in the epochs, that the other broker knows."""
        changed: bytearray | None = None
        for batch in _batches(records):
            producer_id = self._id(batch.producer_id, True)
            owner = owner._replace(producer_id=producer_id)
            key, leader_key = owner.key(PRODUCER_EPOCH), owner.key(LEADER_EPOCH)
            producer_epoch = self._actual.get((key, batch.producer_epoch), batch.producer_epoch)
            leader_epoch = batch.partition_leader_epoch
            leader_epoch = self._actual.get((leader_key, leader_epoch), leader_epoch)
            new_id = producer_id if with_ids else batch.producer_id
            new = (leader_epoch, new_id, producer_epoch)
            if new == (batch.partition_leader_epoch, batch.producer_id, batch.producer_epoch):
                continue
            if changed is None:
                changed = bytearray(records)
            _patch(changed, batch, *new)
        return records if changed is None else bytes(changed)


def _patch(
    records: bytearray, batch: RecordBatch, leader_epoch: int, producer_id: int, epoch: int
) -> None:
    """Write them into a batch's header, and the checksum too if it was right before."""
    was_valid = has_valid_crc(batch)
    fields = list(BATCH_HEADER.unpack_from(records, batch.position))
    fields[2], fields[9], fields[10] = leader_epoch, producer_id, epoch
    BATCH_HEADER.pack_into(records, batch.position, *fields)
    if was_valid:
        with memoryview(records) as view:
            write_crc(view[batch.position : batch.position + batch.size_in_bytes])


def _batches(records: Any) -> Iterator[RecordBatch]:
    """The batches as far as they can be read."""
    if records is None:
        return
    try:
        yield from iter_batches(records)
    except KafkaError:
        return


def _is_nothing(kind: str, value: Any) -> bool:
    """Whether a number says that there is none: those of groups begin at 1."""
    if isinstance(value, bytes):
        return value == ZERO_UUID
    return bool(value <= 0 if kind == GENERATION else value < 0)
