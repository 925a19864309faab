"""The helps: every command's, whole at any width, and cheap."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from odradek.cli.commands import COMMANDS, load_command
from odradek.cli.help import help_for
from odradek.cli.plain_arguments import declared_parameters

from .conftest import Odradek
from .test_plain_arguments import FUNCTIONS

START_RATIO_MAX = 2.0
"""Of what a start costs at most, beside one that imports trio, which most commands need."""


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
@pytest.mark.parametrize("words", sorted(FUNCTIONS), ids=" ".join)
def test_a_help_is_whole_and_no_wider_than_the_terminal(
    words: tuple[str, ...], columns: int
) -> None:
    text = help_for([*words, "--help"], columns)
    assert text is not None
    for line in text.splitlines():
        assert len(line) <= columns or " " not in line[: columns - 6].strip(), line
    flat = "".join(text.split())
    for each in declared_parameters(FUNCTIONS[words]):
        for option in each.words:
            assert option in flat
        assert re.sub(r"\s", "", each.info.help or "") in flat
    assert "…" not in text


@pytest.mark.parametrize("words", [[], ["--help"], *([name] for name in COMMANDS)], ids=str)
def test_a_group_without_a_command_shows_what_it_has(words: list[str]) -> None:
    text = help_for(words, 80)
    command = load_command(words[0]) if words and words[0] in COMMANDS else None
    if callable(command):
        assert text is None  # it is a command itself
        return
    names = ("serve", *COMMANDS) if command is None else command.commands
    assert all(f"\n  {name}" in str(text) for name in names)


def test_a_long_example_is_one_that_a_shell_reads_whole() -> None:
    text = help_for(["produce", "--help"], 60)
    (example,) = re.findall(r"odradek consume events --from-b(?:.*\\\n)+.*", str(text))
    joined = subprocess.run(
        ["bash", "-c", f"odradek() {{ echo $@; cat; }}; {example}"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert joined.stdout.split() == ["produce", "copy", "--format", "json", *(
        ["consume", "events", "--from-beginning", "-e", "--format", "json"]
    )]  # fmt: skip


def test_the_terminals_width_counts(odradek: Odradek, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    outcome = odradek("consume", "--help")
    assert outcome.code == 0
    assert max(map(len, outcome.lines)) <= 60
    monkeypatch.setenv("COLUMNS", "80")


def cpu_seconds(*arguments: str) -> float:
    """What Python with these arguments costs this machine's CPU, from its start to its end."""
    child = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode in (0, 1, 2), arguments
    return usage.ru_utime + usage.ru_stime


STARTS = [
    *("--help", "--version", "serve --help", "topics --help", "consume --help"),
    *("topics list", "topics describe {topic}", "produce {topic}", "consume {topic} -e"),
    *("groups list", "transactions list", "users list", "quotas list", "acls list"),
    *("cluster --once", "log verify /nowhere", "bench --list", "replay /nowhere"),
]


@pytest.mark.slow
@pytest.mark.clients
@pytest.mark.parametrize("line", STARTS)
def test_a_command_starts_cheaply(on_broker: Odradek, topic: str, line: str) -> None:
    """Little more CPU than what it needs; on a busy machine the best of a few counts."""
    if "{topic}" in line:
        on_broker("topics", "create", topic)
    arguments = line.format(topic=topic).split()
    deadline = time.monotonic() + 60
    found: list[float] = []
    needed: list[float] = []
    while not found or (min(found) > START_RATIO_MAX * min(needed) and time.monotonic() < deadline):
        needed.append(cpu_seconds("-c", "import trio"))
        found.append(cpu_seconds("-m", "odradek", *arguments))
    assert min(found) <= START_RATIO_MAX * min(needed), (found, needed)
