"""Running a client's part of a test in a Python of its own, since clients may stop theirs for good.

librdkafka may wait for ever for an answer of itself while a member closes and its group
rebalances, and confluent-kafka holds the interpreter's lock meanwhile: no deadline of the test's
own ends that, nor pytest's. So such a part runs in a process whose interpreter is watched from
outside of it. One that stands still is not the broker's doing, and another try is made; anything
else that goes wrong is the test's failure.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

TESTS = Path(__file__).parents[1]
ALIVE_EVERY_SECONDS = 1.0
STANDS_STILL_SECONDS = 30.0
"""An interpreter that ran none of its threads for so long will not do so any more."""
TRIES = 3
STOOD_STILL = "Timeout ("
"""How the watch begins what it says before it ends the process."""


def watch_the_interpreter() -> None:
    """End this process, after its stacks were shown, once its interpreter stands still."""

    def tell() -> None:
        never = threading.Event()
        while True:
            faulthandler.dump_traceback_later(STANDS_STILL_SECONDS, exit=True)
            never.wait(ALIVE_EVERY_SECONDS)

    threading.Thread(target=tell, name="tells that the interpreter runs", daemon=True).start()


def run_in_own_process(module: str, *arguments: str, seconds_max: float) -> None:
    """Run `python -m support.MODULE ARGUMENTS`, again if its interpreter came to stand still.

    Args:
        module: of this package; it calls `watch_the_interpreter`.
        arguments: its command line.
        seconds_max: for one try.

    Raises:
        AssertionError: it failed, was not done in time, or stood still each time; the text holds
            what it printed.
    """
    command = [sys.executable, "-m", f"support.{module}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    printed = ""
    for _ in range(TRIES):
        try:
            done = subprocess.run(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds_max,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            output = (late.stdout or b"").decode(errors="replace")
            raise AssertionError(f"not done after {seconds_max:.0f} s:\n{output}") from None
        if not done.returncode:
            return
        printed = done.stdout
        assert STOOD_STILL in printed, printed
        warnings.warn(f"a client's interpreter stood still, tried again:\n{printed}", stacklevel=2)
    raise AssertionError(f"the client's interpreter stood still {TRIES} times:\n{printed}")
