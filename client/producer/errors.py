"""What goes wrong between a producer and its cluster, as a closed set of kinds.

What a broker has against a batch is a `KafkaError` with its code. The kinds of transactional
producers say what to do next:

| kind | what to do |
|---|---|
| `AbortableTransactionError` | abort the transaction, then begin another |
| `ProducerFencedError` | nothing: another producer has taken over the transactional id |
| `FatalProducerError` | close this producer; another one may do better |
"""

from __future__ import annotations

from ..errors import ClientError


class ProducerError(ClientError):
    """The base of all of them."""


class ProducerClosedError(ProducerError):
    """The producer is closed, or was never opened."""


class BufferExhaustedError(ProducerError):
    """`buffer_memory` was full for `max_block_ms`; the record was not accepted."""


class RecordTooLargeError(ProducerError):
    """A record is larger than `max_request_size` or `buffer_memory`; it was not accepted."""


class DeliveryTimeoutError(ProducerError):
    """A batch was not answered within `delivery_timeout_ms`. If it was sent, nobody knows whether
    it is in the log."""


class TransactionTimeoutError(ProducerError):
    """The coordinator did not do what it was requested to within `max_block_ms`. The same method
    may be called again; nothing else may."""


class TransactionError(ProducerError):
    """The base of what concerns a transactional producer as a whole."""


class AbortableTransactionError(TransactionError):
    """The transaction cannot be committed any more: abort it, then begin another."""


class FatalProducerError(TransactionError):
    """This producer cannot go on; its open transaction is aborted by the coordinator."""


class ProducerFencedError(FatalProducerError):
    """Another producer with the same transactional id was started after this one."""


class TransactionAbortedError(ProducerError):
    """A record was not sent, because its transaction was aborted before."""
