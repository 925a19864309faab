"""IncrementalAlterConfigs (44), versions 0-1: change single settings of resources (KIP-339).

Behaviour: each resource succeeds or fails on its own and as a whole. A setting is set, deleted
(back to its default), or a list appended to or subtracted from, starting from the resource's own
value or else Kafka's default. Topics, groups, client metrics and the cluster's defaults (a broker
without a name) are changed at any broker, a broker and its loggers at itself. What changed holds
on this broker when the answer comes, and on the others soon after.
Version notes: 1 is flexible.
Departures from Kafka: an unknown operation is INVALID_REQUEST, not UNKNOWN_SERVER_ERROR; secrets
cannot be changed, and listeners neither come nor go while the broker runs; settings that would be
refused in a file, like a least compaction lag over the most, are refused here too.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...config.alterations import ConfigAlteration
from ...protocol import messages
from ...runtime.long_work import map_in_steps, run_in_steps
from ..dynamic_config.config_admin import AlteredResource, alter_resources
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_incremental_alter_configs(
    context: HandlerContext, request: Request[messages.IncrementalAlterConfigsRequest]
) -> messages.IncrementalAlterConfigsResponse:
    """Change what the request names, and leave the rest."""
    body = request.body
    resources = await run_in_steps(map_in_steps(_altered_resource, body.resources))
    outcomes = await alter_resources(
        context, request, resources, replace=False, validate_only=body.validate_only
    )
    return messages.IncrementalAlterConfigsResponse(
        responses=await run_in_steps(
            map_in_steps(_outcome, list(zip(resources, outcomes, strict=True)))
        )
    )


def _altered_resource(
    resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource,
) -> AlteredResource:
    return AlteredResource(
        resource.resource_type,
        resource.resource_name,
        [
            ConfigAlteration(config.name, config.config_operation, config.value)
            for config in resource.configs
        ],
    )


def _outcome(
    altered: tuple[AlteredResource, KafkaError | None],
) -> messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse:
    resource, outcome = altered
    return messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=outcome.code if outcome else ErrorCode.NONE,
        error_message=outcome.message if outcome else None,
        resource_type=resource.resource_type,
        resource_name=resource.name,
    )
