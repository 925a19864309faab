"""Random messages made by franz-go's kmsg (see `tests/interop/go_vectors`), kept compressed.

`python tests/support/kmsg_vectors.py` makes them anew with Go, for the versions that our
schemas have; `make interop` checks that what is kept is what Go makes.
"""

from __future__ import annotations

import lzma
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.protocol import ApiKey, messages

TESTS = Path(__file__).parents[1]
KEPT = TESTS / "protocol" / "data" / "kmsg-vectors.tsv.xz"
PROGRAM = TESTS / "interop" / "go_vectors"
SEEDS = 16


class Vector(NamedTuple):
    """One message."""

    side: str
    api_key: int
    version: int
    seed: int
    body: bytes
    tokens: list[str]
    """The values of its leaves in the order of the wire, as `printer.go` writes them."""


def kept_vectors() -> Iterator[Vector]:
    """The messages of the kept file."""
    for line in lzma.decompress(KEPT.read_bytes()).decode().splitlines():
        side, api_key, version, seed, body, tokens = line.split("\t")
        numbers = int(api_key), int(version), int(seed)
        yield Vector(side, *numbers, bytes.fromhex(body), tokens.split())


def make_vectors(go: str) -> str:
    """What the Go program prints.

    Args:
        go: the path of the compiler.
    """
    ranges = [(key, messages.request_message(key).versions) for key in ApiKey]
    lines = "".join(f"{key:d} {versions[0]} {versions[-1]}\n" for key, versions in ranges)
    command = (go, "run", ".", str(SEEDS))
    done = subprocess.run(command, cwd=PROGRAM, input=lines, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command} failed: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    KEPT.write_bytes(lzma.compress(make_vectors(shutil.which("go") or "go").encode(), preset=9))
