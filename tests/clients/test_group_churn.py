"""Twenty members of each client library join and leave a group; a checker watches who owns what.

Each time the group settles, each partition gets a record: it must be read, and each owner must
begin where the last one committed.
"""

from __future__ import annotations

import pytest
from support.group_history import KINDS
from support.own_process import run_in_own_process
from support.selection import short

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

SHORT, LONG = 20, 200
SHORT_SECONDS_MAX, LONG_SECONDS_MAX = 280.0, 590.0
SLOW_KINDS = {"confluent classic cooperative", "mixed classic cooperative-sticky"}
OFTEN = [kind for kind in KINDS if kind not in SLOW_KINDS]
"""librdkafka waits a second in each of the two steps of a cooperative rebalance."""


@pytest.mark.parametrize("kind", short(OFTEN, 1))
def test_no_partition_has_two_owners_or_none_as_members_come_and_go(
    broker, topic: str, kind: str
) -> None:
    where = (kind, broker.bootstrap, topic)
    run_in_own_process("group_history", "churn", *where, str(SHORT), seconds_max=SHORT_SECONDS_MAX)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_no_partition_has_two_owners_or_none_in_a_long_life(broker, topic: str, kind: str) -> None:
    where = (kind, broker.bootstrap, topic)
    run_in_own_process("group_history", "churn", *where, str(LONG), seconds_max=LONG_SECONDS_MAX)


@pytest.mark.parametrize("kind", short(OFTEN, 1))
def test_static_members_restart_without_a_rebalance(broker, topic: str, kind: str) -> None:
    where = (kind, broker.bootstrap, topic)
    run_in_own_process("group_history", "static", *where, "0", seconds_max=SHORT_SECONDS_MAX)
