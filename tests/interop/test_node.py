"""KafkaJS against the broker."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def test_node_client_produces_consumes_and_administers(node, broker, topic: str) -> None:
    reported = node("roundtrip.js", broker.bootstrap, topic)

    assert reported == "produced and consumed 3000 records\n"
