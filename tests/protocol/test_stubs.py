"""The committed stubs are those that the schemas make."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from odradek.protocol import internal, messages
from odradek.tools.docs.stubs import PACKAGES, stub_files


def test_both_packages_of_schemas_have_stubs() -> None:
    assert set(PACKAGES) == {messages, internal}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_the_stubs_are_current(package: ModuleType) -> None:
    folder = Path(str(package.__file__)).parent
    stubs = stub_files(package)
    assert {path.name for path in folder.glob("*.pyi")} == stubs.keys()
    for name, text in stubs.items():
        assert (folder / name).read_text() == text, (
            f"run python -m odradek.tools.docs.stubs: {name}"
        )


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_message_module_has_a_stub_and_the_other_way_round(package: ModuleType) -> None:
    folder = Path(str(package.__file__)).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"versioned"}
    assert modules == {path.stem for path in folder.glob("*.pyi")}
    assert modules - {"__init__"} == package.names_by_module().keys()
