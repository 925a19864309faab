"""`python -m odradek.tools.conformance --kafka-libs DIR`: is odradek like Apache Kafka?

It starts both, or takes running ones, plays the scenarios to them, prints a table and every
difference, and ends with 1 if one of them is not explained in docs/differences.md.
"""

from __future__ import annotations

import signal
import sys

from .command import main

if __name__ == "__main__":
    # Both brokers end with it, and their folders go, also where it is terminated.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    sys.exit(main(sys.argv[1:]))
