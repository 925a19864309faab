"""franz-go against the broker."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def test_go_client_produces_consumes_and_administers(go_program, run, broker, topic: str) -> None:
    reported = run(go_program, broker.bootstrap, topic)

    assert reported == "produced and consumed 5000 records\n"
