"""The simulator's command line: a trace in words, how fast it was, and what failed."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from odradek.common.errors import ErrorCode
from odradek.replication.partition.partition import Partition
from odradek.tools.simulation.command import main
from odradek.tools.simulation.mix import IDLE, LOGS
from odradek.tools.simulation.runs import Run


@pytest.fixture(autouse=True)
def _loud_logs_again() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    "what",
    [
        Run(7),
        Run(3, IDLE, 1.5),
        Run(1, LOGS, 20, frozenset({3, 11, 4})),
        Run(1, LOGS._replace(brokers=5)),
    ],
    ids=str,
)
def test_a_run_is_what_its_line_says(what: Run) -> None:
    assert Run.parse(str(what)) == what


def test_one_seed_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1", "--mix", "logs", "--seconds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "makes topic" in printed
    assert "everything heals" in printed


def test_many_seeds_are_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1-2", "--mix", "idle", "--seconds", "60"]) == 0
    assert "hours a minute" in capsys.readouterr().out


def test_a_failure_is_printed_with_its_replay(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_replicated(partition: Partition, required_offset: int) -> tuple[bool, ErrorCode]:
        return True, ErrorCode.NONE

    monkeypatch.setattr(Partition, "has_replicated", has_replicated)
    assert main(["--seeds", "0-3", "--mix", "logs", "--seconds", "5"]) == 1
    assert "replay: python -m odradek.tools.simulation --seed " in capsys.readouterr().out
