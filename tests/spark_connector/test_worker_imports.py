"""What a worker is spared of Spark's zip files, and what not."""

from __future__ import annotations

import importlib
import re
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from odradek.spark_connector.worker_imports import forget_zip_importers


@pytest.mark.parametrize(
    ("name", "is_read_anew"),
    [
        ("pyspark.zip", False),
        ("py4j-0.1-src.zip", False),
        ("spark-core_2.13-4.0.0.jar", False),
        ("users.zip", True),
        ("users_spark-core_2.13-4.0.0.jar", True),
    ],
)
def test_only_directories_of_sparks_own_archives_are_not_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_read_anew: bool
) -> None:
    path = str(tmp_path / name)
    package = "in_" + re.sub(r"\W", "_", name)
    modules = [f"{package}.number_{number}" for number in range(2)]
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{package}/__init__.py", "")
        for module in modules:
            file.writestr(f"{module.replace('.', '/')}.py", "NAME = __name__\n")
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
    # Python before 3.13 reads it once for each importer: of the archive, and of the package in it.
    assert (path in read) == is_read_anew
    for module in (*modules, package):
        del sys.modules[module]
