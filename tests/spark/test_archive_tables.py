"""Topics to tables of Iceberg, in several catalogs: each record once, as a reader other than Spark
sees it, whoever else writes and whatever is killed."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from support.copied_flights import PARTITIONS, produce_flights
from support.iceberg_catalogs import Catalog, RestCatalogServer
from support.pipeline_worker import PipelineRun
from support.schema_registry_server import schema_registry

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.decoding import Schema
from odradek.spark_connector.pipelines import (
    ArchiveSettings,
    ReplaySettings,
    TableLocation,
    TopicSource,
    TopicTarget,
    ValueSettings,
    archive_topics,
    replay_archive,
)
from odradek.spark_connector.pipelines.archive.formats import table_at
from odradek.spark_connector.pipelines.archive.iceberg import CATALOG, POSITION
from odradek.spark_connector.pipelines.archive.position import ArchivePosition

from .conftest import START_MS, Produced, Topics

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

TABLE = "topics.records"


@pytest.fixture(params=["hadoop", "jdbc", "rest"])
def any_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    if request.param == "rest":
        with RestCatalogServer(tmp_path) as server:
            yield server.catalog
    else:
        yield {"hadoop": Catalog.hadoop, "jdbc": Catalog.jdbc}[request.param](tmp_path)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog.hadoop(tmp_path)


def settings_of(topics: Topics, topic: str, catalog: Catalog, **more: Any) -> ArchiveSettings:
    """Of an archive of one topic, by the source without a jar, which is the quicker one."""
    source = TopicSource(topics.bootstrap, (topic,), format="odradek")
    return ArchiveSettings(
        source, str(catalog.warehouse), "iceberg", catalog=catalog.properties, **more
    )


def sql(spark: Any, catalog: Catalog, statement: str) -> list[Any]:
    """What another program does to the table: `{table}`, and `{call}` for a procedure."""
    session = spark.newSession()
    table_at(session, "iceberg", TableLocation(str(catalog.warehouse), catalog.properties))
    text = statement.format(table=f"{CATALOG}.{TABLE}", call=f"CALL {CATALOG}.system")
    rows: list[Any] = session.sql(text).collect()
    return rows


def assert_holds(catalog: Catalog, produced: list[Produced], table: str = TABLE) -> None:
    """Each record is in the table once, with its key, value and time."""
    found = [
        (row["partition"], row["offset"], row["timestamp"], row["key"], row["value"])
        for row in catalog.rows(table)
    ]
    assert found == sorted(
        (
            each.partition,
            each.offset,
            datetime.fromtimestamp(each.timestamp_ms / 1000, UTC),
            each.key,
            each.value,
        )
        for each in produced
    )


def test_a_table_of_any_catalog_has_each_record_once(
    spark: Any, topics: Topics, any_catalog: Catalog
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 40)
    settings = settings_of(
        topics,
        topic,
        any_catalog,
        table="shop.orders",
        partition_by=("days(timestamp)", "bucket(4, key)"),
        offsets_per_batch_max=30,
    )
    progress: list[Any] = []
    first = archive_topics(spark, settings, progress.append)
    assert (first.rows, first.batches) == (40, 2)
    assert [(each.rows, each.lag) for each in progress] == [(0, 40), (30, 10), (40, 0)]
    assert_holds(any_catalog, produced, "shop.orders")
    fields = {
        field.name: str(field.transform) for field in any_catalog.table("shop.orders").spec().fields
    }
    assert fields == {"timestamp_day": "day", "key_bucket": "bucket[4]"}
    assert archive_topics(spark, settings).rows == 0
    produced += topics.fill(topic, 7, first=40)
    assert archive_topics(spark, settings).rows == 7
    assert_holds(any_catalog, produced, "shop.orders")


def test_runs_at_once_double_nothing(spark: Any, topics: Topics, catalog: Catalog) -> None:
    """Nor do those of two topics hide each other's position."""
    names = [topics.create("-a"), topics.create("-b")]
    produced = {name: topics.fill(name, 24) for name in names}
    failures: list[BaseException] = []

    def run(name: str) -> None:
        try:
            archive_topics(spark, settings_of(topics, name, catalog, offsets_per_batch_max=8))
        except BaseException as error:
            failures.append(error)

    table_at(spark.newSession(), "iceberg", TableLocation(str(catalog.warehouse)))
    threads = [threading.Thread(target=run, args=(name,)) for name in [*names, names[0]]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    rows = catalog.rows(TABLE)
    for name in names:
        found = [(row["partition"], row["offset"]) for row in rows if row["topic"] == name]
        assert found == sorted((each.partition, each.offset) for each in produced[name])
        assert archive_topics(spark, settings_of(topics, name, catalog)).rows == 0


def test_a_batch_behind_which_another_was_committed_is_not(
    spark: Any, topics: Topics, catalog: Catalog
) -> None:
    topic = topics.create()
    topics.fill(topic, 10)
    settings = settings_of(topics, topic, catalog)
    archive_topics(spark, settings)
    session = spark.newSession()
    table = table_at(session, "iceberg", settings.location)
    state = table.state()
    assert state.position is not None
    assert state.position.offsets == {(topic, 0): 5, (topic, 1): 5}
    again = session.table(f"{CATALOG}.{TABLE}")
    later = ArchivePosition("mine", {(topic, 0): 9})
    assert table.append(again, later, state.predecessor, gathers=False) == 10
    late = ArchivePosition("late", {(topic, 0): 9})
    assert table.append(again, late, state.predecessor, gathers=False) is None
    assert len(catalog.rows(TABLE)) == 20


def test_an_archive_goes_on_in_a_table_that_others_change(
    spark: Any, topics: Topics, catalog: Catalog
) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 20)
    settings = settings_of(topics, topic, catalog)
    archive_topics(spark, settings)
    before = catalog.table(TABLE).current_snapshot()
    assert before is not None
    assert before.summary is not None
    assert before.summary[POSITION] is not None

    produced += topics.fill(topic, 10, first=20)
    archive_topics(spark, settings)
    sql(spark, catalog, f"{{call}}.rollback_to_snapshot('{TABLE}', {before.snapshot_id})")
    assert archive_topics(spark, settings).rows == 10
    assert_holds(catalog, produced)

    # Compacted, and all that says where the archive was is gone: the records themselves say it.
    options = "options => map('rewrite-all', 'true')"
    sql(spark, catalog, f"{{call}}.rewrite_data_files(table => '{TABLE}', {options})")
    expired = "older_than => TIMESTAMP '2099-01-01', retain_last => 1"
    sql(spark, catalog, f"{{call}}.expire_snapshots(table => '{TABLE}', {expired})")
    assert len(catalog.table(TABLE).snapshots()) == 1
    produced += topics.fill(topic, 4, first=30)
    assert archive_topics(spark, settings).rows == 4
    assert_holds(catalog, produced)

    sql(spark, catalog, "DELETE FROM {table} WHERE offset >= 10")
    assert archive_topics(spark, settings).rows == 0, "what was deleted has come back"


