"""What a broker lives in: the clock it reads, the files it writes, and who hears of it.

`odradek serve` has the operating system's. A broker for tests is given others, whose time can
be advanced and whose disk can be full.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..runtime.clock import Clock, SystemClock
from ..storage.io.files import REAL_FILES, Files

if TYPE_CHECKING:
    from .broker import Broker


class Surroundings(NamedTuple):
    """What a broker lives in.

    Attributes:
        clock: of all that the broker does; leases in the metadata store, which other processes
            read too, go by the system's all the same.
        files: where its logs are.
        on_made: told of the broker when it is put together, before it serves.
    """

    clock: Clock
    files: Files = REAL_FILES
    on_made: Callable[[Broker], None] | None = None


def real_surroundings() -> Surroundings:
    """The operating system's."""
    return Surroundings(SystemClock())
