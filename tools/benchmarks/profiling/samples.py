"""Samples of a running broker, taken by py-spy."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from .stages import KERNEL

RATE_HZ = 200
LOOP = "EpollTransport.run"
FRAME = re.compile(r"(?P<name>.+) \((?P<file>.*?)(:(?P<line>\d+))?\)$")

Stacks = dict[tuple[str, ...], int]
"""How often each stack was seen; frames are `function file`, the outermost first."""


def py_spy() -> str:
    """Where it is: beside this Python, or on PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise SystemExit(f"profiles are made by py-spy: {sys.executable} -m pip install py-spy")
    return found


class Sampling:
    """py-spy at work on a process.

    Args:
        pid: the broker's.
        seconds: how long.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="odradek-profile-")
        self._raw = Path(self._folder.name) / "raw.txt"
        command = [py_spy(), "record", "--pid", str(pid), "--native", "--function"]
        command += ["--rate", str(RATE_HZ), "--duration", str(max(1, round(seconds)))]
        command += ["--format", "raw", "--output", str(self._raw)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def finish(self) -> Stacks:
        """Wait for its end; the stacks of the broker's loop.

        Raises:
            SystemExit: it could not look into the process; the text is its own.
        """
        _, said = self._process.communicate()
        if self._process.returncode or not self._raw.exists():
            raise SystemExit(
                f"py-spy could not sample the broker:\n{said}\nWhere the system lets no process "
                "look into another, run this as root."
            )
        stacks = parse(self._raw.read_text())
        self._folder.cleanup()
        return stacks


def parse(raw: str) -> Stacks:
    """The stacks of py-spy's raw format that belong to the broker's loop.

    What is outside the loop is cut off, and so are the interpreter's own functions, but for
    those that matter: system calls and the checksum.
    """
    found: Counter[tuple[str, ...]] = Counter()
    for line in raw.splitlines():
        text, _, count = line.rpartition(" ")
        frames = [frame for frame in map(frame_name, text.split(";")) if frame is not None]
        for index, frame in enumerate(frames):
            if frame.startswith(LOOP + " ") or frame.endswith("trio/_core/_run.py"):
                found[tuple(frames[index:])] += int(count)
                break
    return dict(found)


def frame_name(text: str) -> str | None:
    """`function file` of a frame; None for one of the interpreter."""
    match = FRAME.match(text)
    if match is None:
        return None
    name, file = match["name"], match["file"]
    if "crc32c" in name or "crc32c" in file:
        return "crc32c (C)"
    if name in KERNEL:
        return f"{name} (kernel)"
    if not file.endswith(".py") and not file.startswith("<"):
        return None
    if file.startswith("<frozen"):
        return None
    for root in ("odradek/", "site-packages/"):
        _, found, below = file.rpartition(root)
        if found:
            file = below
    return f"{name} {file}"
