"""The files and commands of docs/security.md do what the page says, in its order."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from support.documented import blocks_of, commands_of

from odradek.testing.process.broker_process import BrokerProcess

from .conftest import Odradek

PAGE = "docs/security.md"
PASSWORDS = {"admin": b"change-me\n", "alice": b"wonderland\n"}
SERVE = "odradek serve --config server.properties --data-dir odradek-data"
PORT = "127.0.0.1:0"


@pytest.mark.slow
def test_the_page_runs_as_it_stands(
    odradek: Odradek, patience: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the port, which may be another program's, and passwords, which nobody types.

    Kafka's tools are run by tests/interop/test_tools_of_pages.py, and settings that are no whole
    file are read by tests/docs/test_properties_blocks.py.
    """
    monkeypatch.chdir(tmp_path)
    broker: BrokerProcess | None = None
    printed: list[str] = []
    try:
        for block in blocks_of(PAGE):
            if block.argument:
                name = block.argument.removeprefix('title="').removesuffix('"')
                Path(name).write_text(block.text.replace("localhost:9092", PORT))
            if block.language != "console":
                continue
            for command, _ in commands_of(block):
                if command.startswith("kafka-"):
                    continue
                if command == SERVE:
                    broker = served(tmp_path)
                    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", broker.bootstrap)
                    continue
                printed.append(run(odradek, command))
    finally:
        if broker is not None:
            broker.kill()
    assert broker is not None
    assert len(printed) >= 16
    whole = "".join(printed)
    assert "User:alice may not Write topic orders\n" in whole
    assert "because this ACL denies it: --deny User:alice --operation Write" in whole


def served(folder: Path) -> BrokerProcess:
    """The broker of the page, on the port that it is given."""
    return BrokerProcess(
        folder / "odradek-data",
        settings={"listeners": f"SASL_PLAINTEXT://{PORT}"},
        arguments=["--config", "server.properties"],
    )


def run(odradek: Odradek, command: str) -> str:
    """Run a command; returns what it printed. The test fails if it does."""
    stdin = b""
    if " | " in command:
        said, _, command = command.partition(" | ")
        stdin = f"{shlex.split(said)[1]}\n".encode()
    words = shlex.split(command)
    assert words[0] == "odradek"
    if words[1:3] == ["users", "add"]:
        stdin = PASSWORDS[words[3]]
    outcome = odradek(*words[1:], stdin=stdin)
    assert outcome.code == 0, f"{command}: {outcome.err}"
    return outcome.out