def test_a_position_of_another_version_is_refused(
    spark: Any, topics: Topics, catalog: Catalog
) -> None:
    topic = topics.create()
    topics.fill(topic, 4)
    settings = settings_of(topics, topic, catalog)
    archive_topics(spark, settings)
    session = spark.newSession()
    table_at(session, "iceberg", settings.location)
    for text, sentence in (
        ('{"version": 7}', r"version 7; this one knows 1\): archive with that one"),
        ("whatever", "which is no position; roll the table back"),
    ):
        rows = session.table(f"{CATALOG}.{TABLE}").limit(0)
        option = f"snapshot-property.{POSITION}"
        rows.writeTo(f"{CATALOG}.{TABLE}").option(option, text).append()
        with pytest.raises(SparkConnectorError, match=sentence):
            archive_topics(spark, settings)
    assert len(catalog.rows(TABLE)) == 4


def test_what_the_cluster_has_deleted_is_told(spark: Any, topics: Topics, catalog: Catalog) -> None:
    topic = topics.create()
    produced = topics.fill(topic, 20)
    settings = settings_of(topics, topic, catalog)
    archive_topics(spark, settings)
    produced += topics.fill(topic, 20, first=20)
    admin = AdminClient({"bootstrap.servers": topics.bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 1, 13)]).values():
        future.result(90)
    gone = rf"offsets 10 to 12 of partition 1 of {topic} were deleted before they were archived"
    with pytest.raises(SparkConnectorError, match=gone):
        archive_topics(spark, settings)
    assert archive_topics(spark, settings._replace(fail_on_data_loss=False)).rows == 17
    kept = [each for each in produced if each.partition == 0 or not 10 <= each.offset < 13]
    assert_holds(catalog, kept)

    for future in admin.delete_topics([topic]).values():
        future.result(90)
    topics.create()
    topics.fill(topic, 6)
    anew = rf"partition 0 of {topic} ends at offset 3, but .* has it up to 20: the topic was made"
    with pytest.raises(SparkConnectorError, match=anew):
        archive_topics(spark, settings)
    assert_holds(catalog, kept)


