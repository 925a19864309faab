"""Message sets of the formats before Kafka 0.11, which Kafka 4 takes from no one (KIP-724)."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record import MemoryRecordsBuilder
from support.raw_connection import RawConnection

pytestmark = pytest.mark.clients

INVALID_RECORD = 87  # as Kafka 4.3.1 answers


def message_set(magic: int) -> bytes:
    builder = MemoryRecordsBuilder(magic=magic, compression_type=0, batch_size=1000)
    builder.append(timestamp=1, key=b"key", value=b"value")
    builder.close()
    return bytes(builder.buffer())


@pytest.mark.parametrize("version", [3, 8, 9])
@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_of_old_formats_are_invalid_records(
    broker, topic: str, magic: int, version: int
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    requested = {"num_partitions": 1, "replication_factor": 1}
    admin.create_topics({topic: requested}, wait_for_metadata=True)
    admin.close()
    with RawConnection(broker.port) as connection:
        for sent_magic, error_code, base_offset in ((magic, INVALID_RECORD, -1), (2, 0, 0)):
            data = ProduceRequest.TopicProduceData
            partition = data.PartitionProduceData(index=0, records=message_set(sent_magic))
            request = ProduceRequest(
                transactional_id=None,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[data(name=topic, partition_data=[partition])],
            )
            answer = connection.ask(request, ProduceResponse, version)
            result = answer.responses[0].partition_responses[0]
            assert (result.error_code, result.base_offset) == (error_code, base_offset)
