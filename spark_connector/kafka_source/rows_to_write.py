"""Which columns a frame must have to be written to topics (Spark's KafkaWriter)."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import SparkConnectorError
from ..option_values import Options

TEXT_OR_BYTES = ("string", "binary")

TYPES = {
    "topic": ("string",),
    "key": TEXT_OR_BYTES,
    "value": TEXT_OR_BYTES,
    "headers": ("array<struct<key:string,value:binary>>",),
    "partition": ("int",),
}
"""The columns that mean something, and the types that each may have."""


class RowLayout(NamedTuple):
    """Where in a row the parts of a record are; None where the frame has no such column."""

    topic: str | None
    """The option, which wins over the column."""
    topic_at: int | None
    key_at: int | None
    value_at: int
    headers_at: int | None
    partition_at: int | None


def row_layout(options: Options, schema: Any) -> RowLayout:
    """The layout of a frame's rows.

    Args:
        options: of the writer.
        schema: the frame's, a StructType.

    Raises:
        SparkConnectorError: there is no value, no topic, or a column of the wrong type.
    """
    topic = options.get("topic")
    topic = topic.strip() if topic is not None else None
    if topic == "":
        raise SparkConnectorError("option 'topic' is empty")
    places = {}
    for place, field in enumerate(schema.fields):
        allowed = TYPES.get(field.name.lower())
        if allowed is None:
            continue
        kind = field.dataType.simpleString()
        if kind not in allowed:
            raise SparkConnectorError(
                f"the column {field.name!r} must be {' or '.join(allowed)}, not {kind}"
            )
        places[field.name.lower()] = place
    if "value" not in places:
        raise SparkConnectorError("the frame needs a column 'value' to be written to a topic")
    if topic is None and "topic" not in places:
        raise SparkConnectorError(
            "give option 'topic', or a column 'topic' that names each record's"
        )
    return RowLayout(
        topic=topic,
        topic_at=None if topic is not None else places["topic"],
        key_at=places.get("key"),
        value_at=places["value"],
        headers_at=places.get("headers"),
        partition_at=places.get("partition"),
    )
