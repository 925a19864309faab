"""Values in the wire format through Spark: columns, dead letters, and bytes again.

What is read was written by Confluent's serializers, and what is written is read by theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from kafka import KafkaConsumer, TopicPartition
from support.schema_registry_server import SchemaRegistryServer, schema_registry

from odradek.schemas.errors import SchemaError
from odradek.spark_connector import SparkConnectorError, register
from odradek.spark_connector.decoding import (
    Schema,
    SchemaRegistry,
    dead_letters,
    decode_values,
    encode_values,
    schema_of_file,
)
from odradek.spark_connector.pipelines import (
    ArchiveSettings,
    ReplaySettings,
    TopicSource,
    TopicTarget,
    ValueSettings,
    archive_topics,
    replay_archive,
)
from odradek.spark_connector.pipelines.progress import first_line

OLD = {
    "type": "record",
    "name": "shop.Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "customer", "type": "string"}],
}
NEW = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]}
        | {"default": None},
        {"name": "tags", "type": {"type": "map", "values": "string"}, "default": {}},
    ],
}
CANCELLED = {
    "type": "record",
    "name": "shop.Cancelled",
    "fields": [{"name": "id", "type": "long"}],
}
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as running:
        yield running


def serializer(server: SchemaRegistryServer, schema: Any, topic: str) -> Any:
    """Confluent's, for values of a topic."""
    client = SchemaRegistryClient({"url": server.url})
    serialize = AvroSerializer(client, json.dumps(schema))
    context = SerializationContext(topic, MessageField.VALUE)
    return lambda value: serialize(value, context)


