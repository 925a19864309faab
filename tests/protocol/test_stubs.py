"""The committed stubs are those that the schemas make."""

from __future__ import annotations

from pathlib import Path

from odradek.protocol import messages
from odradek.protocol.stubs import stub_files


def test_the_stubs_are_current() -> None:
    folder = Path(messages.__file__).parent
    stubs = stub_files()
    assert {path.name for path in folder.glob("*.pyi")} == stubs.keys()
    for name, text in stubs.items():
        assert (folder / name).read_text() == text, f"run python -m odradek.protocol.stubs: {name}"


def test_every_message_module_has_a_stub_and_the_other_way_round() -> None:
    folder = Path(messages.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")}
    assert modules == {path.stem for path in folder.glob("*.pyi")}
    assert modules - {"__init__"} == set(messages.module_names())
