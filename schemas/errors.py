"""What can be wrong: with a value, with a schema, or with the registry that should know it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class SchemaError(RuntimeError):
    """A schema cannot be used like this; the text is one sentence that says why."""


class UnknownSchemaError(SchemaError):
    """The registry has answered: it has no such schema."""


class RegistryError(SchemaError):
    """The registry has not answered, or not as a registry does. It says nothing of any value:
    whoever decodes must stop here, or would take good records for bad ones."""


class ValueDecodingError(ValueError):
    """These bytes are no value of the schema."""


class OtherTypeError(ValueDecodingError):
    """They may be one, of another type than the one that is read."""


class ValueEncodingError(ValueError):
    """This object cannot be written with the schema."""


@contextmanager
def needed_package(package: str) -> Iterator[None]:
    """Name the extra that holds a package where it cannot be imported.

    Raises:
        SchemaError: it cannot.
    """
    try:
        yield
    except ImportError as error:
        # Workers have loaded it, and so has the program that gives them work; nobody else has.
        where = ", on every worker of Spark, too" if "pyspark" in sys.modules else ""
        raise SchemaError(
            f"{package} is not installed here ({error}); install 'odradek[schemas]'{where}"
        ) from None
