"""DescribeConfigs (32), versions 1-4.

Behaviour: each requested resource is answered on its own. A topic's settings are its overrides
over this broker's, a group's its own over this broker's; a broker's are those of the broker that
is described, by its id, and an empty broker name means what was changed for the whole cluster; a
broker's loggers have their levels. A list of keys picks settings, and an empty one, like none,
all of them. Secrets are described without their value. An unknown topic is
UNKNOWN_TOPIC_OR_PARTITION, another broker's id INVALID_REQUEST; a kind of resource that does not
exist refuses the whole request.

Version notes: v1 synonyms and sources, v3 types and documentation, v4 flexible.

Departures from Kafka: a resource that is named again, with the same keys, is answered once; what
would make an answer larger than about 16 MB is POLICY_VIOLATION; entries come in the tables' order,
where Kafka has none; loggers are `root` and those below `odradek`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...common.error_texts import default_error
from ...common.errors import ErrorCode, KafkaError
from ...config.config_entry import ConfigEntry
from ...config.definition import ConfigResourceType, ConfigSource, ConfigType
from ...config.describe import (
    describe_broker,
    describe_client_metrics,
    describe_cluster_defaults,
    describe_group,
    describe_topic,
)
from ...controller.topics.topic_names import validate_topic_name
from ...protocol import messages
from ...runtime.steps import Steps
from ..dynamic_config.config_admin import AUTHORIZED_AS, require_own_id
from ..dynamic_config.loggers import logger_levels
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request

if TYPE_CHECKING:
    Setting = messages.DescribeConfigsResponse.DescribeConfigsResourceResult
    Resource = messages.DescribeConfigsRequest.DescribeConfigsResource
    Result = messages.DescribeConfigsResponse.DescribeConfigsResult

NAMES: dict[int, str] = {
    ConfigResourceType.BROKER_LOGGER: "Broker id",
    ConfigResourceType.CLIENT_METRICS: "Client metrics subscription name",
    ConfigResourceType.GROUP: "Group name",
}
"""What Kafka calls the names of resources that need one."""

ANSWER_BYTES_MAX = 16 << 20
"""Resources behind so much are refused: nobody's memory goes for one answer."""
SETTING_BYTES = 60
TOO_MUCH_FOR_ONE_ANSWER = "The answer would be too large: describe fewer resources in a request."


@in_steps
def handle_describe_configs(
    context: HandlerContext, request: Request[messages.DescribeConfigsRequest]
) -> Steps[messages.DescribeConfigsResponse]:
    """Tell the settings of each requested resource, once."""
    body = request.body
    for resource in body.resources:
        if resource.resource_type not in AUTHORIZED_AS:
            raise default_error(ErrorCode.INVALID_REQUEST)
    answer = messages.DescribeConfigsResponse()
    answer_bytes = 0
    for resource in (yield from _once(body.resources)):
        yield
        try:
            if answer_bytes > ANSWER_BYTES_MAX:
                raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MUCH_FOR_ONE_ANSWER)
            entries = _describe(context, request, resource)
            result = yield from _described(resource, entries, body)
        except KafkaError as error:
            result = _refused(resource, error)
        for setting in result.configs:
            answer_bytes += _size(setting)
        answer.results.append(result)
    return answer


def _once(resources: Iterable[Resource]) -> Steps[Iterable[Resource]]:
    """The resources, but for those that are repeated with the same keys."""
    once: dict[tuple[int, str, frozenset[str]], Resource] = {}
    for resource in resources:
        yield
        keys = frozenset(resource.configuration_keys or ())
        once[resource.resource_type, resource.resource_name, keys] = resource
    return once.values()


def _size(setting: Setting) -> int:
    """About how many bytes a setting takes in the answer, and twice that in memory."""
    return (
        SETTING_BYTES * (1 + len(setting.synonyms))
        + len(setting.value or "")
        + len(setting.documentation or "")
    )


def _describe(
    context: HandlerContext,
    request: Request[messages.DescribeConfigsRequest],
    resource: messages.DescribeConfigsRequest.DescribeConfigsResource,
) -> Iterable[ConfigEntry]:
    kind, name = resource.resource_type, resource.resource_name
    keys = frozenset(resource.configuration_keys or ())
    authorized_kind, refusal = AUTHORIZED_AS[kind]
    authorized_name = CLUSTER_NAME if authorized_kind == "CLUSTER" else name
    if not context.authorize(request, "DESCRIBE_CONFIGS", authorized_kind, authorized_name):
        raise KafkaError(refusal)
    if kind == ConfigResourceType.TOPIC:
        return _describe_topic(context, name, keys)
    if kind == ConfigResourceType.BROKER and not name:
        return describe_cluster_defaults(context.config, context.config.cluster_overrides, keys)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{NAMES[kind]} must not be empty")
    if kind == ConfigResourceType.GROUP:
        return describe_group(context.config, context.group_configs.overrides.get(name, {}), keys)
    if kind == ConfigResourceType.CLIENT_METRICS:
        return describe_client_metrics(context.client_metrics.overrides.get(name, {}), keys)
    expected = "broker id, expected {own} or empty string, but received {name}"
    if kind == ConfigResourceType.BROKER_LOGGER:
        expected = "broker id, expected {own} but received {name}"
    require_own_id(context, name, "Broker id", expected)
    if kind == ConfigResourceType.BROKER_LOGGER:
        return _describe_loggers(keys)
    return describe_broker(context.config, context.broker_id, keys)


def _describe_topic(
    context: HandlerContext, name: str, keys: frozenset[str]
) -> Iterable[ConfigEntry]:
    validate_topic_name(name)
    if not context.metadata_cache.contains(name):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return describe_topic(context.config, context.metadata_cache.topic_config(name), keys)


def _describe_loggers(keys: frozenset[str]) -> Iterable[ConfigEntry]:
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return [
        ConfigEntry(name, level, False, source, False, (), ConfigType.UNKNOWN)
        for name, level in logger_levels().items()
        if not keys or name in keys
    ]


def _refused(resource: Resource, error: KafkaError) -> Result:
    return messages.DescribeConfigsResponse.DescribeConfigsResult(
        error_code=error.code,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def _described(
    resource: Resource, entries: Iterable[ConfigEntry], body: messages.DescribeConfigsRequest
) -> Steps[Result]:
    explain = _explain(resource.resource_type) if body.include_documentation else None
    response = messages.DescribeConfigsResponse
    result = response.DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    for entry in entries:
        result.configs.append(
            response.DescribeConfigsResourceResult(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
                synonyms=[
                    response.DescribeConfigsSynonym(
                        name=synonym.name, value=synonym.value, source=synonym.source
                    )
                    for synonym in (entry.synonyms if body.include_synonyms else ())
                ],
                config_type=entry.type,
                documentation=explain(entry.name) if explain else None,
            )
        )
        yield
    return result


def _explain(resource_type: int) -> Callable[[str], str | None]:
    """What looks up the documentation of a setting; the texts are loaded when first needed."""
    from ...config import documentation

    by_type: dict[int, Callable[[str], str | None]] = {
        ConfigResourceType.TOPIC: documentation.of_topic,
        ConfigResourceType.GROUP: documentation.of_group,
        ConfigResourceType.CLIENT_METRICS: documentation.of_client_metrics,
    }
    return by_type.get(resource_type, documentation.of_broker)
