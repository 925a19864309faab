"""UpdateFeatures (57), versions 0-2: move the finalized levels of features (KIP-584).

Behaviour: all updates are done, or none: INVALID_UPDATE_VERSION for a level that the
controller or a live broker does not support, for one that is lower without a request for
as a downgrade or higher with it, and for a feature or a kind of change that is not known;
FEATURE_UPDATE_FAILED where the metadata store refused. Any broker takes it; the controller
does it, and the others follow by their watch on `/feature`. A safe and an unsafe downgrade
are the same: nothing that these features wrote is lost.
Version notes: 0 has `allow_downgrade`, which Kafka 4.3 does not heed, nor does this; 1 has the
kind of change and can only validate; 2 answers without a result for each feature.
"""

from __future__ import annotations

from ...common.error_texts import DEFAULT_TEXTS
from ...common.errors import ErrorCode, KafkaError
from ...controller.feature_levels import FeatureUpdate
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import map_in_steps
from ..interbroker.forwarding import on_controller
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request

LAST_VERSION_WITH_RESULTS = 1


@in_task
async def handle_update_features(
    context: HandlerContext, request: Request[messages.UpdateFeaturesRequest]
) -> messages.UpdateFeaturesResponse:
    """Have the controller move levels; what changed is in force here before the answer."""
    if not context.authorize(request, "ALTER", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    answer = await _update(context, request)
    await context.feature_follower.catch_up()
    return answer


@on_controller
async def _update(
    context: HandlerContext, request: Request[messages.UpdateFeaturesRequest]
) -> messages.UpdateFeaturesResponse:
    body = request.body
    updates = await run_in_steps(
        map_in_steps(
            lambda update: FeatureUpdate(
                update.feature, update.max_version_level, update.upgrade_type
            ),
            body.feature_updates,
        )
    )
    await context.controller.update_features(
        updates,
        validate_only=body.validate_only,
        timeout_ms=body.timeout_ms,
    )
    response = messages.UpdateFeaturesResponse()
    if request.api_version <= LAST_VERSION_WITH_RESULTS:
        result = messages.UpdateFeaturesResponse.UpdatableFeatureResult
        response.results = await run_in_steps(
            map_in_steps(
                lambda update: result(
                    feature=update.name, error_message=DEFAULT_TEXTS[ErrorCode.NONE]
                ),
                updates,
            )
        )
    return response
