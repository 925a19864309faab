"""Values with schemas: columns become Avro in a topic, and columns again; the rest is dead letters.

Start a broker (`odradek serve`), then: python examples/spark_schemas.py [HOST:PORT [REGISTRY]]
"""

import sys
from typing import Any

from odradek.spark_connector import register, spark_session
from odradek.spark_connector.decoding import (
    Schema,
    SchemaRegistry,
    dead_letters,
    decode_values,
    encode_values,
)

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
REGISTRY = sys.argv[2] if len(sys.argv) > 2 else "mock://example"  # else http://localhost:8081
TOPIC = "orders"
ORDER = """{
    "type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": ["null", "double"], "default": null}
    ]
}"""

spark = spark_session("schemas example", master="local[2]", packages=[])
register(spark)
registry = SchemaRegistry(REGISTRY)


def topic(builder: Any) -> Any:
    """A reader or writer of the example's cluster."""
    return builder.format("odradek").option("kafka.bootstrap.servers", BROKER)


orders = spark.range(10).selectExpr("named_struct('id', id, 'price', id / 4) AS decoded")
encoded = encode_values(orders, registry, "orders-value", Schema("AVRO", ORDER))
topic(encoded.select("value").write).option("topic", TOPIC).mode("append").save()
poison = spark.createDataFrame([("not Avro",)], "value STRING")
topic(poison.write).option("topic", TOPIC).mode("append").save()

records = topic(spark.read).option("subscribe", TOPIC).load()
values = decode_values(records, registry, "orders-value")
values.where("decode_error IS NULL").selectExpr("sum(decoded.id)", "sum(decoded.price)").show()
topic(dead_letters(values).write).option("topic", f"{TOPIC}.dead").mode("append").save()
for letter in dead_letters(values).collect():
    print(
        f"dead: partition {letter.origin_partition}, offset {letter.origin_offset}: {letter.reason}"
    )
spark.stop()
