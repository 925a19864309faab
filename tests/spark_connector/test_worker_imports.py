"""What a worker is spared of Spark's zip files, and what not."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from odradek.spark_connector.worker_imports import forget_zip_importers


@pytest.mark.parametrize(
    ("name", "reads"), [("pyspark.zip", 0), ("py4j-0.1-src.zip", 0), ("users.zip", 1)]
)
def test_only_directories_of_sparks_own_zip_files_are_not_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reads: int
) -> None:
    path = str(tmp_path / name)
    modules = [f"in_{name.partition('.')[0].replace('-', '_')}_{number}" for number in range(2)]
    with zipfile.ZipFile(path, "w") as file:
        for module in modules:
            file.writestr(f"{module}.py", "NAME = __name__\n")
    monkeypatch.syspath_prepend(path)
    assert modules[0] == importlib.import_module(modules[0]).NAME
    read: list[str] = []
    read_directory = zipimport._read_directory  # type: ignore[attr-defined]  # where the time goes

    def counting(archive: str) -> object:
        read.append(archive)
        return read_directory(archive)

    monkeypatch.setattr(zipimport, "_read_directory", counting)
    forget_zip_importers()
    importlib.invalidate_caches()
    assert modules[1] == importlib.import_module(modules[1]).NAME
    assert read.count(path) == reads
    for module in modules:
        del sys.modules[module]
