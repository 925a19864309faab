"""GetTelemetrySubscriptions and PushTelemetry: what clients are to push of their metrics."""

from __future__ import annotations

import struct
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from ....protocol.api_keys import ApiKey
from ....protocol.compression.codecs import Compression, compress
from ....protocol.messages import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from ..scenario import scenario
from ..talk import Talk
from .configuration import DELETE, METRICS_RESOURCE, SET, Change, changing

NO_ID = bytes(16)
RESERVED_ID = bytes(15) + b"\1"
UNKNOWN_COMPRESSION = 9
LAST_METRIC = "org.apache.kafka.last."
SHOWS_LAST = frozenset({LAST_METRIC, "", "*"})
"""The subscription made last, or one to all metrics, which takes it in."""
TELEMETRY_MAX_BYTES = 1 << 20
"""The default of telemetry.max.bytes."""


def client_instance_id(talk: Talk, number: int = 0) -> bytes:
    """An id that no other scenario uses, and that is the same on both brokers."""
    return uuid5(NAMESPACE_DNS, f"{talk.name()}-{number}").bytes


def subscription_of(client_id: bytes) -> GetTelemetrySubscriptionsRequest:
    """A request for what a client is to push."""
    return GetTelemetrySubscriptionsRequest(client_instance_id=client_id)


def push(client_id: bytes, subscription_id: int, **fields: Any) -> PushTelemetryRequest:
    """A request that pushes nothing, but for what the fields say."""
    return PushTelemetryRequest(
        client_instance_id=client_id, subscription_id=subscription_id, **fields
    )


class Subscribed:
    """While there is a subscription; a context manager.

    Another subscription, made after it, shows when the broker goes by both.
    """

    def __init__(self, talk: Talk, **settings: str) -> None:
        self._talk = talk
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}

    def __enter__(self) -> None:
        self._change("", *((name, SET, value) for name, value in self._settings.items()))
        self._change("last", ("metrics", SET, LAST_METRIC))
        self._wait(is_there=True)

    def __exit__(self, *_: object) -> None:
        self._change("", *((name, DELETE, None) for name in self._settings))
        self._change("last", ("metrics", DELETE, None))
        self._wait(is_there=False)

    def _change(self, suffix: str, *changes: Change) -> None:
        self._talk.quietly(changing(METRICS_RESOURCE, self._talk.name(suffix), *changes))

    def _wait(self, *, is_there: bool) -> None:
        def is_settled(answer: Any) -> bool:
            return is_there == any(each in SHOWS_LAST for each in answer.requested_metrics)

        self._talk.settle_quietly(subscription_of(NO_ID), until=is_settled)


@scenario(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS)
def nobody_has_subscribed(talk: Talk) -> None:
    talk.ask(subscription_of(client_instance_id(talk)), talk.version)


@scenario(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS)
def asked_again_at_once(talk: Talk) -> None:
    for _ in range(3):
        talk.ask(subscription_of(client_instance_id(talk)), talk.version)


@scenario(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS)
def who_has_no_id_gets_one(talk: Talk) -> None:
    given = talk.quietly(subscription_of(NO_ID), talk.version)
    assert given.client_instance_id not in (NO_ID, RESERVED_ID)
    talk.ask(subscription_of(given.client_instance_id), talk.version)


@scenario(
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    cases={
        "everything": {"metrics": "*", "interval_ms": "1000"},
        "one prefix": {"metrics": "org.apache.kafka.producer."},
        "of others": {"metrics": "*", "match": "client_software_name=another"},
        "of these": {"metrics": "*", "match": "client_source_address=127.*"},
        "nothing of it": {"metrics": ""},
    },
)
def somebody_has_subscribed(talk: Talk, settings: dict[str, str]) -> None:
    with Subscribed(talk, **settings):
        talk.ask(subscription_of(client_instance_id(talk)), talk.version)


@scenario(
    ApiKey.PUSH_TELEMETRY,
    cases={
        "a reserved id": {"client_instance_id": RESERVED_ID},
        "no id": {"client_instance_id": NO_ID},
        "another subscription": {"subscription_id": 7},
        "a compression that nobody knows": {"compression_type": UNKNOWN_COMPRESSION},
        "too large": {"metrics": bytes(TELEMETRY_MAX_BYTES + 1)},
        "nothing": {},
    },
)
def first_push(talk: Talk, fields: dict[str, Any]) -> None:
    client_id = client_instance_id(talk)
    requested = talk.quietly(subscription_of(client_id), 0)
    given = {"client_instance_id": client_id, "subscription_id": requested.subscription_id}
    talk.ask(PushTelemetryRequest(**{**given, **fields}), talk.version)


def _message(field: int, *parts: bytes) -> bytes:
    """A message or a string in a field of a protobuf message; it is short."""
    held = b"".join(parts)
    return bytes([field << 3 | LENGTH_DELIMITED, len(held)]) + held


LENGTH_DELIMITED = 2
NUMBER_DATA_POINT = _message(1, b"\x21" + struct.pack("<d", 7.0))
"""as_double is 7.0."""
TOTAL = _message(7, NUMBER_DATA_POINT, b"\x10\x02\x18\x01")
"""A Sum, cumulative and monotonic."""
METRICS = _message(1, _message(2, _message(2, _message(1, b"org.apache.kafka.x"), TOTAL)))
"""OTLP's MetricsData with one metric."""


@scenario(
    ApiKey.PUSH_TELEMETRY,
    cases={
        "not compressed": (Compression.NONE, METRICS),
        **{
            each.name.lower(): (each, compress(each, METRICS))
            for each in Compression
            if each is not Compression.NONE
        },
        "nothing of its compression": (Compression.GZIP, METRICS),
        "too large when it is decompressed": (
            Compression.GZIP,
            compress(Compression.GZIP, bytes(TELEMETRY_MAX_BYTES + 1)),
        ),
    },
)
def metrics_are_pushed(talk: Talk, pushed: tuple[Compression, bytes]) -> None:
    compression, metrics = pushed
    client_id = client_instance_id(talk)
    with Subscribed(talk, metrics="*", interval_ms="1000"):
        requested = talk.quietly(subscription_of(client_id), 0)
        fields = {"compression_type": int(compression), "metrics": metrics}
        talk.ask(push(client_id, requested.subscription_id, **fields), talk.version)


@scenario(ApiKey.PUSH_TELEMETRY)
def pushed_again_at_once(talk: Talk) -> None:
    client_id = client_instance_id(talk)
    requested = talk.quietly(subscription_of(client_id), 0)
    for _ in range(3):
        talk.ask(push(client_id, requested.subscription_id), talk.version)


@scenario(ApiKey.PUSH_TELEMETRY)
def last_push(talk: Talk) -> None:
    client_id = client_instance_id(talk)
    requested = talk.quietly(subscription_of(client_id), 0)
    for _ in range(2):
        talk.ask(push(client_id, requested.subscription_id), talk.version)
    for _ in range(2):
        talk.ask(push(client_id, requested.subscription_id, terminating=True), talk.version)


@scenario(ApiKey.PUSH_TELEMETRY)
def pushed_without_asking_first(talk: Talk) -> None:
    talk.ask(push(client_instance_id(talk), 0), talk.version)
