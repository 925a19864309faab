"""What is kept of kmsg's random messages is what kmsg makes."""

from __future__ import annotations

import lzma
import shutil

import pytest
from support.kmsg_vectors import KEPT, make_vectors

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def test_kept_vectors_are_those_that_go_makes() -> None:
    go = shutil.which("go")
    assert go is not None, "install Go, of the version that tests/interop/go_vectors/go.mod names"
    made = make_vectors(go)
    kept = lzma.decompress(KEPT.read_bytes()).decode()
    # Not compared by an assertion of pytest's, which would take minutes to tell the difference.
    different = made != kept
    assert not different, "`python tests/support/kmsg_vectors.py` writes the vectors anew"