def produce(bootstrap: str, topic: str, values: list[bytes | None]) -> None:
    """To partition 0, with keys and headers."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, f"k{number}", partition=0, headers={"n": str(number)})
    assert producer.flush(60) == 0


def source_frame(spark: Any, bootstrap: str, topic: str, *, stream: bool = False) -> Any:
    register(spark)
    reader = spark.readStream if stream else spark.read
    return (
        reader.format("odradek")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )


def mixed_values(server: SchemaRegistryServer, topic: str) -> list[bytes | None]:
    """Of two versions and of another record, and what nobody can read."""
    old, new = serializer(server, OLD, topic), serializer(server, NEW, topic)
    whole = old({"id": 1, "customer": "a"})
    return [
        whole,
        new({"id": 2**40, "customer": "b", "at": NOON, "tags": {"x": "y"}}),
        None,
        whole[:-1],
        b"\0\0\0\3\xe7" + whole[5:],
        b"plain text",
        b"",
        serializer(server, CANCELLED, f"{topic}-other")({"id": 7}),
    ]


def test_every_record_is_a_row_decoded_or_dead(
    spark: Any, broker: Any, topic: str, server: SchemaRegistryServer
) -> None:
    produce(broker.bootstrap, topic, mixed_values(server, topic))
    frame = decode_values(
        source_frame(spark, broker.bootstrap, topic), server.url, f"{topic}-value"
    )
    rows = sorted(frame.collect(), key=lambda row: row["offset"])
    assert [row["decoded"] and row["decoded"].asDict() for row in rows] == [
        {"id": 1, "customer": "a", "at": None, "tags": {}},
        {
            "id": 2**40,
            "customer": "b",
            "at": NOON.astimezone().replace(tzinfo=None),
            "tags": {"x": "y"},
        },
        *[None] * 6,
    ]
    assert [row["schema_id"] for row in rows] == [1, 2, None, 1, 999, None, None, 3]
    told = [row["decode_error"] for row in rows]
    assert told[:3] == [None] * 3
    for error, expected in zip(
        told[3:],
        ["cut off", f"{server.url} has no schema 999", "wire format", "wire format", "Cancelled"],
        strict=True,
    ):
        assert expected in error
    dead = dead_letters(frame)
    letters = sorted(dead.collect(), key=lambda row: row["origin_offset"])
    assert [row["origin_offset"] for row in letters] == [3, 4, 5, 6, 7]
    assert [row["reason"] for row in letters] == told[3:]
    assert [row["value"] for row in letters] == [rows[place]["value"] for place in range(3, 8)]
    headers = {each["key"]: bytes(each["value"]) for each in letters[0]["headers"]}
    assert headers == {
        "n": b"3",
        "__connect.errors.topic": topic.encode(),
        "__connect.errors.partition": b"0",
        "__connect.errors.offset": b"3",
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.exception.message": told[3].encode(),
    }
    # And as records of a topic, where any client finds them.
    register(spark)
    dead.select("key", "value", "headers").write.format("odradek").option(
        "kafka.bootstrap.servers", broker.bootstrap
    ).option("topic", f"{topic}.dead").mode("append").save()
    with KafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
        consumer.assign([TopicPartition(f"{topic}.dead", 0)])
        consumer.seek_to_beginning()
        records: list[Any] = []
        while len(records) < 5:
            records += [each for batch in consumer.poll(60_000).values() for each in batch]
    by_key = {record.key: record for record in records}
    assert sorted(by_key) == [b"k3", b"k4", b"k5", b"k6", b"k7"]
    assert by_key[b"k5"].value == b"plain text"
    assert dict(by_key[b"k5"].headers)["__connect.errors.offset"] == b"5"


def test_several_kinds_of_records_have_columns_of_their_own(
    spark: Any, server: SchemaRegistryServer
) -> None:
    orders, cancelled = (serializer(server, each, "t") for each in (OLD, CANCELLED))
    client = SchemaRegistryClient({"url": server.url})
    text = '{"title": "Note", "type": "object", "properties": {"text": {"type": "string"}}}'
    note = JSONSerializer(text, client)
    values = [
        orders({"id": 1, "customer": "a"}),
        cancelled({"id": 2}),
        note({"text": "hello"}, SerializationContext("notes", MessageField.VALUE)),
    ]
    frame = spark.createDataFrame([(each,) for each in values], "value BINARY").coalesce(1)
    found = decode_values(
        frame,
        SchemaRegistry(server.url),
        {
            "cancelled": Schema("AVRO", json.dumps(CANCELLED)),
            "note": "notes-value",
            "order": Schema("AVRO", json.dumps(NEW)),
        },
    ).collect()
    filled = [
        {name: row[name] for name in ("order", "cancelled", "note") if row[name]} for row in found
    ]
    assert [list(each) for each in filled] == [["order"], ["cancelled"], ["note"]]
    assert filled[0]["order"]["tags"] == {}
    assert filled[2]["note"]["text"] == "hello"
    assert [row["decode_error"] for row in found] == [None] * 3


@pytest.mark.parametrize("kind", ["avro", "protobuf", "json"])
def test_columns_become_values_that_come_back(
    spark: Any, server: SchemaRegistryServer, kind: str
) -> None:
    texts = {
        "avro": (
            "AVRO",
            json.dumps(
                {
                    "type": "record",
                    "name": "R",
                    "fields": [
                        {"name": "id", "type": "long"},
                        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
                        {
                            "name": "price",
                            "type": {"type": "bytes", "logicalType": "decimal"}
                            | {"precision": 9, "scale": 2},
                        },
                        {"name": "tags", "type": {"type": "map", "values": ["null", "string"]}},
                        {"name": "u", "type": ["null", "int", "string"], "default": None},
                    ],
                }
            ),
        ),
        "protobuf": (
            "PROTOBUF",
            'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message R { int64 id = 1;'
            " google.protobuf.Timestamp at = 2; uint64 price = 3; map<string, string> tags = 4;"
            " optional string u = 5; }",
        ),
        "json": (
            "JSON",
            json.dumps(
                {
                    "type": "object",
                    "properties": {
                        "id": {"type": "integer"},
                        "at": {"type": "string"},
                        "price": {"type": "number"},
                        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                        "u": True,
                    },
                }
            ),
        ),
    }
    u = {"avro": "named_struct('member0', 5, 'member1', CAST(NULL AS STRING))"}
    u["protobuf"] = "CAST(NULL AS STRING)"
    last = u.get(kind, "'[1, null]'")
    frame = spark.sql(
        "SELECT id, named_struct('id', id, 'at', TIMESTAMP'2024-02-29 12:00:00', 'price',"
        f" CAST(id AS DECIMAL(9, 2)), 'tags', map('a', 'b'), 'u', {last})"
        " AS decoded FROM range(3)"
    )
    frame = frame.union(spark.sql("SELECT 9L, NULL"))
    schema = Schema(*texts[kind])
    encoded = encode_values(frame, server.url, "r-value", schema)
    assert encoded.columns == ["id", "decoded", "value"]
    given = encoded.withColumnRenamed("decoded", "given")
    again = decode_values(given, server.url, "r-value")
    rows = again.orderBy("id").collect()
    assert [row["decode_error"] for row in rows] == [None] * 4
    assert [row["schema_id"] for row in rows] == [1, 1, 1, None]
    assert rows[3]["value"] is None
    for row in rows[:3]:
        found, given = row["decoded"].asDict(True), row["given"].asDict(True)
        found["price"], given["price"] = float(found["price"]), float(given["price"])
        found["at"], given["at"] = str(found["at"]), str(given["at"])
        assert found == given
    # What is looked up must be there.
    assert encode_values(frame, server.url, "r-value", schema, registers=False).count() == 4
    with pytest.raises(SparkConnectorError, match="has no version of other with this schema"):
        encode_values(frame, server.url, "other", schema, registers=False)


def test_confluent_reads_what_spark_wrote(spark: Any, server: SchemaRegistryServer) -> None:
    frame = spark.sql("SELECT named_struct('customer', 'a', 'id', 5) AS decoded")
    (row,) = encode_values(frame, server.url, "t-value", Schema("AVRO", json.dumps(NEW))).collect()
    deserialize = AvroDeserializer(SchemaRegistryClient({"url": server.url}))
    context = SerializationContext("t", MessageField.VALUE)
    assert deserialize(bytes(row["value"]), context) == {
        "id": 5,
        "customer": "a",
        "at": None,
        "tags": {},
    }


def test_a_row_that_does_not_encode_fails_the_query_in_a_sentence(
    spark: Any, server: SchemaRegistryServer
) -> None:
    frame = spark.sql("SELECT named_struct('id', CAST(NULL AS BIGINT), 'customer', 'a') AS decoded")
    encoded = encode_values(frame, server.url, "t-value", Schema("AVRO", json.dumps(OLD)))
    with pytest.raises(Exception, match="SparkConnectorError") as told:
        encoded.collect()
    assert first_line(told.value).startswith("a row cannot be encoded: it is not of the schema")
    other = spark.sql("SELECT named_struct('number', 1) AS decoded")
    with pytest.raises(SparkConnectorError, match="the schema has no field 'number'"):
        encode_values(other, server.url, "t-value")


def test_files_do_without_a_registry(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(OLD))
    schema = schema_of_file(path)
    frame = spark.sql("SELECT named_struct('id', 1, 'customer', 'a') AS decoded")
    plain = encode_values(frame, None, None, schema)
    (row,) = decode_values(plain, None, schema).collect()
    assert tuple(row["decoded"]) == (1, "a")
    with_id = plain.selectExpr("concat(X'0000000007', value) AS value")
    (row,) = decode_values(with_id, {7: schema}, Schema("AVRO", json.dumps(NEW))).collect()
    assert (row["schema_id"], row["decoded"]["customer"]) == (7, "a")
    with pytest.raises(SchemaError, match=r"other\.txt should end in \.avsc, \.proto"):
        schema_of_file(tmp_path / "other.txt")
    with pytest.raises(SparkConnectorError, match="order-value needs a registry"):
        decode_values(frame, None, "order-value")


def test_a_registry_that_goes_down_stops_a_stream_which_then_goes_on(
    spark: Any, broker: Any, topic: str, server: SchemaRegistryServer, tmp_path: Path
) -> None:
    """Nothing is dead for the registry's sake, nothing is lost, nothing is there twice."""
    serialize = serializer(server, OLD, topic)
    good = [serialize({"id": number, "customer": "a"}) for number in range(50)]
    produce(broker.bootstrap, topic, [*good[:20], b"bad", *good[20:30]])
    quick = {"url": server.url, "timeout": 2, "max.retries": 1, "retries.wait.ms": 1}
    schema = Schema("AVRO", json.dumps(OLD))

    def run() -> None:
        frame = decode_values(
            source_frame(spark, broker.bootstrap, topic, stream=True), quick, schema
        )
        query = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "table"))
        )
        query.awaitTermination()

    run()
    # What a worker has been told it keeps: an id that is new to it is asked for.
    changed = {**OLD, "doc": "registered later"}
    later = serializer(server, changed, topic)({"id": 50, "customer": "b"})
    produce(broker.bootstrap, topic, [*good[30:], later, b"worse"])
    server.refusal = (503, {"error_code": 50301, "message": "down"})
    with pytest.raises(Exception, match=r"was asked for schema \d and says: down"):
        run()
    server.refusal = None
    run()
    rows = spark.read.parquet(str(tmp_path / "table")).collect()
    assert sorted(row["offset"] for row in rows) == list(range(53))
    assert sorted(row["decoded"]["id"] for row in rows if row["decoded"]) == list(range(51))
    assert sorted(bytes(row["value"]) for row in rows if row["decode_error"]) == [b"bad", b"worse"]


