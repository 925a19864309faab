"""Replay lives of storage that end in crashes: `python tests/storage/recovery/crash_run.py 1234`.

With one seed every step is printed; with two numbers, all seeds from the first up to the
second, and how many lives a second that is.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.crash_life import CrashLife


def main(arguments: list[str]) -> int:
    first = int(arguments[0])
    if len(arguments) == 1:
        CrashLife(first, trace=print).run()
        return 0
    failed = []
    began = time.perf_counter()
    for seed in range(first, int(arguments[1])):
        try:
            CrashLife(seed).run()
        except Exception:
            failed.append(seed)
            print(seed, traceback.format_exc().strip().splitlines()[-1])
    lives = int(arguments[1]) - first
    seconds = time.perf_counter() - began
    print(f"{lives} lives in {seconds:.1f} s, {lives / seconds:.0f} a second; failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
