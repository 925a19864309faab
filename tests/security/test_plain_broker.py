"""What nobody has configured costs no start: the modules of security that a plain broker has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kafka.protocol.metadata import MetadataRequest
from support.raw_connection import RawConnection

from odradek.testing.process.broker_process import BrokerProcess

IMPORTED = re.compile(r"^import '([\w.]+)' #", re.MULTILINE)
OF_SECURITY = re.compile(
    r"odradek\.(security|client\.security|protocol\.sasl|broker\.request\.quotas)\."
    r"|odradek\.broker\.dynamic_config\.(acl|token)_manager"
    r"|cryptography|jwt|gssapi"
)
FOR_EVERY_BROKER = {"odradek.broker.request.quotas.quota_table"}
"""The place where quotas would be."""


def of_security(folder: Path, **settings: str) -> set[str]:
    """Those that a broker imports until it has answered a client."""
    broker = BrokerProcess(
        folder / "data",
        log_path=folder / "log",
        settings={name.replace("_", "."): text for name, text in settings.items()},
    )
    with broker, RawConnection(broker.port) as connection:
        connection.send(MetadataRequest(topics=[]), 8)
        connection.receive_frame()
        return {name for name in IMPORTED.findall(broker.log) if OF_SECURITY.match(name)}


def test_a_plain_broker_imports_nothing_of_security(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONVERBOSE", "1")
    (tmp_path / "plain").mkdir()
    assert of_security(tmp_path / "plain") == FOR_EVERY_BROKER
    (tmp_path / "closed").mkdir()
    known = {"delegation_token_secret_key": "key"}
    assert of_security(tmp_path / "closed", **known) > set()
