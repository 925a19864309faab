"""What one small Produce request costs the broker in CPU time, user and system.

    python -m odradek.tools.benchmarks.produce_cpu [--runs 5] [--connections 16] [--depth 1]

The loader in `benchmarks/load` (Go) sends one-record requests of 100 bytes for a few
seconds; the broker's CPU time over that span is divided by the answers. Afterwards the
records are counted in the `.log` files: what was answered must be there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

from ...bench.run.calibration import calibrate
from ...protocol.records import RecordBatch
from .measure import MeasuredBroker, broker, machine, summary

MICROSECONDS_MAX = 30
PRODUCED_TOPIC = "load"


def build_loader(folder: str) -> str:
    """Compile the loader; a sentence if there is no Go."""
    program = f"{folder}/load"
    source = Path(__file__).parent / "load"
    try:
        subprocess.run(["go", "build", "-o", program, "."], cwd=source, check=True)
    except FileNotFoundError:
        raise SystemExit("this benchmark needs Go: install golang, or put go on PATH") from None
    return program


def records_on_disk(data: Path) -> int:
    """Count the records in the topic's segment files, batch by batch."""
    count = 0
    for path in sorted(data.glob(f"{PRODUCED_TOPIC}-*/*.log")):
        content = path.read_bytes()
        position = 0
        while position < len(content):
            batch = RecordBatch(content, position)
            count += batch.records_count
            position += batch.size_in_bytes
    return count


def run(loader: str, running: MeasuredBroker, acks: int, options: argparse.Namespace) -> dict:  # type: ignore[type-arg]  # JSON
    """One slot of load; the loader's figures and the CPU time of each request."""
    before = running.cpu_seconds()
    printed = subprocess.run(
        [
            *(loader, "-address", running.address, "-topic", PRODUCED_TOPIC, "-acks", str(acks)),
            *("-connections", str(options.connections), "-depth", str(options.depth)),
            *("-seconds", str(options.seconds), "-size", str(options.size)),
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    figures = json.loads(printed)
    figures["cpu_us"] = (running.cpu_seconds() - before) / figures["requests"] * 1e6
    return figures  # type: ignore[no-any-return]  # JSON


def main() -> int:
    """Print medians for acks 1 and all; exit code 1 if they miss the goal or records miss."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    from kafka.admin import KafkaAdminClient, NewTopic

    good = True
    print(machine(), f"calibration {calibrate():.3f} s")
    with tempfile.TemporaryDirectory() as folder, broker() as running:
        loader = build_loader(folder)
        admin = KafkaAdminClient(bootstrap_servers=running.address)
        admin.create_topics([NewTopic(PRODUCED_TOPIC, num_partitions=1, replication_factor=1)])
        admin.close()
        answered = 0
        for acks in (1, -1):
            slots = [run(loader, running, acks, options) for _ in range(options.runs)]
            answered += sum(slot["requests"] for slot in slots)
            errors = sum(slot["errors"] for slot in slots)
            cpu = [slot["cpu_us"] for slot in slots]
            name = "all" if acks == -1 else str(acks)
            print(f"acks={name:3}  cpu  {summary(cpu, 'us')}   goal {MICROSECONDS_MAX}")
            print(f"          rate {summary([slot['rate'] / 1000 for slot in slots], 'k/s')}")
            print(f"          p99  {summary([slot['p99_ms'] for slot in slots], 'ms')}")
            good &= sorted(cpu)[len(cpu) // 2] <= MICROSECONDS_MAX and not errors
        stored = records_on_disk(running.data)
        print(f"answered {answered}, found in the .log files {stored}")
        good &= stored == answered
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
