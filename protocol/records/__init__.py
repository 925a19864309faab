"""Record batches of format v2: headers read in place, records decoded on demand.

Batches stay bytes on their way through a broker. Nothing here may copy or decompress
one unless the name of the function says so.
"""

from .batch import BATCH_HEADER_BYTES, RecordBatch, iter_batches
from .builder import build_batch
from .records import Record, iter_records

__all__ = [
    "BATCH_HEADER_BYTES",
    "Record",
    "RecordBatch",
    "build_batch",
    "iter_batches",
    "iter_records",
]
