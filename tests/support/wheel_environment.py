"""A Python that has odradek as its users have it: from the wheel, and nothing of the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
LEFT_OUT = (".*", "*.egg-info", "__pycache__", "artifacts", "build", "dist", "tests")
BUILD_SECONDS_MAX = 240


def make_environment(folder: Path) -> Path:
    """A virtual environment with the wheel; gives the path of its Python.

    What odradek depends on it takes from the environment that runs the tests: of a folder named
    in a .pth file no further .pth file is read, so an editable install there stays unknown.
    """
    wheel = build_wheel(folder)
    python = make_bare_environment(folder)
    packages = Path(
        _run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    return python


def make_bare_environment(folder: Path) -> Path:
    """One with what odradek depends on, and without odradek; gives the path of its Python."""
    environment = folder / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = environment / "bin" / "python"
    packages = Path(
        _run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


def build_wheel(folder: Path) -> Path:
    """The wheel, built from a copy: the checkout stays as it is."""
    copy = folder / "checkout"
    shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    _run(
        *(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"),
        *("--no-deps", "--wheel-dir", str(folder), str(copy)),
    )
    shutil.rmtree(copy)
    (wheel,) = folder.glob("odradek-*.whl")
    return wheel


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS_MAX)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout
