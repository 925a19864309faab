"""A schema as text, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from .errors import SchemaError, UnknownSchemaError

AVRO = "AVRO"
PROTOBUF = "PROTOBUF"
JSON = "JSON"
KINDS = (AVRO, PROTOBUF, JSON)
"""The formats, as registries call them."""
KINDS_OF_FILES = {".avsc": AVRO, ".proto": PROTOBUF, ".json": JSON}


class Reference(NamedTuple):
    """Another schema that one refers to."""

    name: str
    """As the schema says it: a type's full name in Avro, a file's in Protobuf, a URI in JSON."""
    text: str


class Schema(NamedTuple):
    """A schema."""

    kind: str
    """One of `KINDS`."""
    text: str
    references: tuple[Reference, ...] = ()
    """All that it needs; each stands behind those that it needs itself."""


def schema_of_file(path: str | Path) -> Schema:
    """The schema in a file: Avro's in `.avsc`, Protobuf's in `.proto`, JSON Schema's in `.json`.

    Raises:
        SchemaError: it cannot be read, or its name says nothing.
    """
    kind = KINDS_OF_FILES.get(Path(path).suffix)
    if kind is None:
        raise SchemaError(
            f"{path} should end in {', '.join(KINDS_OF_FILES)}, to say of what format it is"
        )
    try:
        return Schema(kind, Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"{path} cannot be read: {error}") from None


class SchemaSource(Protocol):
    """Knows schemas by the ids in front of values."""

    def schema(self, schema_id: int) -> Schema:
        """The schema with an id.

        Raises:
            UnknownSchemaError: there is none.
            RegistryError: nobody can tell.
        """


class KnownSchemas:
    """Schemas that are at hand: those of files.

    Args:
        schemas: by id.
    """

    def __init__(self, schemas: Mapping[int, Schema]) -> None:
        self._schemas = dict(schemas)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownSchemas) and other._schemas == self._schemas

    def __hash__(self) -> int:
        return hash(frozenset(self._schemas.items()))

    def schema(self, schema_id: int) -> Schema:
        """The schema with an id.

        Raises:
            UnknownSchemaError: it was not given.
        """
        found = self._schemas.get(schema_id)
        if found is None:
            raise UnknownSchemaError(f"no schema was given for the id {schema_id}")
        return found