def test_what_cannot_be_is_refused_in_a_sentence(
    spark: Any, topics: Topics, tmp_path: Path, catalog: Catalog
) -> None:
    topic = topics.create()
    settings = settings_of(topics, topic, catalog)
    nowhere = settings._replace(catalog={"type": "rest", "uri": "http://127.0.0.1:1"})
    for wrong, sentence in (
        (settings._replace(partition_by=("days(timestamp), x",)), "is nothing to partition by"),
        (settings._replace(partition_by=("days(moment)",)), "moment"),
        (settings._replace(table="records"), "write NAMESPACE.NAME"),
        (settings._replace(checkpoint=str(tmp_path)), "needs no checkpoint; leave it out"),
        (settings._replace(table_format="hudi"), "there is no table format 'hudi'; it is one of"),
        (settings._replace(table_format="parquet", table="a.b"), "only a table of Iceberg has"),
        (settings._replace(continuous_every="now"), "'now' is no interval; write it as in"),
        (nowhere, "its catalog cannot be reached"),
    ):
        with pytest.raises(SparkConnectorError, match=sentence) as told:
            archive_topics(spark, wrong)
        assert len(str(told.value).splitlines()) == 1


def test_a_sent_again_record_is_left_out_and_a_late_one_goes_to_its_day(
    spark: Any, topics: Topics, catalog: Catalog
) -> None:
    topic = topics.create()
    producer = Producer({"bootstrap.servers": topics.bootstrap})

    def send(key: bytes | None, value: bytes, timestamp_ms: int) -> None:
        producer.produce(topic, value, key, partition=0, timestamp=timestamp_ms)

    for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (None, b"4"), (None, b"5")):
        send(key, value, START_MS)
    assert producer.flush(90) == 0
    settings = settings_of(
        topics, topic, catalog, partition_by=("days(timestamp)",), deduplicate_by="key"
    )
    assert archive_topics(spark, settings).rows == 4
    day_ms = 24 * 60 * 60 * 1000
    send(b"b", b"6", START_MS + 1000)
    send(b"c", b"7", START_MS - 3 * day_ms)
    assert producer.flush(90) == 0
    assert archive_topics(spark, settings).rows == 1
    send(b"b", b"8", START_MS + 3 * day_ms)  # farther away than it is looked
    assert producer.flush(90) == 0
    assert archive_topics(spark, settings).rows == 1
    assert [row["value"] for row in catalog.rows(TABLE)] == [b"1", b"2", b"4", b"5", b"7", b"8"]
    days = catalog.table(TABLE).inspect.partitions().to_pylist()
    assert {str(day["partition"]["timestamp_day"]): day["record_count"] for day in days} == {
        "2013-05-29": 1,
        "2013-06-01": 4,
        "2013-06-04": 1,
    }


def test_a_field_that_is_added_in_the_registry_becomes_a_column(
    spark: Any, topics: Topics, catalog: Catalog
) -> None:
    topic = topics.create(partitions=1)
    old = {
        "type": "record",
        "name": "shop.Order",
        "fields": [{"name": "id", "type": "int"}, {"name": "customer", "type": "string"}],
    }
    at = {"name": "at", "type": ["null", "string"], "default": None}
    line = {"type": "record", "name": "shop.Line", "fields": [{"name": "n", "type": "long"}]}
    lines = {"name": "lines", "type": {"type": "array", "items": line}, "default": []}
    new = {**old, "fields": [{"name": "id", "type": "long"}, old["fields"][1], at, lines]}
    wrong = {**old, "fields": [{"name": "id", "type": "string"}, old["fields"][1]]}
    with schema_registry() as server:
        client = SchemaRegistryClient({"url": server.url})
        context = SerializationContext(topic, MessageField.VALUE)
        producer = Producer({"bootstrap.servers": topics.bootstrap})

        def send(schema: Any, *values: Any) -> None:
            serialize = AvroSerializer(client, json.dumps(schema))
            for value in values:
                is_plain = isinstance(value, bytes)
                data = value if is_plain else serialize(value, context)
                producer.produce(topic, data, partition=0)
            assert producer.flush(90) == 0

        values = ValueSettings({"url": server.url}, f"{topic}-value")
        settings = settings_of(topics, topic, catalog, values=values)
        send(old, {"id": 1, "customer": "a"}, b"not of it")
        assert archive_topics(spark, settings).rows == 2
        send(new, {"id": 2**40, "customer": "b", "at": "now", "lines": [{"n": 3}]})
        sql(spark, catalog, "ALTER TABLE {table} ADD COLUMN note STRING")  # another program
        assert archive_topics(spark, settings).rows == 1
        decoded = [row["decoded"] for row in catalog.rows(TABLE)]
        assert decoded == [
            {"id": 1, "customer": "a", "at": None, "lines": None},
            None,
            {"id": 2**40, "customer": "b", "at": "now", "lines": [{"n": 3}]},
        ]
        errors = [row["decode_error"] is not None for row in catalog.rows(TABLE)]
        assert errors == [False, True, False]

        send(wrong, {"id": "3", "customer": "c"})
        cannot = r"the column decoded\.id of .* is bigint, but values have string now"
        with pytest.raises(SparkConnectorError, match=cannot):
            archive_topics(spark, settings)
        pinned = settings._replace(
            values=ValueSettings({"url": server.url}, Schema("AVRO", json.dumps(old)))
        )
        assert archive_topics(spark, pinned).rows == 1, "an older schema fits the table, too"

    target = TopicTarget(topics.bootstrap, prefix="dead-")
    dead = ReplaySettings(
        settings.folder, target, f"dead-{topic}", table_format="iceberg", only_dead_letters=True
    )
    assert replay_archive(spark, dead).rows == 2
    letters = {row[3] for row in topics.read_committed(f"dead-{topic}")}
    assert b"not of it" in letters

    sql(spark, catalog, "ALTER TABLE {table} RENAME COLUMN headers TO head")
    producer.produce(topic, b"more", partition=0)
    assert producer.flush(90) == 0
    with pytest.raises(SparkConnectorError, match="no column 'headers' any more"):
        archive_topics(spark, settings._replace(values=None))


