"""A schema registry that others wrote: Apicurio Registry, whose schemas lie in our broker's topic.

Confluent's serializers and ours register with it and read by it; it is killed and started again.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema as ClientSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from odradek.schemas.errors import RegistryError, SchemaError, UnknownSchemaError
from odradek.schemas.registry import SchemaRegistry
from odradek.schemas.schema import AVRO, PROTOBUF, Schema
from odradek.schemas.values import Reader, ValueDecoder, ValueEncoder
from odradek.testing import SchemaRegistryProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

CONTEXT = SerializationContext("orders", MessageField.VALUE)
QUICK = {"max.retries": 1, "retries.wait.ms": 1}
OLD = {
    "type": "record",
    "name": "shop.Order",
    "fields": [{"name": "id", "type": "long"}],
}
NEW = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "state", "type": "string", "default": "OPEN"},
    ],
}
WITHOUT_DEFAULT = {**OLD, "fields": [*OLD["fields"], {"name": "customer", "type": "string"}]}
MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
BILL = (
    'syntax = "proto3"; package shop; import "shop/money.proto";'
    ' import "google/protobuf/timestamp.proto";'
    " message Bill { Money total = 1; google.protobuf.Timestamp at = 2; message Line {"
    " string text = 1; } }"
)


def test_schemas_in_our_broker_are_had_by_a_registry_that_was_killed(
    broker: Any,
) -> None:
    values: dict[str, tuple[bytes, Any]] = {}
    with SchemaRegistryProcess(broker.bootstrap) as apicurio:
        client = SchemaRegistryClient({"url": apicurio.url})
        ours = SchemaRegistry({"url": apicurio.url, **QUICK})
        old = AvroSerializer(client, json.dumps(OLD))
        values["avro"] = old({"id": 1}, CONTEXT), {"id": 1, "state": "OPEN"}
        number = ours.register("orders-value", Schema(AVRO, json.dumps(NEW)))
        assert ours.latest("orders-value")[0] == number
        assert ValueDecoder(ours).decode(values["avro"][0]).value == {"id": 1}
        text = '{"title": "Note", "type": "object", "properties": {"n": {"type": "integer"}}}'
        note = JSONSerializer(text, client)
        values["json"] = note({"n": 1}, SerializationContext("n", MessageField.VALUE)), {"n": 1}
        client.register_schema("money", ClientSchema(MONEY, PROTOBUF))
        references = [SchemaReference("shop/money.proto", "money", 1)]
        bill = client.register_schema("bill-value", ClientSchema(BILL, PROTOBUF, references))
        line = ValueEncoder(ours.schema(bill), bill, "shop.Bill.Line").encode({"text": "x"})
        values["protobuf"] = line, {"text": "x"}

        client.set_compatibility("orders-value", "BACKWARD")
        with pytest.raises(SchemaError, match=r"refuses .* as orders-value: .*HTTP 409"):
            ours.register("orders-value", Schema(AVRO, json.dumps(WITHOUT_DEFAULT)))
        with pytest.raises(SchemaError, match=r"refuses .* as orders-value: .*HTTP 422"):
            ours.register("orders-value", Schema(AVRO, "{"))

        apicurio.kill()
        fresh = SchemaRegistry({"url": apicurio.url, **QUICK})
        decoder = ValueDecoder(fresh, (Reader(Schema(AVRO, json.dumps(NEW))),))
        with pytest.raises(RegistryError, match=f"{apicurio.url} does not answer .* schema 1 "):
            decoder.decode(values["avro"][0])
        # The other has been told before, and asks nobody.
        assert ValueDecoder(ours).decode(values["avro"][0]).value == {"id": 1}

        apicurio.start()
        assert decoder.decode(values["avro"][0]).value == values["avro"][1]
        as_written = ValueDecoder(fresh)
        for kind in ("json", "protobuf"):
            assert as_written.decode(values[kind][0]).value == values[kind][1]
        written = ValueEncoder(fresh.schema(number), number).encode({"id": 2, "state": "PAID"})
        deserialize = AvroDeserializer(SchemaRegistryClient({"url": apicurio.url}))
        assert deserialize(written, CONTEXT) == {"id": 2, "state": "PAID"}
        for ask, told in (
            (lambda: fresh.schema(999), "has no schema 999"),
            (lambda: fresh.latest("nobody"), "has no subject nobody"),
            (lambda: fresh.look_up("money", Schema(PROTOBUF, BILL)), "has no version of money"),
        ):
            with pytest.raises(UnknownSchemaError, match=told):
                ask()
