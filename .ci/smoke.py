"""One record through an installed odradek: serve, produce, consume, stop.

Run by `.ci/smoke` with the Python that the wheel was installed for; its argument is the
checkout, which nothing may be imported from.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import odradek

TIMEOUT_S = 120


def main() -> None:
    """Fail with an assertion at the first thing that is not as it should be."""
    package = Path(odradek.__file__).parent
    assert not package.is_relative_to(sys.argv[1]), f"odradek came from the checkout: {package}"
    command = Path(sysconfig.get_path("scripts")) / "odradek"
    broker = subprocess.Popen(
        [command, "serve", "--listen", "127.0.0.1:0", "--data-dir", "data"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert broker.stdout is not None
        line = broker.stdout.readline()
        address = re.search(r"127\.0\.0\.1:[1-9]\d*", line)
        assert address, f"no address in the broker's first line: {line!r}"
        produce_and_consume(command, address[0])
        broker.send_signal(signal.SIGINT)
        code = broker.wait(TIMEOUT_S)
        assert code == 0, f"the broker stopped with exit code {code}"
    finally:
        broker.kill()
        broker.wait()
    assert list(Path("data").glob("smoke-0/*.log")), "the record is not in the data folder"
    print(f"smoke test passed: {line.strip()}")


def produce_and_consume(command: Path, address: str) -> None:
    """Send one record to a new topic and read it back."""

    def run(*arguments: str, stdin: str = "") -> str:
        answer = subprocess.run(
            [command, *arguments, "--bootstrap-server", address],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    run("produce", "smoke", "--key", "key", stdin="value\n")
    read = run("consume", "smoke", "--from-beginning", "--max-messages", "1", "--keys")
    assert read == "key\tvalue\n", f"another record came back: {read!r}"


if __name__ == "__main__":
    main()
