"""snappy, lz4 and zstd for kafka-python from odradek's own codecs.

kafka-python looks for three more packages and, without them, refuses to read what any other
client compressed. The broker brings these codecs anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


def use_own_codecs() -> None:
    """Give kafka-python the codecs it does not find, for the rest of this process."""
    import kafka.codec
    from kafka import KafkaProducer
    from kafka.record import default_records

    from ...protocol.compression.codecs import Compression, compress
    from ...protocol.compression.decompression import decompress

    for compression in (Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        name = compression.name.lower()
        if getattr(kafka.codec, f"has_{name}")():
            continue
        setattr(kafka.codec, f"has_{name}", _is_there)
        setattr(default_records, f"{name}_encode", partial(compress, compression))
        setattr(default_records, f"{name}_decode", _decoder(decompress, compression))
        _, attributes = KafkaProducer._COMPRESSORS[name]
        KafkaProducer._COMPRESSORS[name] = (_is_there, attributes)


def _is_there() -> bool:
    return True


def _decoder(decompress: Callable[..., bytes], compression: Any) -> Callable[[Any], bytes]:
    def decode(data: Any) -> bytes:
        return decompress(compression, data)

    return decode
