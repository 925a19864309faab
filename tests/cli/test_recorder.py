"""`odradek record` and `odradek replay`: what cannot be done is said in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.testing.recorder.capture_file import CaptureWriter

from .conftest import Odradek


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("record", "--upstream", "nowhere"), 1, "'nowhere' is no address; write HOST:PORT"),
        (("record",), 2, "Missing option '--upstream'"),
        (("record", "-u", "a:1", "--listen", "192.0.2.1:0"), 1, "cannot be listened to"),
        (("record", "-u", "a:1", "--out", "{there}"), 1, "is there already; name another file"),
        (("record", "-u", "a:1", "--out", "{there}/x"), 1, "x: Not a directory"),
        (("replay", "{there}", "-b", "127.0.0.1:1"), 2, "there is no capture of odradek's"),
        (("replay", "{empty}", "-b", "127.0.0.1:1"), 2, "no broker answers at 127.0.0.1:1"),
        (("replay", "{missing}"), 2, "missing: No such file"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    odradek: Odradek, tmp_path: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    there = tmp_path / "there"
    there.write_text("something else")
    empty, missing = tmp_path / "empty", tmp_path / "missing"
    CaptureWriter(empty).close()
    filled = [each.format(there=there, empty=empty, missing=missing) for each in arguments]
    outcome = odradek(*filled)
    assert outcome.code == code
    assert sentence in outcome.err
    assert there.read_text() == "something else"
