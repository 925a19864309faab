"""The image is built and runs: as root on a machine with Debian's buildah and debootstrap.

`make test-container` runs these tests, with what they need; other runs do not collect them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

IS_WANTED = "ODRADEK_TEST_CONTAINER" in os.environ
collect_ignore_glob = [] if IS_WANTED else ["test_*.py"]

CHECKOUT = Path(__file__).parents[2]
BASE = "localhost/odradek-test-base"
IMAGE = "localhost/odradek-test"
SUITE = "bookworm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def buildah(*arguments: str, timeout_s: float = 600) -> str:
    """What buildah answers; its words are shown where it fails."""
    done = subprocess.run(
        ["buildah", *arguments], capture_output=True, text=True, timeout=timeout_s, cwd=CHECKOUT
    )
    assert done.returncode == 0, f"buildah {arguments[0]}: {done.stdout}{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image of Debian with its Python, made without anybody's registry of images; kept."""
    if subprocess.run(["buildah", "inspect", BASE], capture_output=True).returncode == 0:
        return BASE
    root = tmp_path_factory.mktemp("base") / "root"
    packages = "python3,python3-venv,python3-pip,ca-certificates"
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={packages}", SUITE, str(root)],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=600,
    )
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(root), "/")
    buildah("config", "--env", f"PATH={PATH}", container)
    buildah("commit", "--quiet", "--rm", container, BASE)
    return BASE


@pytest.fixture(scope="session")
def image(base: str) -> Iterator[str]:
    """Built as docs/operations.md says, but for the base."""
    buildah(
        *("build", "--isolation", "chroot", "--network", "host", "--format", "docker"),
        # Whoever this machine trusts is trusted by pip inside, too.
        *("--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"),
        *("--build-arg", f"BASE={base}", "-t", IMAGE, "-f", "deploy/Containerfile", "."),
    )
    yield IMAGE
    buildah("rmi", IMAGE)
