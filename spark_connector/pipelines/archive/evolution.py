"""A table's columns grow with the schemas of the values: fields come, and numbers become wider.

Nothing is ever narrowed, renamed or removed: what other writers and older rows have stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...decoding.column_types import quoted
from ...errors import SparkConnectorError
from .columns import COLUMNS
from .table import ArchiveTable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WIDER = {("int", "bigint"), ("float", "double")}
"""What Iceberg makes of what, without writing its rows anew."""


def fitted(frame: DataFrame, table: ArchiveTable) -> DataFrame:
    """A frame with the table's columns, once the table has all of the frame's.

    Args:
        frame: of a batch.
        table: is altered where the frame has more.

    Raises:
        SparkConnectorError: they do not fit together.
    """
    held: Any = table.read().schema
    new: Any = frame.schema
    missing = sorted({*COLUMNS} - {*held.names})
    if missing:
        raise SparkConnectorError(
            f"{table.title} has no column {missing[0]!r} any more: another program has removed or"
            " renamed it; bring it back, or archive to another table"
        )
    altered = list(changes(held, new, table.title))
    for change in altered:
        table.alter(change)
    if altered:
        held = table.read().schema
    for field in held.fields:
        if field.name not in new.names and not field.nullable:
            raise SparkConnectorError(
                f"another program has given {table.title} the column {field.name!r}, which must"
                " not be null, and records have nothing for it: make it nullable"
            )
    return frame.select(
        *[_shaped(quoted(field.name), new, field).alias(field.name) for field in held.fields]
    )


def changes(held: Any, new: Any, title: str, path: tuple[str, ...] = ()) -> Iterator[str]:
    """How a struct has to be altered, for each change what stands behind ALTER TABLE and its name.

    Args:
        held: the table's StructType.
        new: the StructType that comes.
        title: of the table.
        path: of the struct in the table.

    Raises:
        SparkConnectorError: a type is none that the other can become.
    """
    kinds = {field.name: field.dataType for field in held.fields}
    for field in new.fields:
        where = (*path, field.name)
        if field.name not in kinds:
            yield f"ADD COLUMN {_dotted(where)} {field.dataType.simpleString()}"
        else:
            yield from _changes_of_type(kinds[field.name], field.dataType, title, where)


def _changes_of_type(held: Any, new: Any, title: str, path: tuple[str, ...]) -> Iterator[str]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(held, StructType) and isinstance(new, StructType):
        yield from changes(held, new, title, path)
    elif isinstance(held, ArrayType) and isinstance(new, ArrayType):
        inner = (*path, "element")
        yield from _changes_of_type(held.elementType, new.elementType, title, inner)
    elif isinstance(held, MapType) and isinstance(new, MapType) and held.keyType == new.keyType:
        yield from _changes_of_type(held.valueType, new.valueType, title, (*path, "value"))
    elif _is_wider(held, new):
        yield f"ALTER COLUMN {_dotted(path)} TYPE {new.simpleString()}"
    elif held != new and not _is_wider(new, held):
        raise SparkConnectorError(
            f"the column {'.'.join(path)} of {title} is {held.simpleString()}, but values have"
            f" {new.simpleString()} now, which it cannot become; archive to another table, or name"
            " a schema with the old type"
        )


def _is_wider(narrow: Any, wide: Any) -> bool:
    from pyspark.sql.types import DecimalType

    if isinstance(narrow, DecimalType) and isinstance(wide, DecimalType):
        return narrow.scale == wide.scale and narrow.precision < wide.precision
    return (narrow.simpleString(), wide.simpleString()) in WIDER


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(quoted(name) for name in path)


def _shaped(name: str, given: Any, target: Any) -> Column:
    """A column of a frame in the shape of the table's."""
    from pyspark.sql import functions as F

    if target.name not in given.names:
        return F.lit(None).cast(target.dataType)
    return _as_type(F.col(name), given[target.name].dataType, target.dataType)


def _as_type(value: Column, given: Any, target: Any) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if given == target:
        return value
    if isinstance(target, StructType):
        fields = [
            (
                _as_type(value[field.name], given[field.name].dataType, field.dataType)
                if field.name in given.names
                else F.lit(None).cast(field.dataType)
            ).alias(field.name)
            for field in target.fields
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(target, ArrayType):
        return F.transform(
            value, lambda each: _as_type(each, given.elementType, target.elementType)
        )
    if isinstance(target, MapType):
        return F.transform_values(
            value, lambda _, each: _as_type(each, given.valueType, target.valueType)
        )
    return value.cast(target)
