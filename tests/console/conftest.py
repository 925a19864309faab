"""Consoles of the tests' broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.console import Console


@pytest.fixture(scope="module")
def console(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console that may change things."""
    log = tmp_path_factory.mktemp("console") / "log"
    with Console(broker.bootstrap, log, ["--console-write"]) as started:
        yield started
    assert "Traceback" not in log.read_text()
