"""Keys and values made into columns: JSON by Spark itself, Avro by fastavro.

Both give the frame two columns more, what was decoded and what was wrong with it, so that a
record that does not decode is a row like any other and stops no query.

    from odradek.spark_connector.decoding import decode_avro, decode_json
"""

from .avro import decode_avro
from .json import decode_json

__all__ = ["decode_avro", "decode_json"]
