"""DescribeConfigs (32), versions 1-4.

Behaviour: each requested resource is answered on its own. A topic's settings are its overrides
over this broker's, a group's its own over this broker's; a broker's are those of the broker that
is described, by its id, and an empty broker name means what was changed for the whole cluster; a
broker's loggers have their levels. A list of keys picks settings, and an empty one, like none,
all of them. Secrets are described without their value. An unknown topic is
UNKNOWN_TOPIC_OR_PARTITION, another broker's id INVALID_REQUEST; a kind of resource that does not
exist refuses the whole request.

Version notes: v1 synonyms and sources, v3 types and documentation, v4 flexible.

Departures from Kafka: settings of ZooKeeper mode stand beside those of 4.3; entries come in
the tables' order, where Kafka has none; loggers are `root` and those below `odradek`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

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
from ..dynamic_config.config_admin import AUTHORIZED_AS, require_own_id
from ..dynamic_config.loggers import logger_levels
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import Answer
from ..request.requests import Request

if TYPE_CHECKING:
    Resource = messages.DescribeConfigsRequest.DescribeConfigsResource
    Result = messages.DescribeConfigsResponse.DescribeConfigsResult


def handle_describe_configs(
    context: HandlerContext, request: Request[messages.DescribeConfigsRequest]
) -> Answer[messages.DescribeConfigsResponse]:
    """Tell the settings of each requested resource."""
    body = request.body
    for resource in body.resources:
        if resource.resource_type not in AUTHORIZED_AS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"There is no resource type {resource.resource_type} with settings.",
            )
    results = []
    for resource in body.resources:
        try:
            entries = _describe(context, request, resource)
        except KafkaError as error:
            results.append(_refused(resource, error))
        else:
            results.append(_described(resource, entries, body))
    return Answer(messages.DescribeConfigsResponse(throttle_time_ms=0, results=results))


def _describe(
    context: HandlerContext,
    request: Request[messages.DescribeConfigsRequest],
    resource: messages.DescribeConfigsRequest.DescribeConfigsResource,
) -> list[ConfigEntry]:
    kind, name, keys = resource.resource_type, resource.resource_name, resource.configuration_keys
    authorized_kind, refusal = AUTHORIZED_AS[kind]
    authorized_name = CLUSTER_NAME if authorized_kind == "CLUSTER" else name
    if not context.authorize(request, "DESCRIBE_CONFIGS", authorized_kind, authorized_name):
        raise KafkaError(refusal)
    if kind == ConfigResourceType.TOPIC:
        return _describe_topic(context, name, keys)
    if kind == ConfigResourceType.BROKER and not name:
        return describe_cluster_defaults(context.config.cluster_overrides, keys)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Name whose settings to describe.")
    if kind == ConfigResourceType.GROUP:
        return describe_group(context.config, context.group_configs.overrides.get(name, {}), keys)
    if kind == ConfigResourceType.CLIENT_METRICS:
        return describe_client_metrics(context.client_metrics.get(name, {}), keys)
    require_own_id(context, name)
    if kind == ConfigResourceType.BROKER_LOGGER:
        return _describe_loggers(keys)
    return describe_broker(context.config, context.broker_id, keys)


def _describe_topic(
    context: HandlerContext, name: str, keys: list[str] | None
) -> list[ConfigEntry]:
    validate_topic_name(name)
    if not context.metadata_cache.contains(name):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return describe_topic(context.config, context.metadata_cache.topic_config(name), keys)


def _describe_loggers(keys: list[str] | None) -> list[ConfigEntry]:
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
    resource: Resource, entries: list[ConfigEntry], body: messages.DescribeConfigsRequest
) -> Result:
    explain = _explain(resource.resource_type) if body.include_documentation else None
    response = messages.DescribeConfigsResponse
    return response.DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[
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
            for entry in entries
        ],
    )


def _explain(resource_type: int) -> Callable[[str], str | None]:
    """What looks up the documentation of a setting; the texts are loaded when first needed."""
    from ...config import documentation

    by_type: dict[int, Callable[[str], str | None]] = {
        ConfigResourceType.TOPIC: documentation.of_topic,
        ConfigResourceType.GROUP: documentation.of_group,
        ConfigResourceType.CLIENT_METRICS: documentation.of_client_metrics,
    }
    return by_type.get(resource_type, documentation.of_broker)
