"""Which store the settings choose, and which settings it does not start with."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.definition import ConfigError
from odradek.metadata_store.choice import make_store
from odradek.runtime.clock import SystemClock


def test_zookeeper_does_not_get_passwords_that_should_be_encrypted(tmp_path: Path) -> None:
    settings = {"zookeeper.connect": "localhost:2181", "password.encoder.secret": "hidden"}
    with pytest.raises(ConfigError, match=r"password\.encoder\.secret would not be used") as raised:
        make_store(BrokerConfig.from_sources(settings), tmp_path, clock=SystemClock())
    assert "hidden" not in str(raised.value)
