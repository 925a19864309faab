"""The command line itself: dispatch, help, and errors in one sentence."""

from __future__ import annotations

import socket
import subprocess
import sys
import time

import pytest
from support.ports import nobody_listens

from .conftest import Odradek


def test_serve_is_dispatched_before_anything_heavy_is_imported() -> None:
    program = """
import sys
from odradek.cli.main import main
try:
    main(["serve", "--help"])
except SystemExit as leaving:
    print("code", leaving.code)
heavy = {"typer", "rich", "kafka", "pyspark", "pandas", "odradek.bench"}
print("heavy", sorted(heavy & set(sys.modules)))
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert "--data-dir" in answer.stdout
    assert "code 0" in answer.stdout
    assert "heavy []" in answer.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["topics", "list", "--bootstrap-server", "nowhere"],
        ["consume", "events", "--bootstrap-server", "nowhere"],
        ["log", "verify", "/nowhere"],
        ["groups", "--help"],
        ["--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_a_plain_command_starts_without_typer(words: list[str]) -> None:
    program = f"""
import sys
from odradek.cli.main import main
main({words})
heavy = {{"typer", "pydantic", "rich", "kafka", "pyspark", "pandas", "odradek.spark_connector"}}
print("heavy", sorted(heavy & set(sys.modules)))
"""
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert answer.stdout.splitlines()[-1] == "heavy []"
    assert "Traceback" not in answer.stderr


def test_the_module_runs_as_the_command() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "odradek", "--version"], capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0
    assert answer.stdout.startswith("odradek ")


def test_help_names_every_command_and_shows_how_to_begin(odradek: Odradek) -> None:
    outcome = odradek("--help")
    assert outcome.code == 0
    commands = ("serve", "topics", "produce", "consume", "groups", "transactions", "demo")
    for command in (*commands, "record", "replay", "bench"):
        assert command in outcome.out
    assert "odradek topics create events" in outcome.out


@pytest.mark.parametrize(
    "command",
    [
        ("topics", "list"),
        ("topics", "create"),
        ("topics", "describe"),
        ("topics", "delete"),
        ("topics", "add-partitions"),
        ("topics", "alter"),
        ("groups", "list"),
        ("groups", "describe"),
        ("groups", "delete"),
        ("groups", "delete-offsets"),
        ("groups", "reset-offsets"),
        ("transactions", "list"),
        ("transactions", "describe"),
        ("transactions", "describe-producers"),
        ("transactions", "find-hanging"),
        ("transactions", "abort"),
        ("transactions", "force-terminate"),
        ("users", "list"),
        ("users", "add"),
        ("users", "remove"),
        ("acls", "list"),
        ("acls", "add"),
        ("acls", "remove"),
        ("acls", "explain"),
        ("quotas", "list"),
        ("quotas", "set"),
        ("quotas", "remove"),
        ("tokens", "list"),
        ("tokens", "create"),
        ("tokens", "renew"),
        ("tokens", "expire"),
        ("produce",),
        ("consume",),
        ("record",),
        ("replay",),
        ("bench",),
        ("demo",),
    ],
    ids=" ".join,
)
def test_every_command_explains_itself_with_an_example(
    odradek: Odradek, command: tuple[str, ...]
) -> None:
    outcome = odradek(*command, "--help")
    assert outcome.code == 0
    shown_usage, *explanation = outcome.out.split(f"odradek {' '.join(command)}")
    assert len(explanation) >= 2, "its name stands in the usage line and in an example"
    assert "Usage" in shown_usage


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "list"),
        ("produce", "t"),
        ("consume", "t"),
        ("groups", "list"),
        ("transactions", "list"),
    ],
)
def test_no_broker_is_one_sentence_with_the_next_step(
    odradek: Odradek, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr("odradek.cli.common.connection.CONNECT_TIMEOUT_MS", 300)
    with nobody_listens() as address:
        outcome = odradek(*arguments, "--bootstrap-server", address)
    assert outcome.code == 1
    assert outcome.err == (
        f"odradek: error: no broker answers at {address}; start one with"
        " 'odradek serve', or give the address of another with --bootstrap-server\n"
    )
    assert outcome.out == ""


def test_a_silent_peer_is_no_broker_either(
    odradek: Odradek, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.cli.common.connection.CONNECT_TIMEOUT_MS", 500)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        started = time.monotonic()
        port = listener.getsockname()[1]
        outcome = odradek("topics", "list", "-b", f"127.0.0.1:{port}")
    assert outcome.code == 1
    assert outcome.err.startswith("odradek: error: no broker answers at")
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("address", ["nowhere", "host:", ":9092", "host:0", "host:65536", "a:1,b"])
def test_what_is_no_address_is_reported(odradek: Odradek, address: str) -> None:
    outcome = odradek("topics", "list", "-b", address)
    assert outcome.code == 1
    assert "is no broker's address; write HOST:PORT" in outcome.err


def test_a_name_that_no_host_can_have_is_reported(odradek: Odradek) -> None:
    outcome = odradek("topics", "list", "-b", "a..b:9092")
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "no broker answers at a..b:9092" in outcome.err


def test_a_choice_that_there_is_not_is_told_with_those_that_there_are(odradek: Odradek) -> None:
    outcome = odradek("completion", "tcsh")
    assert outcome.code == 2
    assert "Invalid value for 'SHELL': 'tcsh' is not one of 'bash', 'zsh', 'fish'." in outcome.err


def test_an_unknown_command_is_a_usage_error(odradek: Odradek) -> None:
    outcome = odradek("frobnicate")
    assert outcome.code == 2
    assert "No such command 'frobnicate'" in outcome.err


NOT_UTF_8 = b"\xff\xfe"


@pytest.mark.clients
@pytest.mark.parametrize(
    "words",
    [
        [b"topics", b"describe", NOT_UTF_8],
        [b"consume", NOT_UTF_8],
        [b"consume", b"t", b"-f", b"%s" + NOT_UTF_8],
        [b"produce", b"t", b"-k", NOT_UTF_8],
        [b"produce", b"t", b"-H", b"name=" + NOT_UTF_8],
        [b"groups", b"describe", NOT_UTF_8],
    ],
)
def test_what_is_not_utf_8_is_one_sentence(on_broker: Odradek, words: list[bytes]) -> None:
    on_broker("topics", "create", "t", "--if-not-exists")
    answer = subprocess.run(
        [sys.executable, "-m", "odradek", *words], input=b"x\n", capture_output=True, timeout=120
    )
    assert answer.stderr == b"odradek: error: what was given on the command line is not UTF-8\n"
    assert answer.returncode == 1


@pytest.mark.clients
@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("PYTHONIOENCODING=ascii odradek topics list", 0, ""),
        ("odradek topics list >&-", 0, ""),
        ("odradek produce t <&-", 0, "produced 0 records"),
        ("odradek topics list 2>&-", 0, ""),
        ("odradek topics list > /dev/full", 1, "odradek: error: No space left on device\n"),
        ("NO_COLOR=1 COLUMNS=60 odradek topics list", 0, ""),
    ],
)
def test_standard_streams_may_be_of_any_kind(
    on_broker: Odradek, line: str, code: int, error: str
) -> None:
    on_broker("topics", "create", "t", "--if-not-exists")
    program = f'odradek() {{ {sys.executable} -m odradek "$@"; }}; {line}'
    answer = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=120)
    assert answer.returncode == code
    assert answer.stderr.startswith(error) if error else not answer.stderr
    assert "\x1b" not in answer.stdout


def test_output_to_a_closed_pipe_ends_quietly() -> None:
    # head has read enough long before the help is over.
    answer = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{sys.executable} -m odradek consume --help | head -1"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in answer.stderr
