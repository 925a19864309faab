"""Schemas are imported at first use: what all of them together cost a broker that starts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from support.raw_connection import RawConnection

from odradek.protocol import internal, messages
from odradek.testing.process.broker_process import BrokerProcess

SHARE_MAX = 0.06
"""Of the time that all imports of a start take."""
STARTS = 5
IMPORTED = re.compile(r"^import '(odradek\.protocol\.\S+)' #", re.MULTILINE)
IMPORT_TIME = re.compile(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", re.MULTILINE)
PROTOCOL = "odradek.protocol"
NOT_ABOUT_MESSAGES = (f"{PROTOCOL}.records", f"{PROTOCOL}.compression")
SCHEMAS = {
    f"{package.__name__}.{name}"
    for package in (messages, internal)
    for name in package.names_by_module()
}


def logging_broker(folder: Path) -> BrokerProcess:
    return BrokerProcess(folder / "data", log_path=folder / "log")


def schemas_imported(broker: BrokerProcess) -> set[str]:
    """The modules that declare messages and that the broker has imported so far."""
    return {module.rpartition(".")[2] for module in SCHEMAS & set(IMPORTED.findall(broker.log))}


def test_a_broker_imports_the_schemas_that_its_clients_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONVERBOSE", "1")
    with logging_broker(tmp_path) as broker:
        at_start = schemas_imported(broker)
        with RawConnection(broker.port) as connection:
            connection.send(ApiVersionsRequest(), 2)
            connection.receive_frame()
            connection.send(MetadataRequest(topics=[]), 8)
            connection.receive_frame()
        assert schemas_imported(broker) == at_start | {"api_versions", "metadata"}
    assert len(at_start) <= 3, at_start


def import_times(folder: Path) -> dict[str, int]:
    """Microseconds that each module took in a start, without what it imports."""
    folder.mkdir()
    with logging_broker(folder) as broker:
        # Of a module imported twice the first time counts.
        return {module: int(each) for each, module in reversed(IMPORT_TIME.findall(broker.log))}


@pytest.mark.slow
def test_declaring_every_api_costs_a_start_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As an installed package starts: compiled once, not at each of the starts.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "compiled"))
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    starts = [import_times(tmp_path / str(number)) for number in range(STARTS)]
    # Each module as fast as it came once: whatever else the machine did is not its cost.
    fastest = {module: min(start[module] for start in starts) for module in starts[0]}
    about_messages = {
        module: each
        for module, each in fastest.items()
        if module.startswith(PROTOCOL) and not module.startswith(NOT_ABOUT_MESSAGES)
    }
    assert {f"{PROTOCOL}.{name}" for name in ("messages", "api_keys", "headers")} <= set(fastest)
    share = sum(about_messages.values()) / sum(fastest.values())
    assert share <= SHARE_MAX, about_messages
