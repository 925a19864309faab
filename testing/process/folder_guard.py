"""Who removes a broker's folder if the process it belongs to is killed while the broker is down.

A broker that runs sees that by itself, and does it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PROGRAM = """
import os, sys, time
owner = int(sys.argv[1])
try:
    if hasattr(os, "pidfd_open"):
        import select
        select.select([os.pidfd_open(owner)], [], [])
    else:
        while True:
            os.kill(owner, 0)
            time.sleep(0.5)
except ProcessLookupError:
    pass
os.execvp("rm", ["rm", "-rf", "--", *sys.argv[2:]])
"""


class FolderGuard:
    """A process that removes folders when another one is gone.

    Args:
        owner: that other process.
        folders: what it removes.
    """

    def __init__(self, owner: int, folders: Sequence[Path]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PROGRAM, str(owner), *map(str, folders)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def end(self) -> None:
        """Let the folders be."""
        self._process.kill()
        self._process.wait()
