"""How fast the generated codecs are, beside construct's and kafka-python's.

    python -m odradek.tools.benchmarks.codec [--rounds 15]

Each contender reads and writes the same bytes: our generated codecs (our `protocol.headers`
for headers), kafka-python, the same schema compiled by construct, and interpreted by it.
Rounds are interleaved, so that all meet the same machine; the table shows medians.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka.protocol import api_header
from kafka.protocol.consumer import fetch
from kafka.protocol.metadata import metadata
from kafka.protocol.producer import produce

from ...bench.loads.produce_load import BATCH_BYTES
from ...protocol import encode_body, internal, messages
from ...protocol.codec.interpreter import container_of
from ...protocol.codec.message import Message, MessageType
from ...protocol.headers import (
    read_request_header,
    read_response_header,
    request_header,
    response_header,
)
from .measure import machine

DECODE_TIMES_KAFKA_PYTHON = 1.4
ENCODE_TIMES_KAFKA_PYTHON = 3.0
TIMES_INTERPRETED = 12.0

ROUND_SECONDS = 0.004
"""How long each contender runs in a round, more or less."""


Call = Callable[[], Any]


class Case(NamedTuple):
    """One direction of one message: what each contender calls."""

    name: str
    size: int
    ours: Call
    kafka_python: Call
    compiled: Call
    interpreted: Call

    @property
    def goal(self) -> float:
        """How many times as fast as kafka-python ours should be."""
        reads = self.name.endswith("decode")
        return DECODE_TIMES_KAFKA_PYTHON if reads else ENCODE_TIMES_KAFKA_PYTHON


def produce_request() -> Any:
    """One batch for one partition."""
    request = messages.ProduceRequest
    partition = request.PartitionProduceData(index=0, records=bytes(BATCH_BYTES))
    topic = request.TopicProduceData(name="flights", partition_data=[partition])
    return request(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produce_response() -> Any:
    """The answer to it."""
    response = messages.ProduceResponse
    partition = response.PartitionProduceResponse(base_offset=1000, log_start_offset=0)
    topic = response.TopicProduceResponse(name="flights", partition_responses=[partition])
    return response(responses=[topic])


def fetch_request() -> Any:
    """Ten partitions of a topic."""
    request = messages.FetchRequest
    partitions = [
        request.FetchPartition(partition=index, fetch_offset=1000, partition_max_bytes=1 << 20)
        for index in range(10)
    ]
    topic = request.FetchTopic(topic="flights", partitions=partitions)
    return request(max_wait_ms=500, min_bytes=1, topics=[topic])


def fetch_response() -> Any:
    """A batch from each of them."""
    response = messages.FetchResponse
    partitions = [
        response.PartitionData(
            partition_index=index,
            high_watermark=2000,
            last_stable_offset=2000,
            log_start_offset=0,
            records=bytes(BATCH_BYTES),
        )
        for index in range(10)
    ]
    topic = response.FetchableTopicResponse(topic="flights", partitions=partitions)
    return response(responses=[topic])


def metadata_request() -> Any:
    """Fifty topics by name."""
    request = messages.MetadataRequest
    return request(topics=[request.MetadataRequestTopic(name=f"topic-{n}") for n in range(50)])


def metadata_response() -> Any:
    """Fifty topics of six partitions on three brokers."""
    response = messages.MetadataResponse
    brokers = [
        response.MetadataResponseBroker(node_id=node, host=f"broker-{node}", port=9092)
        for node in range(3)
    ]
    topics = [
        response.MetadataResponseTopic(
            name=f"topic-{number}",
            topic_id=number.to_bytes(16, "big"),
            partitions=[
                response.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=index % 3,
                    leader_epoch=4,
                    replica_nodes=[0, 1, 2],
                    isr_nodes=[0, 1, 2],
                )
                for index in range(6)
            ],
        )
        for number in range(50)
    ]
    return response(brokers=brokers, cluster_id="x" * 22, controller_id=0, topics=topics)


MESSAGES = (
    (produce_request, 9, produce.ProduceRequest),
    (produce_response, 9, produce.ProduceResponse),
    (fetch_request, 12, fetch.FetchRequest),
    (fetch_response, 12, fetch.FetchResponse),
    (metadata_request, 12, metadata.MetadataRequest),
    (metadata_response, 12, metadata.MetadataResponse),
)
"""What makes a message, its version, and kafka-python's class."""


