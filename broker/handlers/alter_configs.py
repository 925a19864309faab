"""AlterConfigs (33), versions 0-2: replace all settings of resources.

Behaviour: each resource succeeds or fails on its own. Settings that the request does not name go
back to their defaults, which is why IncrementalAlterConfigs was made. Topics, brokers, groups and
client metrics have settings to replace; loggers do not.
Version notes: 2 is flexible.
Departures from Kafka: those of IncrementalAlterConfigs.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...config.alterations import AlterOperation, ConfigAlteration
from ...protocol import messages
from ...runtime.long_work import map_in_steps, run_in_steps
from ..dynamic_config.config_admin import AlteredResource, alter_resources
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_alter_configs(
    context: HandlerContext, request: Request[messages.AlterConfigsRequest]
) -> messages.AlterConfigsResponse:
    """Put the settings of the request in place of all that were there."""
    body = request.body
    resources = await run_in_steps(map_in_steps(_altered_resource, body.resources))
    outcomes = await alter_resources(
        context, request, resources, replace=True, validate_only=body.validate_only
    )
    return messages.AlterConfigsResponse(
        responses=await run_in_steps(
            map_in_steps(_outcome, list(zip(resources, outcomes, strict=True)))
        )
    )


def _altered_resource(
    resource: messages.AlterConfigsRequest.AlterConfigsResource,
) -> AlteredResource:
    return AlteredResource(
        resource.resource_type,
        resource.resource_name,
        [
            ConfigAlteration(config.name, AlterOperation.SET, config.value)
            for config in resource.configs
        ],
    )


def _outcome(
    altered: tuple[AlteredResource, KafkaError | None],
) -> messages.AlterConfigsResponse.AlterConfigsResourceResponse:
    resource, outcome = altered
    return messages.AlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=outcome.code if outcome else ErrorCode.NONE,
        error_message=outcome.message if outcome else None,
        resource_type=resource.resource_type,
        resource_name=resource.name,
    )
