"""IncrementalAlterConfigs (44), versions 0-1: change single settings of resources (KIP-339).

Behaviour: each resource succeeds or fails on its own and as a whole. A setting is set, deleted
(back to its default), or a list appended to or subtracted from, starting from the resource's own
value or else Kafka's default. Topics, groups, client metrics and the cluster's defaults (a broker
without a name) are changed at any broker, a broker and its loggers at itself. What changed holds
on this broker when the answer comes, and on the others soon after.
Version notes: 1 is flexible.
Departures from Kafka: an unknown operation is INVALID_REQUEST, not UNKNOWN_SERVER_ERROR; secrets
cannot be changed, and listeners neither come nor go while the broker runs; settings that would be
refused in a file, like a least compaction lag over the most, are refused here too; of a resource,
no more than 1,000 settings are altered in one request.
"""

from __future__ import annotations

from ...config.alterations import ConfigAlteration
from ...protocol import messages
from ..dynamic_config.config_admin import alter_resources
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_incremental_alter_configs(
    context: HandlerContext, request: Request[messages.IncrementalAlterConfigsRequest]
) -> messages.IncrementalAlterConfigsResponse:
    """Change what the request names, and leave the rest."""
    response = messages.IncrementalAlterConfigsResponse
    result_type = response.AlterConfigsResourceResponse
    return response(
        responses=await alter_resources(context, request, _alteration, result_type, replace=False)
    )


def _alteration(
    config: messages.IncrementalAlterConfigsRequest.AlterableConfig,
) -> ConfigAlteration:
    return ConfigAlteration(config.name, config.config_operation, config.value)
