"""Naming a part of a record: `header:NAME`, `field:NAME` of a JSON value, `key`, `value`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import SparkConnectorError

if TYPE_CHECKING:
    from pyspark.sql import Column


def require_field(name: str) -> str:
    """The name, if it is one.

    Raises:
        SparkConnectorError: it is none.
    """
    kind, _, what = name.partition(":")
    if name in ("key", "value") or (kind in ("header", "field") and what):
        return name
    raise SparkConnectorError(
        f"{name!r} names no part of a record; write header:NAME, field:NAME (of a JSON value),"
        " key or value"
    )


def field_text(name: str) -> Column:
    """That part of a record as text; null where the record has none.

    Of several headers of a name the last counts, as in Kafka's clients.

    Raises:
        SparkConnectorError: it is no name of a part.
    """
    from pyspark.sql import functions

    kind, _, what = require_field(name).partition(":")
    if kind == "header":
        found = functions.filter("headers", lambda header: header["key"] == functions.lit(what))
        return functions.try_element_at(found, functions.lit(-1))["value"].cast("string")
    if kind == "field":
        path = "$['" + what.replace("'", "\\'") + "']"
        return functions.get_json_object(functions.col("value").cast("string"), path)
    return functions.col(kind).cast("string")


def field_number(name: str) -> Column:
    """That part of a record as a whole number written in decimal; null where it is none.

    Raises:
        SparkConnectorError: it is no name of a part.
    """
    return field_text(name).try_cast("bigint")
