"""What the tests of the controller share: a cluster's store, and an elected controller on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.cluster import Cluster
from support.elected import ElectedController, elected_controller


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


@pytest.fixture
async def controller(cluster: Cluster) -> AsyncIterator[ElectedController]:
    async with elected_controller(cluster) as controller:
        yield controller
