"""A data folder with logs of several kinds, which each test may damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.data_folders import write_data_folder


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "data"
    write_data_folder(path)
    return path


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "data")