def test_what_an_archive_could_not_decode_is_replayed_as_dead_letters_once(
    spark: Any, broker: Any, topic: str, server: SchemaRegistryServer, tmp_path: Path
) -> None:
    """Decoded and dead are together what was read, and each dead letter is in its topic once, in
    whatever order the runs come, and whichever of them stops in between."""
    quick = {"url": server.url, "timeout": 2, "max.retries": 1, "retries.wait.ms": 1}
    serialize = serializer(server, OLD, topic)
    good = serialize({"id": 1, "customer": "a"})
    produce(broker.bootstrap, topic, [good, b"bad-0", good])
    source = TopicSource(broker.bootstrap, (topic,), format="odradek")
    lake = str(tmp_path / "lake")
    archive = ArchiveSettings(source, lake, values=ValueSettings(quick, f"{topic}-value"))
    target = TopicTarget(broker.bootstrap, prefix="dead-")
    dead = ReplaySettings(lake, target, f"dead-{topic}", only_dead_letters=True)

    assert archive_topics(spark, archive).rows == 3
    assert replay_archive(spark, dead)[:2] == (1, 0)
    later = serializer(server, {**OLD, "doc": "later"}, topic)({"id": 2, "customer": "b"})
    produce(broker.bootstrap, topic, [b"bad-1", None, later, good[:-1]])
    server.refusal = (503, {"error_code": 50301, "message": "down"})
    given = archive._replace(values=ValueSettings(quick, Schema("AVRO", json.dumps(OLD))))
    with pytest.raises(SparkConnectorError, match=r"asked for schema \d and says: down \(HTTP 503"):
        archive_topics(spark, given)
    assert replay_archive(spark, dead)[:2] == (0, 1)
    server.refusal = None
    assert archive_topics(spark, archive).rows == 4
    assert replay_archive(spark, dead)[:2] == (2, 1)
    assert replay_archive(spark, dead)[:2] == (0, 3)

    table = spark.read.parquet(lake).orderBy("offset").collect()
    assert [row["offset"] for row in table] == list(range(7))
    assert [row["decoded"] and row["decoded"]["id"] for row in table] == (
        [1, None, 1, None, None, 2, None]
    )
    assert [row["decode_error"] is not None for row in table] == (
        [False, True, False, True, False, False, True]
    )
    assert [bytes(row["value"] or b"") for row in table][5] == later
    with KafkaConsumer(
        bootstrap_servers=broker.bootstrap, isolation_level="read_committed"
    ) as consumer:
        place = TopicPartition(f"dead-{topic}", 0)
        consumer.assign([place])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([place])[place]
        letters: list[Any] = []
        while consumer.position(place) < end:
            letters += [each for batch in consumer.poll(1000).values() for each in batch]
    assert [letter.value for letter in letters] == [b"bad-0", b"bad-1", good[:-1]]
    origins = [dict(letter.headers)["__connect.errors.offset"] for letter in letters]
    assert origins == [b"1", b"3", b"6"]
    assert [dict(letter.headers)["n"] for letter in letters] == [b"1", b"0", b"3"]
