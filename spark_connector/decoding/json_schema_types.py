"""JSON Schema's types as Spark's; what Spark has none for is a column of JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import SparkConnectorError
from .column_types import JSON_TEXT, ColumnType, array_of, map_of, nullable, struct_of

SCALARS = {
    "string": ColumnType("STRING"),
    # 3.0 is an integer to JSON Schema.
    "integer": ColumnType("BIGINT", int),
    "number": ColumnType("DOUBLE", float),
    "boolean": ColumnType("BOOLEAN"),
}


def spark_type(schema: Any, references: Mapping[str, Any] | None = None) -> ColumnType:
    """The type of a JSON Schema.

    Args:
        schema: as objects.
        references: the schemas it refers to, by the names that it uses for them.

    Raises:
        SparkConnectorError: it contains itself, or refers to what is not there.
    """
    return _Types({"": schema, **(references or {})}).of(schema, "", ())


class _Types:
    """Schemas refer to parts of themselves and of others.

    Args:
        documents: by name; the main one has none.
    """

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = documents

    def of(self, schema: Any, document: str, outer: tuple[str, ...]) -> ColumnType:
        """The type of a part of a document; `outer` are the references that led there."""
        if not isinstance(schema, dict):
            return JSON_TEXT
        if "$ref" in schema:
            return self._referred(schema["$ref"], document, outer)
        for several in ("oneOf", "anyOf"):
            if several in schema:
                others = [each for each in schema[several] if each != {"type": "null"}]
                is_one = len(others) == 1 and len(schema[several]) == 2
                return self.of(others[0], document, outer) if is_one else JSON_TEXT
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list):
            others = [each for each in kind if each != "null"]
            kind = others[0] if len(others) == 1 else None
        if kind == "object":
            return self._object(schema, document, outer)
        if kind == "array":
            items = schema.get("items")
            if not isinstance(items, dict):
                return JSON_TEXT
            return array_of(self.of(items, document, outer))
        return SCALARS.get(kind, JSON_TEXT) if isinstance(kind, str) else JSON_TEXT

    def _object(self, schema: dict[str, Any], document: str, outer: tuple[str, ...]) -> ColumnType:
        properties = schema.get("properties")
        if properties:
            fields = {name: self.of(each, document, outer) for name, each in properties.items()}
            found = struct_of(fields)
            revert = nullable(found.revert)
            required = set(schema.get("required", ()))
            return found._replace(
                # What the reader has no column for is left out by Arrow; what has to be there may
                # be null, and what need not is not there.
                revert=lambda value: {
                    name: part
                    for name, part in revert(value).items()
                    if part is not None or name in required
                }
            )
        values = schema.get("additionalProperties")
        return map_of(self.of(values, document, outer)) if isinstance(values, dict) else JSON_TEXT

    def _referred(self, reference: str, document: str, outer: tuple[str, ...]) -> ColumnType:
        name, _, path = reference.partition("#")
        document = name or document
        whole = f"{document}#{path}"
        if whole in outer:
            raise SparkConnectorError(
                f"the JSON Schema contains itself at {whole}, which Spark has no type for"
            )
        try:
            found = self._documents[document]
            for part in path.split("/")[1:]:
                found = found[part.replace("~1", "/").replace("~0", "~")]
        except (KeyError, TypeError):
            raise SparkConnectorError(
                f"the JSON Schema refers to {reference}, which is not there"
            ) from None
        return self.of(found, document, (*outer, whole))