@pytest.mark.timeout(900)
def test_a_lake_without_room_gets_nothing_of_a_batch_and_all_of_it_later(
    topics: Topics, tmp_path: Path
) -> None:
    """A file system of its own, of which nobody else sees anything, is full, and then is not."""
    topic = topics.create(partitions=1)
    rng = random.Random(1)
    producer = Producer({"bootstrap.servers": topics.bootstrap})
    values = [rng.randbytes(1_000) for _ in range(3_000)]
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(90) == 0
    catalog = Catalog.hadoop(tmp_path)
    catalog.warehouse.mkdir()
    settings = {
        "bootstrap": topics.bootstrap,
        "topics": [topic],
        "folder": str(catalog.warehouse),
        "format": "iceberg",
        "step": 1_000,
    }
    script = """
        mount -t tmpfs -o size=2500k tmpfs "$0" || exit 9
        "$@" && exit 8
        mount -o remount,size=50m "$0" && "$@" && cp -r "$0" "$0.copy"
    """
    before = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, str(catalog.warehouse)]
    log = tmp_path / "worker.log"
    with PipelineRun("archive", settings, log, before) as run:
        run.finish()
    assert "there is no room left for its files; nothing of the batch is in" in log.read_text()
    catalog.warehouse.rmdir()
    Path(f"{catalog.warehouse}.copy").rename(catalog.warehouse)
    assert [row["value"] for row in catalog.rows(TABLE)] == values


@pytest.mark.timeout(900)
def test_a_table_whose_archive_was_killed_again_and_again_has_each_record_once(
    topics: Topics, tmp_path: Path
) -> None:
    """With transactions, aborted ones too, by Spark's own source, in a catalog of JDBC."""
    topic = topics.create(partitions=PARTITIONS)
    count = produce_flights(topics.bootstrap, topic, 12_000)
    catalog = Catalog.jdbc(tmp_path)
    rng = random.Random(topic)
    settings = {
        "bootstrap": topics.bootstrap,
        "topics": [topic],
        "folder": str(catalog.warehouse),
        "format": "iceberg",
        "catalog": catalog.properties,
        "step": 400,
    }

    def files() -> int:
        return len(list(catalog.warehouse.rglob("*.parquet")))

    for _ in range(3):
        enough = files() + rng.randrange(2, 30)
        with PipelineRun("archive", settings, tmp_path / "worker.log") as run:
            assert run.kill_when(lambda: files() >= enough)  # noqa: B023  # it is called here only
    with PipelineRun("archive", {**settings, "step": 4_000}, tmp_path / "worker.log") as run:
        run.finish()
    rows = catalog.rows(TABLE)
    places = [(row["partition"], row["offset"]) for row in rows]
    assert len(places) == len(set(places)) == count
    read = topics.read_committed(topic)
    assert [(r["partition"], r["offset"], r["key"], r["value"]) for r in rows] == read
