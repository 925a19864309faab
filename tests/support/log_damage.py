"""Damage to a data folder, one kind each: how it is done, and what must be found of it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.records import BATCH_HEADER_BYTES, RecordBatch, build_batch, iter_batches
from odradek.protocol.records.builder import write_crc

NOW_MS = 1_700_000_000_000


EPOCHS = "orders-0/leader-epoch-checkpoint"


class Damage(NamedTuple):
    """One kind."""

    name: str
    do: Callable[[Path], str]
    """Damages a data folder; returns the path, in it, of the file to be named."""
    kind: str
    """Of the finding."""
    is_repaired: bool = True
    """Whether `repair` can make it good."""

    def __repr__(self) -> str:
        return self.name


def segment_paths(root: Path) -> list[Path]:
    """The log files of `orders-0`, oldest first."""
    return sorted((root / "orders-0").glob("*.log"))


def batches_of(path: Path) -> list[RecordBatch]:
    """Every batch of a log file."""
    return list(iter_batches(path.read_bytes()))


def edit(path: Path, position: int, data: bytes) -> None:
    """Write over some bytes."""
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def flip(path: Path, position: int, mask: int = 0x01) -> None:
    """Flip bits of one byte."""
    edit(path, position, bytes([path.read_bytes()[position] ^ mask]))


def _in_closed_segment(offset_in_batch: int, mask: int = 0x01) -> Callable[[Path], str]:
    def damage(root: Path) -> str:
        path = segment_paths(root)[1]
        batch = batches_of(path)[2]
        flip(path, batch.position + offset_in_batch, mask)
        return _name(root, path)

    return damage


def _name(root: Path, path: Path) -> str:
    return str(path.relative_to(root))


def _records_do_not_tile(root: Path) -> str:
    """A checksum that is right, over records that are not."""
    path = segment_paths(root)[1]
    batch = next(each for each in batches_of(path) if each.attributes & 7 == 0)
    end = batch.position + batch.size_in_bytes
    content = bytearray(path.read_bytes())
    whole = content[batch.position : end]
    whole[BATCH_HEADER_BYTES] ^= 0x02
    write_crc(whole)
    content[batch.position : end] = whole
    path.write_bytes(content)
    return _name(root, path)


def _base_offset_too_high(root: Path) -> str:
    path = segment_paths(root)[1]
    batch = batches_of(path)[2]
    edit(path, batch.position, struct.pack(">q", batch.base_offset + 2))
    return _name(root, path)


def _lost_segment(root: Path) -> str:
    lost, following = segment_paths(root)[1:3]
    for path in lost.parent.glob(f"{lost.stem}.*"):
        path.unlink()
    return _name(root, following)


def _torn_tail(root: Path) -> str:
    path = segment_paths(root)[-1]
    torn = build_batch([(b"key", b"value", NOW_MS, [])], base_offset=1000)[:-3]
    path.write_bytes(path.read_bytes() + torn)
    return _name(root, path)


def _zeros_at_the_end(root: Path) -> str:
    path = segment_paths(root)[-1]
    path.write_bytes(path.read_bytes() + bytes(5000))
    return _name(root, path)


def _last_batch_damaged(root: Path) -> str:
    path = segment_paths(root)[-1]
    flip(path, path.stat().st_size - 1)
    return _name(root, path)


def _flip_in(suffix: str, position: int, mask: int = 0x01) -> Callable[[Path], str]:
    """In a side file of the second segment of `orders-0`."""

    def damage(root: Path) -> str:
        path = segment_paths(root)[1].with_suffix(suffix)
        flip(path, position % path.stat().st_size, mask)
        return _name(root, path)

    return damage


def _cut(suffix: str, cut_bytes: int) -> Callable[[Path], str]:
    def damage(root: Path) -> str:
        path = segment_paths(root)[1].with_suffix(suffix)
        path.write_bytes(path.read_bytes()[:-cut_bytes])
        return _name(root, path)

    return damage


def _remove(suffix: str) -> Callable[[Path], str]:
    def damage(root: Path) -> str:
        path = segment_paths(root)[1].with_suffix(suffix)
        path.unlink()
        return _name(root, path)

    return damage


def _entry_more(suffix: str, entry: bytes) -> Callable[[Path], str]:
    def damage(root: Path) -> str:
        path = segment_paths(root)[1].with_suffix(suffix)
        path.write_bytes(path.read_bytes() + entry)
        return _name(root, path)

    return damage


def _snapshot_from_behind_the_end(root: Path) -> str:
    source = max((root / "orders-0").glob("*.snapshot"))
    target = source.with_name(f"{9999:020d}.snapshot")
    target.write_bytes(source.read_bytes())
    return _name(root, target)


def _snapshot_of_another_offset(root: Path) -> str:
    """Whole, but not what the batches say."""
    snapshots = sorted((root / "orders-0").glob("*.snapshot"))
    snapshots[1].write_bytes(snapshots[0].read_bytes())
    return _name(root, snapshots[1])


def _epoch_begins_inside_a_batch(root: Path) -> str:
    path = root / EPOCHS
    epochs = [[int(word) for word in line.split()] for line in path.read_text().splitlines()[2:]]
    epochs[1][1] -= 1
    lines = [f"{epoch} {offset}" for epoch, offset in epochs]
    path.write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    return EPOCHS


def _write(name: str, content: str) -> Callable[[Path], str]:
    def damage(root: Path) -> str:
        (root / name).write_text(content)
        return name

    return damage


IMPOSSIBLE_TRANSACTION = struct.pack(">hqqqq", 0, 9, 50, 40, 10)
UNKNOWN_TRANSACTION = struct.pack(">hqqqq", 0, 9, 30, 39, 40)

DAMAGES = [
    Damage("checksum in a closed segment", _in_closed_segment(70), "batch", False),
    Damage("payload's last byte", _in_closed_segment(-1), "batch", False),
    Damage("a batch's length, a little", _in_closed_segment(11), "batch", False),
    Damage("a batch's length, a lot", _in_closed_segment(8, 0x40), "batch", False),
    Damage("magic", _in_closed_segment(16, 0x40), "batch", False),
    Damage("attributes", _in_closed_segment(22), "batch", False),
    Damage("producer id", _in_closed_segment(43), "batch", False),
    Damage("records count", _in_closed_segment(60), "batch", False),
    Damage("base offset, high", _in_closed_segment(2), "offsets", False),
    Damage("base offset, low", _in_closed_segment(7, 0x1F), "offsets", False),
    Damage("base offset, two too high", _base_offset_too_high, "offsets", False),
    Damage("leader epoch of a batch", _in_closed_segment(15, 0x10), "offsets", False),
    Damage("sign of a batch's leader epoch", _in_closed_segment(12, 0x80), "offsets", False),
    Damage("records that do not tile", _records_do_not_tile, "records", False),
    Damage("a lost segment", _lost_segment, "offsets", False),
    Damage("torn tail", _torn_tail, "torn-tail"),
    Damage("zeros at the end", _zeros_at_the_end, "torn-tail"),
    Damage("last batch damaged", _last_batch_damaged, "torn-tail"),
    Damage("offset of an index entry", _flip_in(".index", 11), "offset-index"),
    Damage("position of an index entry", _flip_in(".index", 15), "offset-index"),
    Damage("sign of an index entry", _flip_in(".index", 8, 0x80), "offset-index"),
    Damage("half an index entry", _cut(".index", 3), "offset-index"),
    Damage("an index entry too many", _entry_more(".index", b"\1" * 8), "offset-index"),
    Damage("an index that is gone", _remove(".index"), "offset-index"),
    Damage("timestamp of an entry", _flip_in(".timeindex", 19), "time-index"),
    Damage("offset of a time entry", _flip_in(".timeindex", 23), "time-index"),
    Damage("half a time entry", _cut(".timeindex", 5), "time-index"),
    Damage("a time index without its end", _cut(".timeindex", 12), "time-index"),
    Damage("a time index that is gone", _remove(".timeindex"), "time-index"),
    Damage("version of a transaction", _flip_in(".txnindex", 1), "transaction-index"),
    Damage("producer of a transaction", _flip_in(".txnindex", 9), "transaction-index"),
    Damage("first offset of one", _flip_in(".txnindex", 17), "transaction-index"),
    Damage("last offset of one", _flip_in(".txnindex", 25), "transaction-index"),
    Damage("last stable offset of one", _flip_in(".txnindex", 33), "transaction-index"),
    Damage("half a transaction", _cut(".txnindex", 7), "transaction-index"),
    Damage("a transaction less", _cut(".txnindex", 34), "transaction-index"),
    Damage(
        "a transaction too many", _entry_more(".txnindex", UNKNOWN_TRANSACTION), "transaction-index"
    ),
    Damage(
        "an impossible one", _entry_more(".txnindex", IMPOSSIBLE_TRANSACTION), "transaction-index"
    ),
    Damage("a transaction index that is gone", _remove(".txnindex"), "transaction-index"),
    Damage("a snapshot's checksum", _flip_in(".snapshot", 3), "snapshot"),
    Damage("a snapshot's entry", _flip_in(".snapshot", 30), "snapshot"),
    Damage("a snapshot's version", _flip_in(".snapshot", 0), "snapshot"),
    Damage("half a snapshot", _cut(".snapshot", 9), "snapshot"),
    Damage("a snapshot from behind the end", _snapshot_from_behind_the_end, "snapshot"),
    Damage("a snapshot of another offset", _snapshot_of_another_offset, "snapshot"),
    Damage("epochs that are no numbers", _write(EPOCHS, "0\n1\nx 0\n"), "leader-epochs"),
    Damage("epochs that are fewer than said", _write(EPOCHS, "0\n4\n0 0\n"), "leader-epochs"),
    Damage("an epoch that is missing", _write(EPOCHS, "0\n1\n0 0\n"), "leader-epochs"),
    Damage("an epoch from behind the end", _write(EPOCHS, "0\n1\n9 999\n"), "leader-epochs"),
    Damage("an epoch inside a batch", _epoch_begins_inside_a_batch, "leader-epochs"),
    Damage("no topic id", _write("orders-0/partition.metadata", "x"), "partition-metadata", False),
    Damage(
        "another topic id",
        _write("orders-1/partition.metadata", "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABw"),
        "partition-metadata",
        False,
    ),
    Damage(
        "whose folder it is", _write("meta.properties", "version=7\n"), "meta-properties", False
    ),
    Damage("mark of a clean end", _write(".kafka_cleanshutdown", "{"), "clean-shutdown"),
    Damage("recovery point", _write("recovery-point-offset-checkpoint", "0\nx\n"), "checkpoint"),
    Damage(
        "high watermark behind the end",
        _write("replication-offset-checkpoint", "0\n1\norders 0 9999\n"),
        "checkpoint",
    ),
    Damage(
        "log start before 0",
        _write("log-start-offset-checkpoint", "0\n1\norders 0 -5\n"),
        "checkpoint",
    ),
    Damage(
        "cleaner's offset behind the end",
        _write("cleaner-offset-checkpoint", "0\n1\npayments 0 9999\n"),
        "checkpoint",
    ),
]