def message_cases(value: Message, version: int, theirs: Any) -> tuple[Case, Case]:
    """Decoding and encoding of a message."""
    message = type(value)
    name = f"{message.name} v{version}"
    encoded = encode_body(value, version)
    decode, encode = message.decoder(version), message.encoder(version)
    their_value = theirs.decode(encoded, version=version)
    their_value._header = None  # Decoding does not set it, and encoding asks for it.
    if bytes(their_value.encode(version=version)) != encoded:
        raise AssertionError(f"kafka-python writes another {name}")
    plain, container, compiled = constructs(message, version, value)
    return (
        Case(
            f"{name} decode",
            len(encoded),
            lambda: decode(encoded, 0),
            lambda: theirs.decode(encoded, version=version),
            lambda: compiled.parse(encoded),
            lambda: plain.parse(encoded),
        ),
        Case(
            f"{name} encode",
            len(encoded),
            lambda: encode(value),
            lambda: their_value.encode(version=version),
            lambda: compiled.build(container),
            lambda: plain.build(container),
        ),
    )


def constructs(message: MessageType, version: int, value: Any) -> tuple[Any, Any, Any]:
    """A version's plain construct, what it builds the value from, and it compiled."""
    plain = message.version(version)
    return plain, container_of(value, plain), plain.compile()


def header_cases() -> list[Case]:
    """Decoding and encoding of the two headers."""
    request = internal.RequestHeader(
        request_api_key=3, request_api_version=12, correlation_id=77, client_id="producer-1"
    )
    response = internal.ResponseHeader(correlation_id=77)
    plain, container, compiled = constructs(internal.RequestHeader, 2, request)
    plain_r, container_r, compiled_r = constructs(internal.ResponseHeader, 1, response)
    encoded, answer = encode_body(request, 2), encode_body(response, 1)
    theirs = api_header.RequestHeader.decode(io.BytesIO(encoded), flexible=True)
    theirs_r = api_header.ResponseHeader.decode(io.BytesIO(answer), flexible=True)
    return [
        Case(
            "RequestHeader v2 decode",
            len(encoded),
            lambda: read_request_header(encoded),
            lambda: api_header.RequestHeader.decode(io.BytesIO(encoded), flexible=True),
            lambda: compiled.parse(encoded),
            lambda: plain.parse(encoded),
        ),
        Case(
            "RequestHeader v2 encode",
            len(encoded),
            lambda: request_header(3, 12, 77, "producer-1"),
            lambda: theirs.encode(flexible=True),
            lambda: compiled.build(container),
            lambda: plain.build(container),
        ),
        Case(
            "ResponseHeader v1 decode",
            len(answer),
            lambda: read_response_header(answer, 3, 12),
            lambda: api_header.ResponseHeader.decode(io.BytesIO(answer), flexible=True),
            lambda: compiled_r.parse(answer),
            lambda: plain_r.parse(answer),
        ),
        Case(
            "ResponseHeader v1 encode",
            len(answer),
            lambda: response_header(3, 12, 77),
            lambda: theirs_r.encode(flexible=True),
            lambda: compiled_r.build(container_r),
            lambda: plain_r.build(container_r),
        ),
    ]


def measured(calls: list[Call], rounds: int) -> list[float]:
    """The median microseconds of each call, in interleaved rounds."""
    repeats = [max(1, int(ROUND_SECONDS / microseconds(call, 3) * 1e6)) for call in calls]
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, repeat, times in zip(calls, repeats, taken, strict=True):
            times.append(microseconds(call, repeat))
    return [statistics.median(times) for times in taken]


def microseconds(call: Call, repeat: int) -> float:
    """How long one call takes, measured over some."""
    began = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - began) / repeat * 1e6


def row(case: Case, rounds: int) -> bool:
    """Measure a case and print its line; gives whether it reaches the goals."""
    ours, *others = measured(list(case[2:]), rounds)
    times = [other / ours for other in others]
    reached = times[0] >= case.goal and times[2] >= TIMES_INTERPRETED
    cells = [f"{case.name:<26}{case.size:>8}{ours:>9.2f}"]
    cells += [
        f"{other:>10.2f} {f'x{ratio:.1f}':>6}" for other, ratio in zip(others, times, strict=True)
    ]
    print("  ".join(cells), "" if reached else f"  below x{case.goal} or x{TIMES_INTERPRETED}")
    return reached


def main() -> int:
    """Print the table; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore", DeprecationWarning)
    cases = [case for make, *rest in MESSAGES for case in message_cases(make(), *rest)]
    cases += header_cases()
    print(machine())
    print(f"{'microseconds':<26}{'bytes':>8}{'odradek':>9}{'kafka-python':>19}", end="")
    print(f"{'construct.compile':>19}{'construct':>19}")
    reached = [row(case, rounds) for case in cases]
    print(
        f"goals: decode x{DECODE_TIMES_KAFKA_PYTHON}, encode x{ENCODE_TIMES_KAFKA_PYTHON} of "
        f"kafka-python, x{TIMES_INTERPRETED} of construct; reached by "
        f"{sum(reached)} of {len(reached)}"
    )
    return 0 if all(reached) else 1


if __name__ == "__main__":
    raise SystemExit(main())
