"""Each command on a page is one that there is, also where no test can run it.

What `odradek` is given is read by its own parsers. Of other programs, what a page takes from the
repository must be there; Kafka's tools are run by tests/interop/test_tools_of_pages.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from support.command_lines import read_arguments, simple_commands
from support.documented import PAGES, ROOT, blocks_of, commands_of

COMMANDS = [
    (page, command)
    for page in PAGES
    for block in blocks_of(page, "console")
    for command, _ in commands_of(block)
]
THERE = ("orders.toml", "order.avsc", "orders.proto", "server.properties")
FOLDERS = ("lake", "broker-1/data", "broker-2/data", "broker-3/data", "odradek-data/orders-0")
"""What commands take that must be there before they begin."""


def no_more(words: list[str]) -> None:
    """A program of the system, of which no option is ours."""


def goals(words: list[str]) -> None:
    goals = [word for word in words if "=" not in word]
    assert subprocess.run(["make", "--dry-run", *goals], cwd=ROOT, capture_output=True).stdout


@cache
def help_of(module: str) -> str:
    command = [sys.executable, "-m", module, "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def of_python(words: list[str]) -> None:
    """A script is there, and a module of ours has the options."""
    if words[:2] == ["-m", "pytest"] or words[0] != "-m":
        of_repository(words)
    else:
        options = [word for word in words[2:] if word.startswith("-")]
        assert [each for each in options if each not in help_of(words[1])] == []


def of_repository(words: list[str]) -> None:
    """What lies in a folder of the repository is there."""
    named = [word for word in words if word.split("/")[0] in ("deploy", "tests", "examples")]
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []


def installed(words: list[str]) -> None:
    assert words[0] == "install"
    assert words[1:] == ["."] or re.match(r"(dist/)?odradek-[\d.]+-py3-none-any\.whl", words[1])


def in_container(words: list[str]) -> None:
    """What follows the image's name goes to `odradek serve`."""
    read_arguments(["serve", *words[words.index("odradek") + 1 :]])


PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "make": goals,
    "pip": installed,
    "/opt/odradek/bin/pip": installed,
    "python": of_python,
    ".venv/bin/python": of_python,
    "buildah": of_repository,
    "podman": in_container,
    "kafka-configs.sh": no_more,  # The test named above runs them.
    "kafka-acls.sh": no_more,
    "pytest": no_more,  # The test of its page runs it.
    "curl": no_more,
    "echo": no_more,
    "printf": no_more,
    "export": no_more,
    # They change the machine, so that no test runs them: tests/deploy tests what they install.
    "python3": no_more,
    "useradd": no_more,
    "mkdir": no_more,
    "systemctl": no_more,
    "cp": lambda words: None if words[0] == "server.properties" else of_repository(words),
}
"""How the arguments of each program are looked at. One that is not here fails the test."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in THERE:
        (tmp_path / name).touch()
    for name in FOLDERS:
        (tmp_path / name).mkdir(parents=True)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_the_arguments_are_read(page: str, command: str) -> None:
    for program, *words in simple_commands(command):
        while re.match(r"[A-Z_]+=", program):
            program, *words = words
        if program == "odradek":
            read_arguments(words)
        else:
            PROGRAMS[program](words)
