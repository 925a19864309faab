"""ListConfigResources (74), versions 0-1: the resources that have settings (KIP-1142).

Behaviour: all topics, brokers and their loggers, and the groups and client metrics subscriptions
that have settings of their own. A list of types picks some, and an empty one is all of them; a
type that there is not makes the answer UNSUPPORTED_VERSION.
Version notes: 0, once ListClientMetricsResources, knows client metrics only.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...common.errors import ErrorCode
from ...config.definition import ConfigResourceType
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request

ALL_TYPES = (
    ConfigResourceType.GROUP,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.BROKER,
    ConfigResourceType.TOPIC,
)


@in_steps
def handle_list_config_resources(
    context: HandlerContext, request: Request[messages.ListConfigResourcesRequest]
) -> Steps[messages.ListConfigResourcesResponse]:
    """Name the resources of the requested types."""
    body = request.body
    if not context.authorize(request, "DESCRIBE_CONFIGS", "CLUSTER", CLUSTER_NAME):
        return _refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    types = set(
        body.resource_types if request.api_version >= 1 else [ConfigResourceType.CLIENT_METRICS]
    )
    if not types.issubset(ALL_TYPES):
        return _refusal(ErrorCode.UNSUPPORTED_VERSION)
    answer = messages.ListConfigResourcesResponse()
    for kind in ALL_TYPES:
        if types and kind not in types:
            continue
        for name in _names(context, kind):
            answer.config_resources.append(
                messages.ListConfigResourcesResponse.ConfigResource(
                    resource_name=name, resource_type=kind
                )
            )
            yield
    return answer


def _names(context: HandlerContext, kind: int) -> Iterable[str]:
    snapshot = context.metadata_cache.snapshot
    if kind == ConfigResourceType.TOPIC:
        return sorted(snapshot.partition_states)
    if kind == ConfigResourceType.GROUP:
        return sorted(context.group_configs.overrides)
    if kind == ConfigResourceType.CLIENT_METRICS:
        return sorted(context.client_metrics.overrides)
    return [str(broker_id) for broker_id in sorted(snapshot.alive_brokers)]


def _refusal(code: ErrorCode) -> messages.ListConfigResourcesResponse:
    return messages.ListConfigResourcesResponse(
        throttle_time_ms=0, error_code=code, config_resources=[]
    )
