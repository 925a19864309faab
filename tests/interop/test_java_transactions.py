"""Java's transactional producer in the first generation of the protocol.

The second one is in `test_java_groups.py`, with either protocol of groups.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka.protocol.admin import UpdateFeaturesRequest, UpdateFeaturesResponse
from support.raw_connection import RawConnection

from odradek.common.errors import ErrorCode
from odradek.testing.process.broker_process import BrokerProcess

from .conftest import Run

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SAFE_DOWNGRADE = 2


@pytest.mark.parametrize("level", [0, 1])
def test_java_commits_aborts_and_fences_before_transaction_version_2(
    java: Run, start_broker: Callable[..., BrokerProcess], topic: str, level: int
) -> None:
    broker = start_broker()
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="transaction.version", max_version_level=level, upgrade_type=SAFE_DOWNGRADE
    )
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=False)
    with RawConnection(broker.port) as connection:
        answer = connection.ask(request, UpdateFeaturesResponse, 2)
    assert answer.error_code == ErrorCode.NONE
    reported = java("odradek.interop.Transactions", broker.bootstrap, topic, "classic")
    assert reported == "read 60 committed of 120\n"
