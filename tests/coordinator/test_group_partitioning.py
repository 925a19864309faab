import pytest

from odradek.coordinator.shards import java_string_hash, partition_for


# Printed by Java: String.hashCode, and Kafka's Utils.abs of it modulo 50.
@pytest.mark.parametrize(
    ("text", "number", "partition"),
    [
        ("", 0, 0),
        ("a", 97, 47),
        ("golden-group", -1429646149, 49),
        ("polygenelubricants", -2147483648, 0),
        ("grüppe", -1233264812, 12),
        ("🐘-elefant", -1036638963, 13),
        ("my-consumer-group", 1513705513, 13),
        ("ABCDEa123abc", 165374702, 2),
    ],
)
def test_groups_are_kept_where_kafka_keeps_them(text: str, number: int, partition: int) -> None:
    assert java_string_hash(text) == number
    assert partition_for(text, 50) == partition
