"""What docs/troubleshooting.md says that odradek prints is what it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from support.documented import ROOT
from support.ports import nobody_listens

from odradek.testing import Broker, conditions

SECONDS_MAX = 60
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
MESSAGES = re.findall(r"^\| `([^`]+)` \|", PAGE.partition("## What clients say")[0], re.MULTILINE)


def printed(folder: Path, *arguments: str) -> str:
    """What a command that fails says."""
    done = subprocess.run(
        [sys.executable, "-m", "odradek", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode != 0
    return done.stderr


@pytest.mark.slow
def test_each_message_is_one_that_a_user_sees(tmp_path: Path) -> None:
    with Broker() as broker, nobody_listens() as nobody:
        address = broker.bootstrap_servers
        broker.create_topic("read")
        consumer = Consumer({"bootstrap.servers": address, "group.id": "readers"})
        consumer.subscribe(["read"])
        broker.wait_until(conditions.group_in_state("readers", "Stable"))
        seen = [
            printed(tmp_path, "serve", "--listen", address, "--data-dir", "mine"),
            printed(
                tmp_path,
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--data-dir",
                str(broker.folder / "data"),
            ),
            printed(tmp_path, "serve", "-o", "num.partition=3"),
            printed(tmp_path, "topics", "list", "-b", nobody),
            printed(tmp_path, "consume", "none", "--from-beginning", "-b", address),
            printed(tmp_path, "acls", "list", "-b", address),
            printed(tmp_path, "groups", "delete", "readers", "-b", address),
            printed(
                tmp_path,
                *("groups", "reset-offsets", "readers", "--all-topics", "--to-earliest"),
                *("--execute", "-b", address),
            ),
        ]
        consumer.close()
    for message in MESSAGES:
        parts = [part for part in message.replace("…?", "…").split("…") if part]
        assert any(all(part in text for part in parts) for text in seen), message
