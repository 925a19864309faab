"""Completion in real shells, installed as its help says: commands, and names of the cluster."""

from __future__ import annotations

import inspect
import os
import pty
import re
import select
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.cli.completion.scripts import completion

from .conftest import Odradek

Type = Callable[[str], str]

PROMPT = b"ready> "
TRIES_MAX = 8


@pytest.fixture
def with_odradek(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with an empty home, who has `odradek` on the PATH."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "odradek"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m odradek "$@"\n')
    program.chmod(0o755)
    path = os.pathsep.join((str(program.parent), os.environ["PATH"]))
    return {**os.environ, "HOME": str(tmp_path), "PATH": path, "TERM": "dumb", "LC_ALL": "C.UTF-8"}


@contextmanager
def at_the_prompt(command: list[str], environment: dict[str, str]) -> Iterator[Type]:
    """A shell that completes; called with what is typed, it returns the line that comes of it."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    read_until(ours, PROMPT)

    def typed(text: str) -> str:
        # What echo shows is what the line was when it was ended; ^A goes to its beginning.
        os.write(ours, text.encode() + b"\t" + b"\x01echo '<'\x05'>'\n")
        return read_until(ours, b">\r\n" + PROMPT).rsplit(b"\n<", 1)[1].split(b">")[0].decode()

    try:
        yield typed
    finally:
        child.kill()
        child.wait()
        os.close(ours)


@pytest.fixture
def bash(tmp_path: Path, with_odradek: dict[str, str]) -> Iterator[Type]:
    (tmp_path / ".bashrc").write_text(f"PS1='{PROMPT.decode()}'\n")
    install("bash", with_odradek)
    (tmp_path / "inputrc").write_text("set bell-style none\nset show-all-if-ambiguous on\n")
    environment = {**with_odradek, "INPUTRC": str(tmp_path / "inputrc")}
    with at_the_prompt(["bash", "-i"], environment) as typed:
        yield typed


@pytest.fixture
def zsh(tmp_path: Path, with_odradek: dict[str, str]) -> Iterator[Type]:
    plain = "setopt no_prompt_sp no_prompt_cr no_beep; bindkey -e"
    no_escapes = "zmodload zsh/zle; unset zle_bracketed_paste"
    (tmp_path / ".zshrc").write_text(f"PS1='{PROMPT.decode()}'; {plain}; {no_escapes}\n")
    install("zsh", with_odradek)
    with at_the_prompt(["zsh", "-o", "no_global_rcs", "-i"], with_odradek) as typed:
        yield typed


@pytest.fixture
def fish(with_odradek: dict[str, str]) -> Type:
    """Fish's own command for what it would complete; there is no prompt to be asked."""
    subprocess.run(["fish", "--command", "true"], env=with_odradek, timeout=60, check=True)
    install("fish", with_odradek)

    def typed(text: str) -> str:
        found = subprocess.run(
            ["fish", "--command", f"complete --do-complete {shlex.quote(text)}"],
            env=with_odradek, capture_output=True, text=True, timeout=60, check=True,
        ).stdout.splitlines()  # fmt: skip
        return f"{text.rpartition(' ')[0]} {found[0].partition(chr(9))[0]}" if found else text

    return typed


def install(shell: str, environment: dict[str, str]) -> None:
    """What the help of `odradek completion` says that a user does."""
    documented = inspect.getdoc(completion) or ""
    (line,) = re.findall(rf"^.*odradek completion {shell} .*$", documented, re.MULTILINE)
    subprocess.run(["bash", "-c", line], env=environment, timeout=60, check=True)


def read_until(terminal: int, end: bytes) -> bytes:
    data = b""
    deadline = time.monotonic() + 60
    while not data.endswith(end):
        assert select.select([terminal], [], [], deadline - time.monotonic())[0], data
        data += os.read(terminal, 4096)
    return data


def candidates(line: str, shell: str = "fish") -> list[str]:
    answer = subprocess.run(
        [sys.executable, "-m", "odradek", "__complete", shell, line],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (answer.returncode, answer.stderr) == (0, "")
    return answer.stdout.splitlines()


def patiently(complete: Callable[[], str], expected: str) -> str:
    """What comes of it, tried again while a busy machine takes longer than a shell waits."""
    found = [complete()]
    while found[-1] != expected and len(found) < TRIES_MAX:
        found.append(complete())
    return found[-1]


@pytest.mark.clients
@pytest.mark.parametrize(
    "shell",
    ["bash", *(pytest.param(shell, marks=pytest.mark.slow) for shell in ("zsh", "fish"))],
)
def test_a_shell_completes_names_of_the_cluster(
    on_broker: Odradek, broker: object, request: pytest.FixtureRequest, shell: str, topic: str
) -> None:
    name, group = f"{shell}-{topic}", f"group-of-{shell}"
    on_broker("topics", "create", name)
    on_broker("consume", name, "--group", group, "--until-end")
    address = shlex.quote(os.environ["ODRADEK_BOOTSTRAP_SERVER"])
    alter = f"odradek topics alter {name} -c retention.m"
    typed: Type = request.getfixturevalue(shell)
    for text, whole in (
        ("odradek tran", "odradek transactions"),
        ("odradek topics desc", "odradek topics describe"),
        ("odradek consume --from-b", "odradek consume --from-beginning"),
        (f"odradek topics describe {shell}-t", f"odradek topics describe {name}"),
        (f"odradek consume -b {address} {shell}-t", f"odradek consume -b {address} {name}"),
        (f"odradek groups describe {group[:-1]}", f"odradek groups describe {group}"),
        (alter, f"{alter}s="),
        ("odradek consume x --isolation read_c", "odradek consume x --isolation read_committed"),
    ):  # fmt: skip
        assert patiently(lambda text=text: typed(text).strip(), whole) == whole


@pytest.mark.slow
def test_zsh_offers_files_where_nothing_else_may_stand(zsh: Type, tmp_path: Path) -> None:
    (tmp_path / "orders.txt").touch()
    whole = f"odradek produce --file {tmp_path}/orders.txt"
    assert patiently(lambda: zsh(whole.removesuffix("s.txt")).strip(), whole) == whole


@pytest.mark.clients
@pytest.mark.parametrize(
    ("line", "among"),
    [
        ("odradek ", "topics"),
        ("odradek topics ", "add-partitions"),
        ("odradek configs describe --broker 1 log.cl", "log.cleaner.threads"),
        ("odradek configs alter --broker-defaults message.m", "message.max.bytes="),
        ("odradek configs unset --group g consumer.s", "consumer.session.timeout.ms"),
        ("odradek produce --compression=", None),
        ("odradek produce --file ", None),
        ("odradek nothing ", None),
        ("odradek consume 'open quote", None),
    ],
)
def test_what_may_stand_there(on_broker: Odradek, line: str, among: str | None) -> None:
    on_broker("topics", "create", "any", "--if-not-exists")
    if among is None:
        assert candidates(line) == []
    else:
        assert patiently(lambda: among if among in candidates(line) else "", among) == among


def test_a_cluster_that_does_not_answer_holds_up_no_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that is silent, where a command would wait for five seconds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", f"127.0.0.1:{silent.getsockname()[1]}")
        started_s = time.monotonic()
        assert candidates("odradek topics describe a") == []
        assert time.monotonic() - started_s < 4.5


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_for_a_shell_are_printed(odradek: Odradek, shell: str) -> None:
    outcome = odradek("completion", shell)
    assert f"odradek __complete {shell}" in outcome.out
