"""Values made into columns, and back: JSON by Spark itself, all else by `odradek.schemas`.

Each gives the frame columns more, what was decoded and what was wrong with it, so that a record
that does not decode is a row like any other and stops no query.

    from odradek.spark_connector.decoding import dead_letters, decode_values, encode_values
"""

from ...schemas.registry import SchemaRegistry
from ...schemas.schema import Schema, schema_of_file
from ...schemas.values import Reader
from .avro import decode_avro
from .json import decode_json
from .values import dead_letters, decode_values, encode_values

__all__ = [
    "Reader",
    "Schema",
    "SchemaRegistry",
    "dead_letters",
    "decode_avro",
    "decode_json",
    "decode_values",
    "encode_values",
    "schema_of_file",
]
