"""The error answer of any API, as each of Kafka's requests makes one for itself.

Where a response has an error code of its own, that is set. Where it has one for each
topic, partition, group or other entity, these are echoed from the request, each
with the code. Unsupported versions, missing rights, injected faults and handlers that
raise all answer through this.

The rules restate `getErrorResponse` of Kafka's `AbstractRequest` subclasses. Other than
Kafka's, an answer carries the message wherever the response has a place for one, and
DescribeUserScramCredentials names the users.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from ..common.errors import ErrorCode
from ..common.named_tuple import NamedTuple
from . import messages
from .api_keys import ApiKey
from .codec.types import Array, StructType
from .codec.versions import parse_versions

ERROR_CODE_FIELDS = ("error_code", "partition_error_code")
ERROR_MESSAGE_FIELD = "error_message"


class Echo(NamedTuple):
    """How the elements of a request's array come back in the response.

    Attributes:
        source: the request's array; with a dot, the arrays within an array's elements.
        target: the response's array.
        copied: fields to copy, apart by blanks. "a=b" copies the element's b to a, "a=." the
            element itself, "a=..b" b of the element around it.
        inner: the rule for arrays within.
        constants: fields of the response's elements that differ from their defaults.
        versions: those that echo, of those that have both arrays.
    """

    source: str
    target: str
    copied: str = ""
    inner: Echo | None = None
    constants: Mapping[str, Any] = {}
    versions: str = "0+"


class Constant(NamedTuple):
    """A field of the response itself that differs from its default."""

    field: str
    value: Any
    versions: str = "0+"


def _topics_and_partitions(
    topic: str, partition: str, topics: str = "topics", **constants: Any
) -> tuple[Echo, ...]:
    partitions = Echo("partitions", "partitions", partition, constants=constants)
    return (Echo("topics", topics, topic, partitions),)


_RESOURCE = "resource_type resource_name"
_NO_NODE = {"node_id": -1, "port": -1}
_SHARE_STATE = _topics_and_partitions("topic_id", "partition", "results")
_GROUP_IDS = (Echo("group_ids", "groups", "group_id=."),)
_STOPPED = "topic_name partition_index"

ECHOES: dict[ApiKey, tuple[Echo, ...]] = {
    ApiKey.PRODUCE: (
        Echo(
            "topic_data",
            "responses",
            "name topic_id",
            Echo("partition_data", "partition_responses", "index", constants={"base_offset": -1}),
        ),
    ),
    ApiKey.FETCH: (
        Echo(
            "topics",
            "responses",
            "topic topic_id",
            Echo(
                "partitions",
                "partitions",
                "partition_index=partition",
                constants={"high_watermark": -1, "records": b""},
            ),
            # From v13 on every client knows the response's own error code.
            versions="0-12",
        ),
    ),
    ApiKey.LIST_OFFSETS: _topics_and_partitions("name", "partition_index"),
    ApiKey.METADATA: (Echo("topics", "topics", "name topic_id"),),
    ApiKey.LEADER_AND_ISR: (
        Echo("ungrouped_partition_states", "partition_errors", _STOPPED),
        Echo(
            "topic_states.partition_states",
            "partition_errors",
            "topic_name=..topic_name partition_index",
        ),
        Echo(
            "topic_states",
            "topics",
            "topic_id",
            Echo("partition_states", "partition_errors", "partition_index"),
        ),
    ),
    ApiKey.STOP_REPLICA: (
        Echo("ungrouped_partitions", "partition_errors", _STOPPED),
        Echo("topics.partition_indexes", "partition_errors", "topic_name=..name partition_index=."),
        Echo(
            "topic_states.partition_states",
            "partition_errors",
            "topic_name=..topic_name partition_index",
        ),
    ),
    ApiKey.OFFSET_COMMIT: _topics_and_partitions("name topic_id", "partition_index"),
    ApiKey.OFFSET_FETCH: (
        Echo(
            "topics",
            "topics",
            "name",
            Echo(
                "partition_indexes",
                "partitions",
                "partition_index=.",
                constants={"committed_offset": -1},
            ),
            versions="0-1",
        ),
        Echo("groups", "groups", "group_id"),
    ),
    ApiKey.FIND_COORDINATOR: (
        Echo("coordinator_keys", "coordinators", "key=.", constants=_NO_NODE),
    ),
    ApiKey.DESCRIBE_GROUPS: (Echo("groups", "groups", "group_id=."),),
    ApiKey.CREATE_TOPICS: (Echo("topics", "topics", "name"),),
    ApiKey.DELETE_TOPICS: (
        Echo("topic_names", "responses", "name=."),
        Echo("topics", "responses", "name topic_id"),
    ),
    ApiKey.DELETE_RECORDS: _topics_and_partitions("name", "partition_index", low_watermark=-1),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _topics_and_partitions("topic", "partition"),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Echo(
            "v3_and_below_topics",
            "results_by_topic_v3_and_below",
            "name",
            Echo("partitions", "results_by_partition", "partition_index=."),
        ),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        Echo(
            "markers",
            "markers",
            "producer_id",
            Echo(
                "topics",
                "topics",
                "name",
                Echo("partition_indexes", "partitions", "partition_index=."),
            ),
        ),
    ),
    ApiKey.TXN_OFFSET_COMMIT: _topics_and_partitions("name", "partition_index"),
    ApiKey.CREATE_ACLS: (Echo("creations", "results"),),
    ApiKey.DELETE_ACLS: (Echo("filters", "filter_results"),),
    ApiKey.DESCRIBE_CONFIGS: (Echo("resources", "results", _RESOURCE),),
    ApiKey.ALTER_CONFIGS: (Echo("resources", "responses", _RESOURCE),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        Echo(
            "dirs.topics",
            "results",
            "topic_name=name",
            Echo("partitions", "partitions", "partition_index=."),
        ),
    ),
    ApiKey.CREATE_PARTITIONS: (Echo("topics", "results", "name"),),
    ApiKey.DELETE_GROUPS: (Echo("groups_names", "results", "group_id=."),),
    ApiKey.ELECT_LEADERS: (
        Echo(
            "topic_partitions",
            "replica_election_results",
            "topic",
            Echo("partitions", "partition_result", "partition_id=."),
        ),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (Echo("resources", "responses", _RESOURCE),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _topics_and_partitions(
        "name", "partition_index", "responses"
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (
        Echo(
            "topics",
            "topics",
            "name",
            Echo("partition_indexes", "partitions", "partition_index=."),
        ),
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: (
        Echo("entries", "entries", "", Echo("entity", "entity", "entity_type entity_name")),
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (Echo("users", "results", "user=name"),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        Echo("deletions", "results", "user=name"),
        Echo("upsertions", "results", "user=name"),
    ),
    ApiKey.DESCRIBE_PRODUCERS: (
        Echo(
            "topics",
            "topics",
            "name",
            Echo("partition_indexes", "partitions", "partition_index=."),
        ),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        Echo("transactional_ids", "transaction_states", "transactional_id=."),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _GROUP_IDS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (Echo("topics", "topics", "name"),),
    ApiKey.SHARE_GROUP_DESCRIBE: _GROUP_IDS,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE: _SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _SHARE_STATE,
    ApiKey.STREAMS_GROUP_DESCRIBE: _GROUP_IDS,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (Echo("groups", "groups", "group_id"),),
}

CONSTANTS: dict[ApiKey, tuple[Constant, ...]] = {
    ApiKey.FIND_COORDINATOR: (
        Constant("node_id", -1, "0-3"),
        Constant("port", -1, "0-3"),
    ),
    ApiKey.JOIN_GROUP: (Constant("protocol_name", None, "7+"),),
    ApiKey.INIT_PRODUCER_ID: (Constant("producer_epoch", -1),),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (Constant("entries", None),),
    ApiKey.CREATE_DELEGATION_TOKEN: (
        Constant("principal_type", "User"),
        Constant("principal_name", "ANONYMOUS"),
        Constant("token_requester_principal_type", "User", "3+"),
        Constant("token_requester_principal_name", "ANONYMOUS", "3+"),
        Constant("issue_timestamp_ms", -1),
        Constant("expiry_timestamp_ms", -1),
        Constant("max_timestamp_ms", -1),
    ),
}


def error_response(
    api_key: int,
    version: int,
    request_body: Any,
    code: ErrorCode,
    message: str | None = None,
) -> Any:
    """The response that refuses a whole request.

    Args:
        api_key: of the request.
        version: of the request, and of the response.
        request_body: the request, whose elements are echoed; None if it was not read.
        code: the error.
        message: goes where the response has a place for it.
    """
    work = error_response_in_steps(api_key, version, request_body, code, message)
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


def error_response_in_steps(
    api_key: int,
    version: int,
    request_body: Any,
    code: ErrorCode,
    message: str | None = None,
) -> Generator[None, None, Any]:
    """The same, as work that yields after each element that is echoed."""
    key = ApiKey(api_key)
    response_message = messages.response_message(key)
    response: Any = response_message()
    refusal = _Refusal(version, int(code), message)
    refusal.mark(response, response_message)
    for constant in CONSTANTS.get(key, ()):
        if version in parse_versions(constant.versions):
            setattr(response, constant.field, constant.value)
    if key == ApiKey.API_VERSIONS and code == ErrorCode.UNSUPPORTED_VERSION:
        response.api_keys = [_own_versions()]
    if request_body is not None:
        if key == ApiKey.FETCH:
            response.session_id = request_body.session_id
        for echo in ECHOES.get(key, ()):
            yield from refusal.echo(echo, request_body, response, response_message)
    return response


def _own_versions() -> Any:
    """What tells a client which versions of ApiVersions there are (KIP-511)."""
    versions = messages.ApiVersionsResponse.versions
    return messages.ApiVersionsResponse.ApiVersion(
        api_key=ApiKey.API_VERSIONS, min_version=versions.start, max_version=versions.stop - 1
    )


class _Refusal(NamedTuple):
    version: int
    code: int
    message: str | None

    def mark(self, value: Any, struct: StructType) -> None:
        """Set error code and message, where the version of the struct has them."""
        for field in struct.fields:
            if self.version in field.versions:
                if field.name in ERROR_CODE_FIELDS:
                    setattr(value, field.name, self.code)
                elif field.name == ERROR_MESSAGE_FIELD and self.message is not None:
                    setattr(value, field.name, self.message)

    def echo(
        self, echo: Echo, source: Any, target: Any, target_struct: StructType
    ) -> Generator[None, None, None]:
        """Add to the target what answers each of the source's elements."""
        field = next(field for field in target_struct.fields if field.name == echo.target)
        versions = parse_versions(echo.versions)
        if self.version not in field.versions or self.version not in versions:
            return
        assert isinstance(field.type, Array)
        struct = field.type.element
        assert isinstance(struct, StructType)
        answers = getattr(target, echo.target)
        for element, around in _elements(source, echo.source):
            answer = struct(**echo.constants)
            for name, value in _copied_fields(echo.copied, element, around):
                if value is not None:  # As Kafka: a topic named by id alone has the name "".
                    setattr(answer, name, value)
            self.mark(answer, struct)
            if echo.inner is not None:
                yield from self.echo(echo.inner, element, answer, struct)
            answers.append(answer)
            yield


def _elements(source: Any, path: str) -> Iterator[tuple[Any, Any]]:
    """Each element that a path leads to, and what is around it."""
    name, _, rest = path.partition(".")
    for element in getattr(source, name) or ():
        if rest:
            yield from _elements(element, rest)
        else:
            yield element, source


def _copied_fields(copied: str, element: Any, around: Any) -> Iterator[tuple[str, Any]]:
    for item in copied.split():
        name, _, origin = item.partition("=")
        if origin == ".":
            yield name, element
        elif origin.startswith(".."):
            yield name, getattr(around, origin[2:])
        else:
            yield name, getattr(element, origin or name)
