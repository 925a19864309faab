"""Repairing data folders: what can be known is made good, and nothing good is touched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.data_folders import CONFIG, NOW_MS, ORDERS
from support.log_damage import DAMAGES, Damage, batches_of, flip, segment_paths
from support.selection import short

from odradek.common.errors import KafkaError
from odradek.log_tools.repair.log_repair import Repair, RepairOptions
from odradek.log_tools.repair.root_repair import RepairAction, RepairStep
from odradek.log_tools.verify.finding import Finding
from odradek.log_tools.verify.log_verify import Verification, VerifyOptions
from odradek.log_tools.verify.walk import walk_batches
from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.storage import LogManager
from odradek.storage.io.files import REAL_FILES
from odradek.storage.io.read_only_files import READ_ONLY_FILES

REPAIRED = [damage for damage in DAMAGES if damage.is_repaired]
LEFT = [damage for damage in DAMAGES if not damage.is_repaired]


def repair(*paths: Path, dry_run: bool = False) -> list[RepairStep]:
    files = READ_ONLY_FILES if dry_run else REAL_FILES
    options = RepairOptions(dry_run=dry_run)
    return list(Repair([str(path) for path in paths], options, files=files).steps())


def damages(*paths: Path) -> list[Finding]:
    verification = Verification([str(path) for path in paths], VerifyOptions())
    return [finding for finding in verification.findings() if finding.is_damage]


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def whole_batches(root: Path) -> set[tuple[str, bytes]]:
    """Every sound batch of every log."""
    return set(_whole_batches(root))


def _whole_batches(root: Path) -> Iterator[tuple[str, bytes]]:
    for path in root.glob("*/*.log"):
        data = path.read_bytes()
        file = READ_ONLY_FILES.open(str(path))
        for stretch in walk_batches(file, len(data), int(path.stem)):
            if stretch.batch is not None and stretch.problem is None:
                yield str(path), data[stretch.position : stretch.end]


@pytest.mark.parametrize("damage", REPAIRED, ids=repr)
def test_what_can_be_known_is_made_good(root: Path, damage: Damage) -> None:
    name = damage.do(root)
    before = whole_batches(root)
    steps = repair(root)
    assert str(root / name) in [step.path for step in steps]
    assert RepairAction.LEAVE not in [step.action for step in steps]
    assert damages(root) == []
    assert whole_batches(root) == before
    assert repair(root) == []


@pytest.mark.parametrize("damage", LEFT, ids=repr)
def test_what_cannot_be_known_is_reported_and_left_as_it_is(root: Path, damage: Damage) -> None:
    name = damage.do(root)
    before = contents(root)
    steps = repair(root)
    left = [step.path for step in steps if step.action is RepairAction.LEAVE]
    assert str(root / name) in left
    after = contents(root)
    for path, content in before.items():
        if path.endswith((".log", "metadata", "properties")):
            assert after[path] == content


@pytest.mark.parametrize("damage", short(DAMAGES, 20), ids=repr)
def test_a_dry_run_changes_nothing_and_tells_the_same(root: Path, damage: Damage) -> None:
    damage.do(root)
    before = contents(root)
    planned = repair(root, dry_run=True)
    assert contents(root) == before
    assert repair(root) == planned


@pytest.mark.parametrize(
    "suffix", [".index", ".timeindex", ".txnindex", ".snapshot"], ids=lambda suffix: suffix[1:]
)
def test_files_made_anew_are_what_the_broker_wrote(root: Path, suffix: str) -> None:
    before = contents(root)
    for path in root.glob(f"orders-0/*{suffix}"):
        content = path.read_bytes()
        path.write_bytes(b"\x7f" + content[1:] if suffix != ".index" else content[:-1])
    assert repair(root)
    after = contents(root)
    if suffix in (".txnindex", ".snapshot"):
        assert after == before
    else:  # the intervals of the topic's settings are not known: fewer entries, all of them true
        assert damages(root) == []


def test_indexes_made_anew_have_entries_at_kafkas_intervals(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / "leader-epoch-checkpoint").write_text("0\n0\n")
    batches = [
        bytes(build_batch([(b"key", bytes(1000), 1000 + number, [])], base_offset=number))
        for number in range(50)
    ]
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    (folder / f"{0:020d}.index").write_bytes(b"\1" * 8)
    repair(folder)
    entries = (folder / f"{0:020d}.index").read_bytes()
    size = len(batches[0])
    found = [
        (
            int.from_bytes(entries[at : at + 4], "big"),
            int.from_bytes(entries[at + 4 : at + 8], "big"),
        )
        for at in range(0, len(entries), 8)
    ]
    # more than 4096 bytes lie between one entry and the next
    step = 4096 // size + 1
    assert found == [(number, number * size) for number in range(step, 50, step)]


def test_what_is_cut_is_kept_beside_the_log(root: Path) -> None:
    path = segment_paths(root)[-1]
    whole = path.read_bytes()
    path.write_bytes(whole + b"what a crash left")
    (step,) = repair(root)
    assert step.action is RepairAction.CUT
    assert path.read_bytes() == whole
    copy = path.with_name(f"{path.name}.{len(whole)}.cut")
    assert copy.read_bytes() == b"what a crash left"
    assert copy.name in step.message


def test_zeros_are_cut_without_a_copy(root: Path) -> None:
    path = segment_paths(root)[-1]
    path.write_bytes(path.read_bytes() + bytes(5 << 20))
    repair(root)
    assert not list(path.parent.glob("*.cut"))


def test_whole_batches_behind_a_damaged_one_in_the_last_segment_are_not_cut(root: Path) -> None:
    path = segment_paths(root)[-1]
    batches = batches_of(path)
    assert len(batches) > 2
    flip(path, batches[0].position + 70)
    path.write_bytes(path.read_bytes() + b"torn")
    repair(root)
    assert path.stat().st_size == batches[-1].position + batches[-1].size_in_bytes
    assert [each.kind for each in damages(root)] == ["batch"]


def test_a_log_that_lost_its_last_batch_can_be_written_again(root: Path) -> None:
    """Side files told of the batch that went: a broker finds none of that afterwards."""
    path = segment_paths(root)[-1]
    last = batches_of(path)[-1]
    flip(path, last.position + 70)
    repair(root)
    assert damages(root) == []
    manager = LogManager([str(root)], clock=ManualClock(0), default_config=CONFIG)
    manager.load_logs()
    log = manager.logs[ORDERS]
    assert log.log_end_offset == last.base_offset
    batch = build_batch([(b"key", b"value", NOW_MS, [])])
    log.append_as_leader(memoryview(batch), leader_epoch=3, now_ms=NOW_MS)
    log.flush_appends()
    manager.close()
    assert damages(root) == []


def test_a_checkpoint_that_cannot_be_read_is_put_aside(root: Path) -> None:
    path = root / "replication-offset-checkpoint"
    path.write_text("what is this")
    repair(root)
    assert not path.exists()
    assert path.with_name(path.name + ".damaged").read_text() == "what is this"


def test_offsets_from_behind_the_end_become_the_end_and_others_stay(root: Path) -> None:
    path = root / "replication-offset-checkpoint"
    path.write_text("0\n3\norders 0 9999\norders 1 7\ngone 0 5\n")
    repair(root)
    end = batches_of(segment_paths(root)[-1])[-1].next_offset
    assert sorted(path.read_text().splitlines()[2:]) == sorted(
        [f"orders 0 {end}", "orders 1 7", "gone 0 5"]
    )


def test_the_mark_of_a_clean_end_stays(root: Path) -> None:
    path = segment_paths(root)[-1]
    path.write_bytes(path.read_bytes() + b"torn")
    repair(root)
    assert (root / ".kafka_cleanshutdown").exists()


def test_a_repair_that_the_disk_refuses_can_be_done_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in segment_paths(root)[:3]:
        path.with_suffix(".txnindex").write_bytes(b"no index")
    write = REAL_FILES.write_atomically
    written: list[str] = []

    class FullDisk(type(REAL_FILES)):
        def write_atomically(self, path: str, data: bytes, *, sync: bool = False) -> None:
            if written:
                raise OSError(28, os.strerror(28), path)
            written.append(path)
            write(path, data, sync=sync)

    with pytest.raises(OSError, match="No space"):
        list(Repair([str(root)], RepairOptions(), files=FullDisk()).steps())
    assert damages(root)
    repair(root)
    assert damages(root) == []


def test_repair_never_raises_what_verification_did_not(root: Path) -> None:
    """All at once."""
    for damage in DAMAGES:
        try:
            damage.do(root)
        except (KafkaError, IndexError, StopIteration, FileNotFoundError, ZeroDivisionError):
            continue  # what it damages is gone, or too damaged to be found
    before = whole_batches(root)
    repair(root)
    assert whole_batches(root) == before
    left = {step.action for step in repair(root)}
    assert left <= {RepairAction.LEAVE}
