"""How fast a log is read by slices with sendfile, beside plain sendfile of the same file.

    python -m odradek.tools.benchmarks.storage.read [--rounds 15] [--megabytes 512]

Another process reads from a loopback socket, as fast as it can. Ours asks the log for 1 MB from
an offset on, sends that slice, and goes on behind its last whole batch, as consumers do; the
other gives sendfile the whole file. Once with a log that was written just now, once with one
that was loaded, whose indexes and batches are looked at before they are believed. Rounds are
interleaved; the share is that of the medians.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from ....bench.loads.produce_load import BATCH_BYTES
from ....bench.run.calibration import calibrate
from ....storage import FileSlice, Log, LogConfig, TopicPartition, load_log
from ..measure import batch_of, machine, summary, verdict

SHARE_MIN = 0.9
LOG_READ_BYTES = 1024 * 1024
"""Kafka's max.partition.fetch.bytes."""

NOW_MS = 1_700_000_000_000
BENCH = TopicPartition("bench", 0)

READER = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
buffer = bytearray(1 << 20)
flags = socket.MSG_TRUNC if sys.platform == "linux" else 0  # thrown away, not copied
while sock.recv_into(buffer, 0, flags):
    pass
"""


class Drained:
    """A connected socket and the process that reads all that is sent through it."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            self._reader = subprocess.Popen([sys.executable, "-c", READER, str(port)])
            self.sock, _ = server.accept()

    def close(self) -> None:
        """Wait for the reader to have read it all."""
        self.sock.shutdown(socket.SHUT_WR)
        self._reader.wait(60)
        self.sock.close()


def send(sock: socket.socket, descriptor: int, position: int, size: int) -> None:
    """Send a stretch of a file, in as many calls as it takes."""
    end = position + size
    while position < end:
        sent = os.sendfile(sock.fileno(), descriptor, position, end - position)
        if not sent:
            raise SystemExit("the file is shorter than it should be")
        position += sent


def by_slices(log: Log, sock: socket.socket) -> int:
    """Send a log, slice by slice; the bytes of whole batches in it."""
    first = log.read(0, 1).records
    batch_bytes = len(first)
    assert isinstance(first, FileSlice)
    per_batch = int.from_bytes(first.read()[57:61], "big")
    offset = 0
    useful = 0
    while offset < log.log_end_offset:
        records = log.read(offset, LOG_READ_BYTES, upper_offset=log.log_end_offset).records
        assert isinstance(records, FileSlice)
        send(sock, records.fileno(), records.position, len(records))
        whole = len(records) // batch_bytes
        offset += whole * per_batch
        useful += whole * batch_bytes
    return useful


def whole_file(log: Log, sock: socket.socket) -> int:
    """Send the file of a log's only segment, whatever it holds."""
    send(sock, log.segments.active.file.fileno(), 0, log.size)
    return log.size


def measured(work: Callable[[socket.socket], int]) -> tuple[float, float]:
    """Bytes a second, and CPU seconds of this process for each GB."""
    drained = Drained()
    cpu = time.process_time()
    began = time.perf_counter()
    size = work(drained.sock)
    drained.close()
    seconds = time.perf_counter() - began
    return size / seconds, (time.process_time() - cpu) / size * 1e9


def fill(log: Log, size: int) -> None:
    """Append batches until the log has `size` bytes, all in one segment."""
    source = memoryview(batch_of(BATCH_BYTES, 1000, NOW_MS))
    while log.size < size:
        for _ in range(64):
            log.append_as_leader(bytes(source), leader_epoch=0, now_ms=NOW_MS)
        log.flush_appends()


def main() -> int:
    """Print the medians; exit code 1 if they miss the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--megabytes", type=int, default=512)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="odradek-bench-") as folder:
        directory = f"{folder}/{BENCH.folder_name}"
        written = load_log(directory, BENCH, LogConfig(), now_ms=NOW_MS)
        fill(written, options.megabytes * 1_000_000)
        written.close()

        def loaded(sock: socket.socket) -> int:
            log = load_log(directory, BENCH, LogConfig(), now_ms=NOW_MS, clean_shutdown=True)
            return by_slices(log, sock)

        ways: dict[str, Callable[[socket.socket], int]] = {
            "plain sendfile": lambda sock: whole_file(written, sock),
            "slices, written now": lambda sock: by_slices(written, sock),
            "slices, loaded": loaded,
        }
        results: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(options.rounds + 1):
            for name, way in ways.items():
                results[name].append(measured(way))
    print(machine(), f"calibration {calibrate():.3f} s")
    print(f"{options.megabytes} MB from the page cache, batches of {BATCH_BYTES} bytes")
    for name, rounds in results.items():
        del rounds[0]
        cpu = statistics.median(each[1] for each in rounds)
        print(f"  {name:22} {summary([each[0] / 1e6 for each in rounds], 'MB/s')}, ", end="")
        print(f"CPU {cpu:.3f} s/GB")
    plain, *others = (statistics.median(each[0] for each in rounds) for rounds in results.values())
    good = True
    for name, speed in zip(list(results)[1:], others, strict=True):
        good &= verdict(f"  {name}, of plain", speed / plain, SHARE_MIN, "", at_most=False)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
