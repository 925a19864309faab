"""A driver that is killed and started again goes on from its checkpoint, with either source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.spark_rows import by_place, fill, rows_of
from support.stream_worker import SOURCES, Job, StreamWorker, start_queries

from odradek.testing.waiting import wait_until

from .conftest import Topics

pytestmark = pytest.mark.spark

PARTITIONS = 3
COUNT = 3_000
BATCH = 50
"""Many batches: one query may do a good deal of them before the other has done its first two."""
RUN_SECONDS_MAX = 240.0


def batches_begun(folder: Path, source: str) -> int:
    """How many batches a query has settled the offsets of."""
    names = (path.name for path in (folder / f"checkpoint-{source}" / "offsets").glob("[0-9]*"))
    return 1 + max(map(int, names), default=-1)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.soak)])
def test_a_killed_driver_goes_on_and_gives_each_record_once(
    spark: Any, topics: Topics, tmp_path: Path, kills: int
) -> None:
    topic = topics.create(partitions=PARTITIONS)
    produced = fill(topics.bootstrap, topic, COUNT, PARTITIONS)
    job = Job(topics.bootstrap, topic, str(tmp_path), BATCH, ends=False)
    log = tmp_path / "worker.log"
    for _ in range(kills):
        begun = {source: batches_begun(tmp_path, source) for source in SOURCES}
        with StreamWorker(job, log) as worker:

            def has_gone_on(worker: StreamWorker = worker, begun: dict[str, int] = begun) -> bool:
                assert not worker.has_ended, log.read_text()[-3000:]
                return all(batches_begun(tmp_path, each) >= begun[each] + 2 for each in SOURCES)

            wait_until(has_gone_on, RUN_SECONDS_MAX, lambda: log.read_text()[-3000:])
    assert all(batches_begun(tmp_path, each) < COUNT / BATCH for each in SOURCES)
    produced += fill(topics.bootstrap, topic, 300, PARTITIONS, first=COUNT)
    last = job._replace(ends=True, offsets_per_batch=COUNT // 2)
    for query in start_queries(spark, last).values():
        assert query.awaitTermination(RUN_SECONDS_MAX)
    for source in SOURCES:
        found = rows_of(spark.read.parquet(str(tmp_path / f"table-{source}")))
        assert found == by_place(produced), source
