"""The benchmarks are scripts of a folder of their own, which they have on their path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "tools" / "benchmarks"))
