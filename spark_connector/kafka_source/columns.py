"""The columns of a topic's table, in Spark's names and types and in Arrow's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import SparkConnectorError

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = {
    "key": "BINARY",
    "value": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestampType": "INT",
}
"""Those of Spark's own source, in its order."""

HEADERS = {"headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>"}

MICROSECONDS = 1000

TIMESTAMP_MS_MAX = (2**63 - 1) // MICROSECONDS
"""Spark counts microseconds; a record may be of any time in milliseconds, and stays a row."""


def ddl_of(columns: dict[str, str]) -> str:
    """A schema as Spark's SQL writes it."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def require_columns(requested: Any, known: dict[str, str]) -> list[str]:
    """The names of a reader's columns: all that are known, or those of the user's own schema.

    Args:
        requested: the schema, a StructType.
        known: the columns there are, by name, with their types in SQL.

    Raises:
        SparkConnectorError: the schema has a column that there is not, or of another type.
    """
    for field in requested.fields:
        kind = known.get(field.name)
        if kind is None:
            raise SparkConnectorError(
                f"the schema has a column {field.name!r}, but there are only {', '.join(known)}"
            )
        if _plain(field.dataType.simpleString()) != _plain(kind):
            raise SparkConnectorError(
                f"the schema's column {field.name!r} must be {kind},"
                f" not {field.dataType.simpleString().upper()}"
            )
    return [field.name for field in requested.fields]


def _plain(kind: str) -> str:
    return kind.lower().replace(" ", "")


def arrow_type(kind: str) -> pa.DataType:
    """What Spark takes over for a type of these tables without converting anything."""
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return {
        "BINARY": pa.binary(),
        "STRING": pa.string(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "BOOLEAN": pa.bool_(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
        HEADERS["headers"]: pa.list_(header),
    }[kind]


def arrow_schema(columns: dict[str, str]) -> pa.Schema:
    """The schema of record batches with these columns."""
    import pyarrow as pa

    return pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])


def repeated(value: Any, kind: str, count: int) -> pa.Array:
    """A column that says the same in each row."""
    import pyarrow as pa

    return pa.repeat(pa.scalar(value, arrow_type(kind)), count)


class MessageColumns:
    """Makes record batches of what a consumer of confluent-kafka hands out.

    Each column is one pass over the messages that runs in C but for the loop itself.

    Args:
        names: of the columns, each one of COLUMNS or HEADERS.
        topic: of all messages.
        partition: likewise.
    """

    def __init__(self, names: Sequence[str], topic: str, partition: int) -> None:
        from confluent_kafka import Message

        known = {**COLUMNS, **HEADERS}
        self._message = Message
        self._topic_name = topic
        self._number = partition
        self._schema = arrow_schema({name: known[name] for name in names})
        self._makers: list[Callable[[Sequence[Any], Any], pa.Array]] = [
            getattr(self, f"_{name.lower()}") for name in names
        ]
        self._stamps: list[tuple[int, int]] = []
        """Of the batch in hand: two columns are made of them."""
        self._has_stamps = bool({"timestamp", "timestampType"} & set(names))
        self._has_values = "value" in names

    def batch(self, messages: Sequence[Any]) -> pa.RecordBatch:
        """A batch with a row of each message."""
        import pyarrow as pa

        if self._has_stamps:
            self._stamps = list(map(self._message.timestamp, messages))
        arrays = [
            make(messages, field.type)
            for make, field in zip(self._makers, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def size(self, batch: pa.RecordBatch, messages: Sequence[Any]) -> int:
        """About how many bytes the messages of a batch take, whichever columns there are."""
        return int(batch.nbytes) + (0 if self._has_values else sum(map(len, messages)))

    def _key(self, messages: Sequence[Any], kind: Any) -> pa.Array:
        import pyarrow as pa

        return pa.array(list(map(self._message.key, messages)), kind)

    def _value(self, messages: Sequence[Any], kind: Any) -> pa.Array:
        import pyarrow as pa

        return pa.array(list(map(self._message.value, messages)), kind)

    def _topic(self, messages: Sequence[Any], kind: Any) -> pa.Array:
        return repeated(self._topic_name, "STRING", len(messages))

    def _partition(self, messages: Sequence[Any], kind: Any) -> pa.Array:
        return repeated(self._number, "INT", len(messages))

    def _offset(self, messages: Sequence[Any], kind: Any) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        first, last = messages[0].offset(), messages[-1].offset()
        if last - first + 1 == len(messages):  # offsets rise, so there is no gap
            return pa.array(np.arange(first, last + 1))
        return pa.array(list(map(self._message.offset, messages)), kind)

    def _timestamp(self, messages: Sequence[Any], kind: Any) -> pa.Array:
        import numpy as np
        import pyarrow as pa

        times = np.array([ms for _, ms in self._stamps], np.int64)
        return pa.array(np.minimum(times, TIMESTAMP_MS_MAX) * MICROSECONDS).cast(kind)

    def _timestamptype(self, messages: Sequence[Any], kind: Any) -> pa.Array:
        """Java's numbers: -1 for none, 0 of the producer, 1 of the broker; librdkafka's are one
        more each."""
        import pyarrow as pa

        numbers = {number for number, _ in self._stamps}
        if len(numbers) == 1:
            return repeated(numbers.pop() - 1, "INT", len(messages))
        return pa.array([number - 1 for number, _ in self._stamps], kind)

    def _headers(self, messages: Sequence[Any], kind: Any) -> pa.Array:
        """Null of a message without any, as Spark has it."""
        import pyarrow as pa

        return pa.array([each or None for each in map(self._message.headers, messages)], kind)
