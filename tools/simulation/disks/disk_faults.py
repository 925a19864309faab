"""The failures that a disk can be set to, one fault at a time."""

from __future__ import annotations

import os
from collections.abc import Collection

READS = frozenset({"open", "read", "size", "list"})
WRITES = frozenset(
    {"create", "append", "truncate", "sync", "rename", "remove", "make_directory", "lock"}
)


class PowerCut(BaseException):
    """The power is gone: no operation works any more, and none returns.

    Not an `Exception`, so that no handler of disk errors takes it for one.
    """


class DiskFault:
    """Operations that fail from some moment on.

    Args:
        error: the error number, such as `errno.EIO`.
        under: only paths that begin so are affected.
        operations: names from `READS` and `WRITES`; None for all.
        after: so many of them work first.
        times: so many fail, then all work again; None for all that follow.
    """

    __slots__ = ("_after", "_error", "_operations", "_times", "_under")

    def __init__(
        self,
        error: int,
        under: str = "",
        operations: Collection[str] | None = None,
        *,
        after: int = 0,
        times: int | None = None,
    ) -> None:
        self._error = error
        self._under = under
        self._operations = operations
        self._after = after
        self._times = times

    def strike(self, operation: str, path: str) -> None:
        """Fail an operation if it is to fail.

        Raises:
            OSError: it is.
        """
        if not path.startswith(self._under):
            return
        if self._operations is not None and operation not in self._operations:
            return
        if self._after > 0:
            self._after -= 1
            return
        if self._times is not None:
            if self._times == 0:
                return
            self._times -= 1
        raise OSError(self._error, os.strerror(self._error), path)
