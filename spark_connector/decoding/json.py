"""Columns of JSON text, decoded by Spark's own parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

NOT_JSON = "it is no JSON of the schema"
CORRUPT = "_corrupt_record"


def decode_json(
    frame: DataFrame,
    schema: StructType | str,
    *,
    column: str = "value",
    into: str = "decoded",
    error_into: str = "decode_error",
) -> DataFrame:
    """The frame with its JSON decoded; a null, such as a tombstone's value, stays null.

    Args:
        frame: as a source of topics gives it.
        schema: of the objects, as a StructType or in SQL (`"id BIGINT, name STRING"`).
        column: of binary or text.
        into: the new column, a struct; null where it does not decode.
        error_into: the new column that says what is wrong, null where nothing is.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import StringType, StructField, StructType

    struct: Any = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
    with_corrupt = StructType([*struct.fields, StructField(CORRUPT, StringType())])
    text = functions.col(column).cast("string")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    parsed = functions.from_json(text, with_corrupt, options)
    is_corrupt = parsed[CORRUPT].isNotNull() | (functions.col(column).isNotNull() & parsed.isNull())
    fields = [parsed[field.name].alias(field.name) for field in struct.fields]
    is_decoded = functions.col(column).isNotNull() & ~is_corrupt
    return frame.withColumns(
        {
            into: functions.when(is_decoded, functions.struct(*fields)),
            error_into: functions.when(is_corrupt, functions.lit(NOT_JSON)),
        }
    )
