"""AlterConfigs (33), versions 0-2: replace all settings of resources.

Behaviour: each resource succeeds or fails on its own. Settings that the request does not name go
back to their defaults, which is why IncrementalAlterConfigs was made. Topics, brokers, groups and
client metrics have settings to replace; loggers do not.
Version notes: 2 is flexible.
Departures from Kafka: those of IncrementalAlterConfigs.
"""

from __future__ import annotations

from ...config.alterations import AlterOperation, ConfigAlteration
from ...protocol import messages
from ..dynamic_config.config_admin import alter_resources
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_alter_configs(
    context: HandlerContext, request: Request[messages.AlterConfigsRequest]
) -> messages.AlterConfigsResponse:
    """Put the settings of the request in place of all that were there."""
    response = messages.AlterConfigsResponse
    result_type = response.AlterConfigsResourceResponse
    return response(
        responses=await alter_resources(context, request, _alteration, result_type, replace=True)
    )


def _alteration(
    config: messages.AlterConfigsRequest.AlterableConfig,
) -> ConfigAlteration:
    return ConfigAlteration(config.name, AlterOperation.SET, config.value)
