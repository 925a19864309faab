"""Where the processes of a test run tell each other of its brokers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def run_folder(owner: int) -> Path:
    """The folder of a run; it is there if the run has had brokers that tests share.

    Args:
        owner: the process that runs it all.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0  # on Windows a temporary folder is a user's
    return Path(tempfile.gettempdir()) / f"odradek-run-{user}-{owner}"
