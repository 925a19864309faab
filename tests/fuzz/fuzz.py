"""Coverage-guided fuzzing with atheris: `python tests/fuzz/fuzz.py TARGET [libFuzzer options]`.

`make fuzz` runs every target for a while. An input that found a fault, or that cost too much,
is written into the folder of the target in `corpus`, where the tests take it from then on;
those that merely reached new code stay in `.cache/fuzz`, where the next run begins.
Atheris is built for Linux and macOS, and is no dependency of the tests.
"""

from __future__ import annotations

import hashlib
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

with atheris.instrument_imports(include=["odradek"]):
    from support.fuzz_inputs import seeds_of
    from support.fuzz_targets import TARGETS, spend

    from odradek.protocol.codec.codegen import Source

RSS_MEGABYTES_MAX = 512

compile_uninstrumented = Source.compile


def compile_instrumented(source: Source, function: str, filename: str) -> Callable[..., Any]:
    """Generated codecs are imported by nobody, so they are instrumented as they are made."""
    compiled: Callable[..., Any] = compile_uninstrumented(source, function, filename)
    return atheris.instrument_func(compiled)


def main() -> None:
    """Fuzz the target that the command line names, from the seeds and what is in the corpus."""
    name, *options = sys.argv[1:]
    Source.compile = compile_instrumented
    target = TARGETS[name]
    found = HERE / "corpus" / name
    units = HERE.parents[1] / ".cache" / "fuzz" / name
    units.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds_of(name)):
        (units / f"seed-{number}").write_bytes(seed)
    for seed in seeds_of(name):  # Codecs are generated at first use, and then instrumented.
        spend_traced(name, seed)

    def take(data: bytes) -> None:
        try:
            spent = spend(target, data)
            if spent.is_too_much:
                spent = spend(target, data)
            if spent.is_too_much:
                raise RuntimeError(f"too much: {spent}")
        except Exception:
            keep(found, data)
            raise

    tracemalloc.start()
    folders = [str(units)] + ([str(found)] if found.is_dir() else [])
    limits = (f"-rss_limit_mb={RSS_MEGABYTES_MAX}", "-max_len=4096", "-timeout=5")
    atheris.Setup([sys.argv[0], *limits, *options, *folders], take)
    atheris.Fuzz()


def spend_traced(name: str, seed: bytes) -> None:
    """Have a target take a seed once."""
    tracemalloc.start()
    spend(TARGETS[name], seed)
    tracemalloc.stop()


def keep(folder: Path, data: bytes) -> None:
    """Write an input into the corpus, under its digest."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


if __name__ == "__main__":
    main()
