"""CRC-32C, the checksum of record batches and producer snapshots.

The `crc32c` package spends tens of milliseconds importing `importlib.metadata` (it asks
for its own version), which a broker that starts in a fraction of a second cannot afford.
Only its extension module computes anything, so that is loaded by itself; where it cannot
be found the package is imported as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import cast

Checksum = Callable[[bytes | bytearray | memoryview], int]


def _load_extension() -> Checksum | None:
    """The extension's function, without running the package's `__init__`."""
    package = PathFinder.find_spec("crc32c")
    if package is None or package.submodule_search_locations is None:
        return None
    spec = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Checksum, module.crc32c)


def _load_package() -> Checksum:
    from crc32c import crc32c as checksum

    return cast(Checksum, checksum)


crc32c: Checksum = _load_extension() or _load_package()
"""The CRC-32C (Castagnoli) of a buffer, as an unsigned 32-bit integer."""
