"""The comparison of two brokers: what it finds, what it lets pass, and what it plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import (
    FetchResponse,
    JoinGroupResponse,
    ListGroupsResponse,
    ListOffsetsResponse,
    MetadataResponse,
    OffsetCommitRequest,
    ProduceResponse,
)
from odradek.testing import Broker
from odradek.testing.comparison.differences import Difference, compare, translated
from odradek.testing.comparison.normalisation import TOPIC_ID, IdMapping
from odradek.tools.conformance.command import DIFFERENCES, chosen
from odradek.tools.conformance.explanations import (
    Explained,
    Explanation,
    ExplanationError,
    read_explanations,
)
from odradek.tools.conformance.report import ConformanceReport
from odradek.tools.conformance.requests import batch
from odradek.tools.conformance.runner import ScenarioRun, play_all
from odradek.tools.conformance.scenario import all_scenarios
from odradek.tools.conformance.talk import served_versions

HERE_ID, THERE_ID, THIRD_ID = b"h" * 16, b"t" * 16, b"3" * 16


def metadata(topic_id: bytes = HERE_ID, **fields: Any) -> MetadataResponse:
    topic = MetadataResponse.MetadataResponseTopic(name="orders", topic_id=topic_id, **fields)
    return MetadataResponse(cluster_id="a cluster", topics=[topic])


def differing(
    api_key: ApiKey, version: int, expected: Any, actual: Any, mapping: IdMapping | None = None
) -> list[Difference]:
    return compare(api_key, version, expected, actual, mapping or IdMapping())


def test_equal_answers_do_not_differ() -> None:
    assert differing(ApiKey.METADATA, 12, metadata(), metadata()) == []


def test_difference_says_where_and_what() -> None:
    wrong = metadata(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    (found,) = differing(ApiKey.METADATA, 12, metadata(), wrong)
    assert found == Difference("topics[0].error_code", "NONE", "UNKNOWN_TOPIC_OR_PARTITION")
    assert found.field == "topics[].error_code"


def test_fields_that_a_version_does_not_carry_are_passed_over() -> None:
    assert differing(ApiKey.METADATA, 0, metadata(), metadata(is_internal=True)) == []
    assert differing(ApiKey.METADATA, 1, metadata(), metadata(is_internal=True))


def test_ids_differ_freely_but_stay_with_each_other() -> None:
    mapping = IdMapping()
    assert differing(ApiKey.METADATA, 12, metadata(HERE_ID), metadata(THERE_ID), mapping) == []
    (found,) = differing(ApiKey.METADATA, 12, metadata(HERE_ID), metadata(THIRD_ID), mapping)
    assert found.path == "topics[0].topic_id"


def test_two_ids_do_not_become_one() -> None:
    mapping = IdMapping()
    assert mapping.pair(TOPIC_ID, HERE_ID, THERE_ID)
    assert not mapping.pair(TOPIC_ID, THIRD_ID, THERE_ID)


def test_no_id_does_not_stand_for_an_id() -> None:
    assert not IdMapping().pair(TOPIC_ID, bytes(16), THERE_ID)


def test_made_up_ids_must_be_of_one_shape() -> None:
    first = "script-3f1c2b1e-0f0e-4c1e-9b1e-1f2e3d4c5b6a"
    second = "script-11111111-2222-3333-4444-555555555555"
    other = "peer-11111111-2222-3333-4444-555555555555"
    joined = [JoinGroupResponse(member_id=each) for each in (first, second, other)]
    assert differing(ApiKey.JOIN_GROUP, 9, joined[0], joined[1]) == []
    assert differing(ApiKey.JOIN_GROUP, 9, joined[0], joined[2])


def test_requests_are_translated_by_what_answers_have_reported() -> None:
    mapping = IdMapping()
    differing(ApiKey.METADATA, 12, metadata(HERE_ID), metadata(THERE_ID), mapping)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(topic_id=HERE_ID)
    request: Any = translated(OffsetCommitRequest(topics=[topic]), mapping)
    assert request.topics[0].topic_id == THERE_ID


def groups(*names: str) -> ListGroupsResponse:
    listed = ListGroupsResponse.ListedGroup
    return ListGroupsResponse(groups=[listed(group_id=name) for name in names])


def test_order_counts_only_where_it_says_something() -> None:
    assert differing(ApiKey.LIST_GROUPS, 5, groups("a", "b"), groups("b", "a")) == []
    pair = [fetched(1, 2), fetched(2, 1)]
    assert differing(ApiKey.FETCH, 12, *pair)


def test_what_one_of_them_leaves_out_is_found() -> None:
    (found,) = differing(ApiKey.LIST_GROUPS, 5, groups("a", "b"), groups("b"))
    assert (found.expected, found.actual) == ("there", "absent")


def fetched(*partitions: int, records: bytes = b"") -> FetchResponse:
    data = [
        FetchResponse.PartitionData(partition_index=index, records=memoryview(records))
        for index in partitions
    ]
    topic = FetchResponse.FetchableTopicResponse(topic="orders", partitions=data)
    return FetchResponse(responses=[topic])


def test_records_differ_by_the_fields_of_their_batches() -> None:
    pair = [
        fetched(0, records=batch(value, base_offset=at)) for value, at in ((b"v", 4), (b"w", 5))
    ]
    found = differing(ApiKey.FETCH, 12, *pair)
    assert [each.path.rpartition(".")[2] for each in found] == ["base_offset", "payload"]


def test_producers_of_batches_are_ids() -> None:
    pair = [fetched(0, records=batch(b"v", producer_id=each)) for each in (7, 8)]
    assert differing(ApiKey.FETCH, 12, *pair) == []


def refusing(text: str | None) -> ProduceResponse:
    partition = ProduceResponse.PartitionProduceResponse(index=0, error_message=text)
    topic = ProduceResponse.TopicProduceResponse(name="t", partition_responses=[partition])
    return ProduceResponse(responses=[topic])


def test_error_texts_are_compared_word_by_word() -> None:
    assert differing(ApiKey.PRODUCE, 12, refusing("one text"), refusing("one text")) == []
    (found,) = differing(ApiKey.PRODUCE, 12, refusing("one text"), refusing("another"))
    assert (found.expected, found.actual) == ("one text", "another")
    (found,) = differing(ApiKey.PRODUCE, 12, refusing(None), refusing("another"))
    assert (found.expected, found.actual) == ("null", "(something)")


@pytest.mark.parametrize(
    ("expected", "actual", "is_same"),
    [
        ("member AAAAAAAAAAAAAAAAAAAAAQ left", "member BBBBBBBBBBBBBBBBBBBBBQ left", True),
        ("member AAAAAAAAAAAAAAAAAAAAAQ left", "member BBBBBBBBBBBBBBBBBBBBBQ came", False),
        ("not at 127.0.0.1:9092", "not at 127.0.0.1:9093", True),
        ("not in /tmp/a/logs-1", "not in /tmp/b/logs", True),
        ("within [1, 2]", "within [3, 4]", True),
        ("epoch 1", "epoch 2", False),
    ],
)
def test_ids_addresses_and_times_in_texts_are_a_brokers_own(
    expected: str, actual: str, *, is_same: bool
) -> None:
    found = differing(ApiKey.PRODUCE, 12, refusing(expected), refusing(actual))
    assert (found == []) == is_same


def test_an_id_in_texts_stands_for_one_of_the_other_broker() -> None:
    mapping = IdMapping()
    assert mapping.pair_texts("AAAAAAAAAAAAAAAAAAAAAQ", "BBBBBBBBBBBBBBBBBBBBBQ")
    assert not mapping.pair_texts("AAAAAAAAAAAAAAAAAAAAAQ", "CCCCCCCCCCCCCCCCCCCCCQ")


def test_offsets_and_timestamps_of_records_are_compared() -> None:
    def answer(offset: int, timestamp: int) -> ListOffsetsResponse:
        partition = ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=0, offset=offset, timestamp=timestamp
        )
        topic = ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[partition])
        return ListOffsetsResponse(topics=[topic])

    assert len(differing(ApiKey.LIST_OFFSETS, 5, answer(1, 100), answer(2, 101))) == 2


# -- explanations --------------------------------------------------------------------------

HEADER = "| API | Field | Kafka 4.3.1 | odradek | Reason |\n|---|---|---|---|---|\n"
ROW = "| Metadata | `topics[].error_code` | NONE | INVALID_REQUEST | It is so by design. |\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "differences.md"


def test_row_explains_exactly_one_difference(table: Path) -> None:
    table.write_text(f"# Words\n\n{HEADER}{ROW}\nMore words.\n")
    (row,) = read_explanations(table)
    difference = Difference("topics[3].error_code", "NONE", "INVALID_REQUEST")
    assert row.covers(ApiKey.METADATA, difference)
    assert not row.covers(ApiKey.FETCH, difference)
    assert not row.covers(ApiKey.METADATA, difference._replace(expected="INVALID_REQUEST"))
    assert not row.covers(ApiKey.METADATA, difference._replace(actual="NONE"))
    assert not row.covers(ApiKey.METADATA, difference._replace(path="error_code"))


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (ROW.replace("topics[].error_code", "*"), "wildcard"),
        (ROW.replace("topics[].error_code", "topics[].*"), "wildcard"),
        (ROW.replace("NONE", "any"), "wildcard"),
        (ROW.replace("Metadata", "*"), "no API"),
        (ROW.replace("Metadata", "Metadatum"), "no API"),
        (ROW.replace("It is so by design.", "Design."), "no reason"),
        (ROW.replace("INVALID_REQUEST", ""), "something in each"),
        (ROW + ROW, "the same stands"),
    ],
)
def test_row_that_says_too_little_is_refused(table: Path, row: str, complaint: str) -> None:
    table.write_text(HEADER + row)
    with pytest.raises(ExplanationError, match=complaint):
        read_explanations(table)


def test_file_without_a_table_is_refused(table: Path) -> None:
    table.write_text("# Nothing differs\n")
    with pytest.raises(ExplanationError, match="needs one table"):
        read_explanations(table)


def test_rows_of_this_project_are_well_formed() -> None:
    assert read_explanations(DIFFERENCES)


# -- scenarios -----------------------------------------------------------------------------


OF_AUTHORIZED_USERS = frozenset(
    {
        ApiKey.DESCRIBE_ACLS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    }
)
"""Their behaviour is played by the one scenario of a user who is allowed this and that, in their
newest versions."""


def test_every_version_of_every_served_api_is_played() -> None:
    played: dict[int, set[int]] = {}
    for run in chosen([*all_scenarios(), *all_scenarios(needs_authorizer=True)]):
        if run.scenario.family != "malformed" or run.scenario.api_key in OF_AUTHORIZED_USERS:
            played.setdefault(run.scenario.api_key, set()).add(run.version)
    served = {key: set(versions) for key, versions in served_versions().items()}
    missing = {ApiKey(key).name: served[key] - played.get(key, set()) for key in served}
    assert not {name: versions for name, versions in missing.items() if versions}


def test_every_run_has_a_name_of_its_own() -> None:
    names = [run.scenario.name(run.version) for run in chosen(all_scenarios())]
    assert len(set(names)) == len(names)


@pytest.fixture(scope="module")
def two_brokers() -> Iterator[tuple[str, str]]:
    with Broker() as broker, Broker() as other:
        yield broker.bootstrap_servers, other.bootstrap_servers


@pytest.fixture(scope="module")
def unlike_broker() -> Iterator[str]:
    """A broker that differs from both in one setting."""
    with Broker({"message.max.bytes": "2000"}) as broker:
        yield broker.bootstrap_servers


def some_runs() -> list[ScenarioRun]:
    return chosen(all_scenarios(), ["deleted", "topic"], newest_only=True)


def test_two_brokers_of_one_kind_do_not_differ(two_brokers: tuple[str, str]) -> None:
    runs = some_runs()
    results = play_all(runs, *two_brokers, "same-")
    report = ConformanceReport(results, Explained([]), is_whole=True)
    assert report.unexplained == []
    assert report.is_conformant
    assert sum(result.answers for result in results) >= len(runs) > 3


PLANTED = ("topics[].configs[max.message.bytes].value", "1048588", "2000")


def test_planted_difference_is_found_until_it_is_explained(
    two_brokers: tuple[str, str], unlike_broker: str
) -> None:
    runs = chosen(all_scenarios(), ["topic is created", "v7"])
    results = play_all(runs, two_brokers[0], unlike_broker, "planted-")
    report = ConformanceReport(results, Explained([]), is_whole=False)
    assert not report.is_conformant
    found = {(each.difference.field, *each.difference[1:]) for each in report.unexplained}
    assert PLANTED in found
    assert any(line.startswith("unexplained: CreateTopics") for line in report.lines())
    rows = [
        Explanation("CreateTopics", *each, "planted by this test", line)
        for line, each in enumerate(found)
    ]
    assert ConformanceReport(results, Explained(rows), is_whole=True).is_conformant


def test_explanation_that_nothing_needs_is_reported(two_brokers: tuple[str, str]) -> None:
    row = Explanation("Metadata", "topics[].name", "a", "b", "for no reason", 1)
    results = play_all(some_runs()[:1], *two_brokers, "unneeded-")
    report = ConformanceReport(results, Explained([row]), is_whole=True)
    assert not report.is_conformant
    assert any(line.startswith("no scenario needs") for line in report.lines())
    assert ConformanceReport(results, Explained([row]), is_whole=False).is_conformant
