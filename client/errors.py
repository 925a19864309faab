"""What goes wrong between a client and its cluster.

Error codes in answers are `protocol.errors.KafkaError`; what is here happened on the way, or
before there was an answer.
"""

from __future__ import annotations


class ClientError(Exception):
    """The base of all of them."""


class DisconnectedError(ClientError):
    """A connection ended while a request was unanswered, so nobody knows whether it was
    carried out; or there was none to send it by."""


class ConnectError(DisconnectedError):
    """A connection could not be opened; nothing was sent."""


class RequestTimeoutError(DisconnectedError):
    """No answer within `request.timeout.ms`; the connection has been closed for it."""


class PeerProtocolError(DisconnectedError):
    """The broker sent something that answers no request; the connection has been closed."""


class AuthenticationError(ClientError):
    """The broker's certificate, or what this client says it is, was refused."""


class UnsupportedByBrokerError(ClientError):
    """Broker and client have no version of an API in common."""


class MetadataTimeoutError(ClientError):
    """The cluster's metadata did not come, or did not say what was waited for, in time."""


class NoLeaderError(MetadataTimeoutError):
    """A partition had no leader in time."""


class UnknownNodeError(ClientError):
    """The cluster has no node of that id, as far as this client knows."""


class LogTruncationError(ClientError):
    """A partition's new leader has lost records that were read already (KIP-320): there was an
    unclean election, or somebody removed a log.

    Args:
        topic: of the partition.
        partition: its index.
        position: the offset that was to be read next.
        end_offset: up to which the leader has what was read; -1 where it cannot say.
    """

    def __init__(self, topic: str, partition: int, position: int, end_offset: int) -> None:
        has = f"only those before {end_offset}" if end_offset >= 0 else "not all of them"
        super().__init__(
            f"records before offset {position} of partition {partition} of topic {topic!r} were"
            f" read, and its new leader has {has}"
        )
        self.topic = topic
        self.partition = partition
        self.position = position
        self.end_offset = end_offset


class ClientClosedError(ClientError):
    """The client is closed, or was never opened."""
