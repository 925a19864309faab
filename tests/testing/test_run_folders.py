"""The folder in which the processes of a run tell each other of its brokers."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from odradek.testing.fixtures import shared_brokers
from odradek.testing.fixtures.shared_brokers import SharedBrokers
from odradek.testing.process.broker_process import BrokerStartError

OWNER = 1234


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folder of the run is to be; it is not there yet."""
    path = tmp_path / "run"
    monkeypatch.setattr(shared_brokers, "run_folder", lambda owner: path)
    return path


def plant(folder: Path, victim: Path) -> None:
    """Write down a broker that has another folder than a broker's."""
    facts = {"bootstrap_servers": "", "pid": 0, "log_path": None, "folder": str(victim)}
    facts |= {"tls": None, "control_address": "", "control_token": ""}
    (folder / "planted.json").write_text(json.dumps(facts))


def test_what_others_may_have_written_into_the_folder_removes_nothing(
    folder: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    folder.mkdir()
    folder.chmod(0o777)
    plant(folder, victim)
    SharedBrokers(OWNER).close()
    assert victim.is_dir()


def test_a_link_in_place_of_the_folder_removes_nothing(folder: Path, tmp_path: Path) -> None:
    victim, elsewhere = tmp_path / "victim", tmp_path / "elsewhere"
    victim.mkdir()
    elsewhere.mkdir(mode=0o700)
    plant(elsewhere, victim)
    folder.symlink_to(elsewhere)
    SharedBrokers(OWNER).close()
    assert victim.is_dir()
    with pytest.raises(BrokerStartError, match="remove it"):
        SharedBrokers(OWNER).broker({})


def test_the_folder_may_be_in_one_whose_group_is_inherited(folder: Path) -> None:
    folder.parent.chmod(stat.S_ISGID | 0o700)
    brokers = SharedBrokers(OWNER)
    assert shared_brokers._own_folder(folder) == folder
    assert stat.S_IMODE(folder.stat().st_mode) & 0o777 == 0o700
    brokers.close()
    assert not folder.exists()


def test_a_note_is_there_as_a_whole_and_for_its_user_only(tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    note.with_suffix(".partial").write_text("what a worker left that was killed")
    usual = os.umask(0)
    try:
        shared_brokers._write_whole(note, "{}")
    finally:
        os.umask(usual)
    assert note.read_text() == "{}"
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["note.json"]
