"""`odradek ...` run in this process, with its own standard streams."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import pytest

from odradek.cli.main import main


class Outcome(NamedTuple):
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of standard output."""
        return self.out.splitlines()


Odradek = Callable[..., Outcome]
ANSWER_MS_MAX = 90_000


@pytest.fixture
def odradek(monkeypatch: pytest.MonkeyPatch) -> Odradek:
    """Run a command line: `odradek("topics", "list", stdin=b"...")`."""

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with redirect_stdout(out), redirect_stderr(err):
            code = main([str(argument) for argument in arguments])
        texts = []
        for stream in (out, err):
            stream.flush()
            assert isinstance(stream.buffer, io.BytesIO)
            texts.append(stream.buffer.getvalue().decode())
        return Outcome(code, *texts)

    return run


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands wait for a broker that is there, however long a busy machine holds it up."""
    monkeypatch.setattr("odradek.cli.common.connection.CONNECT_TIMEOUT_MS", ANSWER_MS_MAX)
    monkeypatch.setattr("odradek.cli.cluster.command.ANSWER_MS_MAX", ANSWER_MS_MAX)


@pytest.fixture
def on_broker(
    odradek: Odradek, broker: Any, patience: None, monkeypatch: pytest.MonkeyPatch
) -> Odradek:
    """The same, with the broker's address in the environment; a failing command fails the test
    unless `code` says that it should."""
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", broker.bootstrap)

    def run(*arguments: object, stdin: bytes = b"", code: int = 0) -> Outcome:
        outcome = odradek(*arguments, stdin=stdin)
        assert outcome.code == code, outcome.err
        return outcome

    return run
