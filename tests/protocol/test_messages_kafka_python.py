"""Our schemas and codecs against kafka-python's, as they are installed.

Definitions are compared field by field, bytes on generated values, both ways: what it
writes for a value is what we write, and what it reads of ours is the value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.kafka_python_messages import (
    codecs,
    common_versions,
    definitions,
    our_fields,
    our_message,
    our_reading,
    their_encoding,
    their_fields,
)
from support.selection import slow_unless

from odradek.protocol.codec.message import MessageType
from odradek.protocol.codec.types import ResolvedStruct
from odradek.protocol.codec.versions import parse_versions

Strategy = Callable[[ResolvedStruct], st.SearchStrategy[Any]]

THEIR_OWN = {"StickyAssignorUserData": "Kafka's assignor writes these bytes by hand"}
"""Definitions of kafka-python that are not among Kafka's."""

NULL_BY_DEFAULT = "error_message"
"""In Kafka's definitions "" is the default of these nullable fields, which its handlers always
set, to null mostly. Ours is null, so that a handler may leave a message out."""

OLDER_VERSIONS = {
    "AlterReplicaLogDirs": "0",
    "CreateAcls": "0",
    "CreateTopics": "0-1",
    "DeleteAcls": "0",
    "DeleteTopics": "0",
    "DescribeAcls": "0",
    "DescribeConfigs": "0",
    "DescribeLogDirs": "0",
    "Fetch": "0-3",
    "ListOffsets": "0",
    "OffsetCommit": "0-1",
    "OffsetFetch": "0",
    "OffsetForLeaderEpoch": "0-1",
    "Produce": "0-2",
    "WriteTxnMarkers": "0",
}
"""Versions of requests and responses that ended with Kafka 4.0 (KIP-896), which kafka-python
defines no more and which Kafka up to 3.9 speaks; Kafka 3.9.1's classes vouch for them."""

OTHER_VERSIONS = {"RequestHeader": "0"}
"""The same, for what is neither: ControlledShutdown v0 has this header."""

UNREAD = {
    "ApiVersionsResponse": "an error in the answer makes it version 0, whatever was requested",
}
"""Messages that kafka-python reads otherwise than its own definition says."""

DEFINITIONS = definitions()
SHARED = sorted(DEFINITIONS.keys() - THEIR_OWN.keys())
CODECS = codecs()


@cache
def expected_differences(name: str) -> str:
    """The versions that we have and kafka-python has not."""
    base = name.removesuffix("Request").removesuffix("Response")
    return OTHER_VERSIONS.get(name) or OLDER_VERSIONS.get(base, "none")


def test_every_definition_of_kafka_python_is_declared_here() -> None:
    assert {name for name in DEFINITIONS if our_message(name) is None} == THEIR_OWN.keys()
    assert len(DEFINITIONS) == 109
    assert {name for name in CODECS if name not in DEFINITIONS} == set()
    headers = {"RequestHeader", "ResponseHeader"}  # see test_headers.py
    assert DEFINITIONS.keys() - CODECS.keys() == THEIR_OWN.keys() | headers


@pytest.mark.parametrize("name", SHARED)
def test_keys_versions_and_flexibility_are_kafka_pythons(name: str) -> None:
    ours, theirs = our_message(name), DEFINITIONS[name]
    assert ours is not None
    assert ours.api_key == theirs.get("apiKey")
    common = common_versions(ours, theirs)
    assert common == parse_versions(theirs["validVersions"])
    more = [version for version in ours.versions if version not in common]
    assert more == list(parse_versions(expected_differences(name)))
    flexible = parse_versions(theirs["flexibleVersions"])
    for version in common:
        assert (version in ours.flexible) == (version in flexible), version


@pytest.mark.parametrize("name", SHARED)
def test_every_field_is_kafka_pythons(name: str) -> None:
    ours, theirs = our_message(name), DEFINITIONS[name]
    assert ours is not None
    common = common_versions(ours, theirs)
    our_facts = list(our_fields(ours, name, common))
    their_facts = list(their_fields(theirs["fields"], name, common))
    assert len(dict(our_facts)) == len(our_facts)
    assert [path for path, _ in our_facts] == [path for path, _ in their_facts]
    for (path, our_fact), (_, their_fact) in zip(our_facts, their_facts, strict=True):
        if path.endswith(NULL_BY_DEFAULT) and our_fact.nullable != "none":
            assert (our_fact.default, their_fact.default) in ((None, ""), (None, None))
            their_fact = their_fact._replace(default=None)
        assert our_fact == their_fact, path


def pairs() -> list[Any]:
    """Every message and version that both have codecs for."""
    found = []
    for name, theirs in sorted(CODECS.items()):
        ours = our_message(name)
        if ours is not None:
            versions = common_versions(ours, DEFINITIONS[name])
            for version in versions:
                marks = slow_unless(version == max(versions))
                case = pytest.param(ours, theirs, version, id=f"{name}-v{version}", marks=marks)
                found.append(case)
    return found


def without_unknown_tags(value: Any) -> Any:
    """The value as it was, with what kafka-python does not write taken out."""
    if hasattr(value, "unknown_tags"):
        value.unknown_tags = None
        for name in type(value).__slots__:
            without_unknown_tags(getattr(value, name))
    elif isinstance(value, list):
        for element in value:
            without_unknown_tags(element)
    return value


def check_both_ways(ours: MessageType, theirs: Any, version: int, value: Any) -> None:
    """See that kafka-python writes and reads a value as we do."""
    value = without_unknown_tags(value)
    if ours.name in UNREAD:
        value.error_code = 0
    encoded = b"".join(ours.encoder(version)(value))
    assert their_encoding(theirs, value, version) == encoded
    assert our_reading(theirs, encoded, ours, version) == value
    assert ours.decoder(version)(encoded, 0) == (value, len(encoded))


def checked(examples: int) -> Callable[..., Any]:
    """A test of so many generated values for each message and version."""

    @pytest.mark.parametrize(("ours", "theirs", "version"), pairs())
    @given(data=st.data())
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test(
        ours: MessageType, theirs: Any, version: int, value_strategy: Strategy, data: st.DataObject
    ) -> None:
        value = data.draw(value_strategy(ours.version(version)))
        check_both_ways(ours, theirs, version, value)

    return test


test_kafka_python_reads_and_writes_the_same_bytes = checked(examples=3)
test_kafka_python_reads_and_writes_many_values_alike = pytest.mark.soak(checked(examples=100))
