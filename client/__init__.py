"""A small trio-native Kafka client: connections, Metadata, producer, consumer, admin.

The broker uses it to talk to other brokers, and it is meant to be used on its own just as
well; there is no other Kafka client for trio.

    async with KafkaClient("127.0.0.1:9092") as client:
        async with Producer(client) as producer:
            await producer.send("greetings", b"hello", key=b"key")
        async with Consumer(client, group_id="readers", topics=["greetings"]) as consumer:
            async for record in consumer:
                print(record.offset, record.value)

| class | what it is |
|---|---|
| `KafkaClient` | knows the cluster (Metadata), sends any request to any of its brokers |
| `Consumer` | a member of a group of either protocol, or alone with its partitions |
| `Producer` | accumulates records into batches; idempotent, and transactional |
| `BatchProducer`, `Fetcher`, `Admin` | plain ones, on top of a `KafkaClient` |
| `PartitionAdmin` | reassignments on their way, and directories of brokers |
| `ScramAdmin`, `AclAdmin`, `TokenAdmin` | users, what they may do, and tokens to log in by |
| `NetworkClient` | connections to nodes that the caller names, without Metadata: what brokers use |
| `open_connection`, `Connection` | one connection, many requests in flight |
| `connection_settings_of` | how a cluster is reached, from Kafka's or librdkafka's settings |
| `client_context`, `tls_settings_of` | how TLS is spoken, from Kafka's `ssl.*` settings |
| `Metadata`, `MetadataUpdater` | the state machines behind, without trio |

Requests and responses are those of `odradek.protocol.messages`. Everything that decides takes
the time as an argument and knows nothing of trio (`metadata`, `metadata_updater`,
`node_states`, `node_selection`, `pipeline`); around that are thin shells that wait and send
(`connection`, `network`, `client`). Clock, rng and network are passed in.

It may not import storage, replication or broker: it is a client like any other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .admin.acl_admin import AclAdmin
    from .admin.admin import Admin, NewTopic
    from .admin.group_admin import GroupAdmin
    from .admin.partition_admin import PartitionAdmin
    from .admin.scram_admin import ScramAdmin
    from .admin.token_admin import TokenAdmin
    from .admin.transaction_admin import TransactionAdmin
    from .client import KafkaClient
    from .connection_settings import ConnectionSettings
    from .consumer.consumer import Consumer
    from .consumer.fetched_records import FetchedBatch
    from .consumer.fetcher import FetchedRecord, Fetcher
    from .consumer.group.committed_offsets import OffsetAndMetadata
    from .consumer.group.membership import GroupMetadata
    from .consumer.rebalance_listener import RebalanceListener
    from .consumer.settings import ConsumerSettings
    from .errors import (
        AuthenticationError,
        ClientClosedError,
        ClientError,
        ConnectError,
        DisconnectedError,
        LogTruncationError,
        MetadataTimeoutError,
        NoLeaderError,
        PeerProtocolError,
        RequestTimeoutError,
        UnknownNodeError,
        UnsupportedByBrokerError,
    )
    from .metadata.cluster import Cluster, Node, PartitionInfo, TopicInfo
    from .metadata.metadata import Metadata
    from .metadata.metadata_updater import MetadataUpdater
    from .network.connection import Connection, open_connection
    from .network.network import NetworkClient
    from .producer.batch_producer import BatchProducer, ProduceResult
    from .producer.delivery import Delivery, RecordMetadata
    from .producer.errors import (
        AbortableTransactionError,
        BufferExhaustedError,
        DeliveryTimeoutError,
        FatalProducerError,
        ProducerClosedError,
        ProducerError,
        ProducerFencedError,
        RecordTooLargeError,
        TransactionAbortedError,
        TransactionError,
        TransactionTimeoutError,
    )
    from .producer.producer import Producer
    from .producer.settings import ProducerSettings
    from .properties import PropertyError, connection_settings_of
    from .security.oauthbearer import sasl_oauthbearer
    from .security.sasl import sasl_plain
    from .security.tls_context import client_context
    from .security.tls_settings import TlsError, tls_settings_of
    from .settings import ClientSettings

_MODULES = {
    "AbortableTransactionError": "producer.errors",
    "AclAdmin": "admin.acl_admin",
    "Admin": "admin.admin",
    "AuthenticationError": "errors",
    "BatchProducer": "producer.batch_producer",
    "BufferExhaustedError": "producer.errors",
    "ClientClosedError": "errors",
    "ClientError": "errors",
    "ClientSettings": "settings",
    "Cluster": "metadata.cluster",
    "ConnectError": "errors",
    "Connection": "network.connection",
    "ConnectionSettings": "connection_settings",
    "Consumer": "consumer.consumer",
    "ConsumerSettings": "consumer.settings",
    "Delivery": "producer.delivery",
    "DeliveryTimeoutError": "producer.errors",
    "DisconnectedError": "errors",
    "FatalProducerError": "producer.errors",
    "FetchedBatch": "consumer.fetched_records",
    "FetchedRecord": "consumer.fetcher",
    "Fetcher": "consumer.fetcher",
    "GroupAdmin": "admin.group_admin",
    "GroupMetadata": "consumer.group.membership",
    "KafkaClient": "client",
    "Metadata": "metadata.metadata",
    "LogTruncationError": "errors",
    "MetadataTimeoutError": "errors",
    "NoLeaderError": "errors",
    "MetadataUpdater": "metadata.metadata_updater",
    "NetworkClient": "network.network",
    "NewTopic": "admin.admin",
    "Node": "metadata.cluster",
    "OffsetAndMetadata": "consumer.group.committed_offsets",
    "PartitionAdmin": "admin.partition_admin",
    "PartitionInfo": "metadata.cluster",
    "PeerProtocolError": "errors",
    "ProduceResult": "producer.batch_producer",
    "Producer": "producer.producer",
    "ProducerClosedError": "producer.errors",
    "ProducerError": "producer.errors",
    "ProducerFencedError": "producer.errors",
    "ProducerSettings": "producer.settings",
    "PropertyError": "properties",
    "RebalanceListener": "consumer.rebalance_listener",
    "RecordMetadata": "producer.delivery",
    "RecordTooLargeError": "producer.errors",
    "RequestTimeoutError": "errors",
    "ScramAdmin": "admin.scram_admin",
    "TlsError": "security.tls_settings",
    "TopicInfo": "metadata.cluster",
    "TransactionAbortedError": "producer.errors",
    "TransactionError": "producer.errors",
    "TransactionTimeoutError": "producer.errors",
    "TokenAdmin": "admin.token_admin",
    "TransactionAdmin": "admin.transaction_admin",
    "UnknownNodeError": "errors",
    "UnsupportedByBrokerError": "errors",
    "client_context": "security.tls_context",
    "connection_settings_of": "properties",
    "open_connection": "network.connection",
    "sasl_oauthbearer": "security.oauthbearer",
    "sasl_plain": "security.sasl",
    "tls_settings_of": "security.tls_settings",
}

__all__ = [
    "AbortableTransactionError",
    "AclAdmin",
    "Admin",
    "AuthenticationError",
    "BatchProducer",
    "BufferExhaustedError",
    "ClientClosedError",
    "ClientError",
    "ClientSettings",
    "Cluster",
    "ConnectError",
    "Connection",
    "ConnectionSettings",
    "Consumer",
    "ConsumerSettings",
    "Delivery",
    "DeliveryTimeoutError",
    "DisconnectedError",
    "FatalProducerError",
    "FetchedBatch",
    "FetchedRecord",
    "Fetcher",
    "GroupAdmin",
    "GroupMetadata",
    "KafkaClient",
    "LogTruncationError",
    "Metadata",
    "MetadataTimeoutError",
    "MetadataUpdater",
    "NetworkClient",
    "NewTopic",
    "NoLeaderError",
    "Node",
    "OffsetAndMetadata",
    "PartitionAdmin",
    "PartitionInfo",
    "PeerProtocolError",
    "ProduceResult",
    "Producer",
    "ProducerClosedError",
    "ProducerError",
    "ProducerFencedError",
    "ProducerSettings",
    "PropertyError",
    "RebalanceListener",
    "RecordMetadata",
    "RecordTooLargeError",
    "RequestTimeoutError",
    "ScramAdmin",
    "TlsError",
    "TokenAdmin",
    "TopicInfo",
    "TransactionAbortedError",
    "TransactionAdmin",
    "TransactionError",
    "TransactionTimeoutError",
    "UnknownNodeError",
    "UnsupportedByBrokerError",
    "client_context",
    "connection_settings_of",
    "open_connection",
    "sasl_oauthbearer",
    "sasl_plain",
    "tls_settings_of",
]


def __getattr__(name: str) -> Any:
    """Import a name at first use: a broker that starts needs none of it."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value
