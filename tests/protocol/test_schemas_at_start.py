"""Schemas are imported at first use: what all of them together cost a broker that starts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from support.raw_connection import RawConnection

from odradek.protocol import internal, messages
from odradek.testing.broker_process import BrokerProcess

MILLISECONDS_MAX = 20
IMPORTED = re.compile(r"^import '(odradek\.protocol\.\S+)' #", re.MULTILINE)
IMPORT_TIME = re.compile(r"^import time: +(\d+) \| +\d+ \| +odradek\.protocol(\S*)$", re.MULTILINE)
NOT_ABOUT_MESSAGES = (".records", ".compression")
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


def test_declaring_every_api_costs_a_start_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with logging_broker(tmp_path) as broker:
        # Without what each imports in turn: construct is what any schema needs.
        took = {module: int(each) for each, module in reversed(IMPORT_TIME.findall(broker.log))}
    assert took.keys() >= {".messages", ".api_keys", ".headers"}
    about_messages = {
        module: microseconds
        for module, microseconds in took.items()
        if not module.startswith(NOT_ABOUT_MESSAGES)
    }
    assert sum(about_messages.values()) / 1000 <= MILLISECONDS_MAX, about_messages
