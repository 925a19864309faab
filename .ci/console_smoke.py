"""An installed console's files: each that a page names is served, and its licence is there.

Run by `.ci/smoke` with the Python that the wheel was installed for. No broker is needed.
"""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path
from urllib.request import urlopen

import odradek

TIMEOUT_S = 120


def main() -> None:
    """Fail with an assertion at the first thing that is not as it should be."""
    command = Path(sysconfig.get_path("scripts")) / "odradek"
    arguments = ["-b", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--ends-with-input"]
    console = subprocess.Popen(
        [command, "console", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert console.stdin is not None
    assert console.stdout is not None
    try:
        url = console.stdout.readline().removeprefix("console at ").strip()
        page = read(f"{url}/login")
        files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
        assert len(files) >= 4, page
        assert all(read(url + each) for each in files)
    finally:
        console.stdin.close()
        code = console.wait(TIMEOUT_S)
    assert code == 0, f"the console ended with exit code {code}"
    folder = Path(odradek.__file__).parent / "console" / "static" / "vendor"
    for name in ("htmx", "htmx-sse", "uplot"):
        assert (folder / f"{name}-LICENSE.txt").is_file(), name
        assert (folder / f"{name}.min.js").is_file(), name
    print(f"the console's files are served: {len(files)}")


def read(url: str) -> str:
    """A page or a file."""
    with urlopen(url, timeout=TIMEOUT_S) as answer:
        text: str = answer.read().decode()
    return text


main()
