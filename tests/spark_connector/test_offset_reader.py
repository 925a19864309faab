"""Offsets are listed by leaders that have only just begun to lead."""

from __future__ import annotations

from kafka.admin import KafkaAdminClient

from odradek.spark_connector.kafka_source.cluster import KafkaOffsetReader
from odradek.spark_connector.kafka_source.options import read_options
from odradek.testing import Broker, faults


def test_a_leader_that_does_not_know_its_partition_yet_is_queried_again() -> None:
    with Broker() as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics({"orders": {"num_partitions": 1}}, wait_for_metadata=True)
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "orders"}
        reader = KafkaOffsetReader(read_options(options, is_stream=False))
        unknown = faults.answer("ListOffsets", "UNKNOWN_TOPIC_OR_PARTITION").once()
        fault = broker.faults.add(unknown)
        assert reader.latest([("orders", 0)]) == {("orders", 0): 0}
        assert fault.strikes == 1
