"""The blocks of Python in README.md and docs/ run as they stand, in their order.

What a page takes for granted, such as a broker at its usual port, is there under another name.
docs/testing.md's are run by tests/testing/test_documented_tests.py, docs/spark.md's by
tests/spark/test_spark_page.py.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme
from support.documented import Block, blocks_of

from odradek.client import Consumer, ConsumerSettings, KafkaClient, RecordMetadata, TopicInfo
from odradek.security.authorizer.python_authorizer import ENTRY_POINTS
from odradek.testing import Broker

SECONDS_MAX = 60


def run_whole(block: Block, folder: Path, address: str, page_address: str) -> str:
    """Run a block that is a program; returns what it printed."""
    assert page_address in block.text
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", block.text.replace(page_address, address)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def run_part(block: Block, names: dict[str, Any]) -> None:
    """Run a block that goes on where others ended, with `await` at its top."""
    code = compile(block.text, block.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, names)
    if inspect.iscoroutine(result):
        await result


@pytest.mark.clients
def test_readme(tmp_path: Path) -> None:
    (block,) = blocks_of("README.md", "python")
    with Broker() as broker:
        printed = run_whole(block, tmp_path, broker.bootstrap_servers, "localhost:9092")
    assert printed == "0 b'en' b'hello'\n"


@pytest.mark.clients
def test_recorder(tmp_path: Path) -> None:
    (block,) = blocks_of("docs/recorder.md", "python")
    whole = Block(block.page, "", "", "from kafka import KafkaProducer\n" + block.text)
    with Broker() as broker:
        run_whole(whole, tmp_path, broker.bootstrap_servers, "localhost:9092")
    assert (tmp_path / "run.capture").stat().st_size > 0


@pytest.mark.clients
async def test_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, settings, producing, transactions, consuming, listener, admin = blocks_of(
        "docs/client.md", "python"
    )
    monkeypatch.chdir(tmp_path)
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    broker = await trio.to_thread.run_sync(Broker)
    try:
        address = broker.bootstrap_servers
        await trio.to_thread.run_sync(broker.create_topic, "numbers")
        await trio.to_thread.run_sync(run_whole, first, tmp_path, address, "127.0.0.1:9092")

        names: dict[str, Any] = {}
        await run_part(settings, names)
        assert isinstance(names.pop("client"), KafkaClient)

        with trio.fail_after(SECONDS_MAX):
            async with KafkaClient(address) as client:
                names = {"client": client}
                await run_part(producing, names)
                assert names["place"] == RecordMetadata(
                    "temperatures", 0, 0, names["place"].timestamp
                )
                await run_part(listener, names)
                reads = ConsumerSettings(auto_offset_reset="earliest")
                async with Consumer(
                    client, group_id="squares", topics=["temperatures"], settings=reads
                ) as names["consumer"]:
                    await names["consumer"].poll(1)
                    await run_part(transactions, names)
                printed: list[tuple[object, ...]] = []
                with trio.CancelScope() as scope:

                    def note(*values: object) -> None:
                        printed.append(values)
                        if len(printed) == 2:
                            scope.cancel()  # It reads for ever.

                    names["print"] = note
                    await run_part(consuming, names)
                assert [each[:3] for each in printed] == [
                    ("greetings", 0, 0),
                    (b"key", b"hello", []),
                ]
                await run_part(admin, names)
                assert isinstance(names["topics"]["orders"], TopicInfo)
                assert names["leaders"] == {0: 1, 1: 1, 2: 1}
    finally:
        await trio.to_thread.run_sync(broker.close)


def test_security() -> None:
    """That a broker asks it is tested by tests/clients/test_python_authorizers.py."""
    (block,) = blocks_of("docs/security.md", "python")
    (declared,) = blocks_of("docs/security.md", "toml")
    groups = tomllib.loads(declared.text)["project"]["entry-points"]
    names: dict[str, Any] = {}
    exec(block.text, names)
    assert {group: list(names.values()) for group, names in groups.items()} == {
        ENTRY_POINTS: ["shop.rights:OpeningHours"]
    }
    made = names["OpeningHours"]({"shop.hours": "8-20"})
    assert made.hours == "8-20"
    assert made.authorize("User:alice", "10.0.0.7", "WRITE", "TOPIC", "orders") is True
