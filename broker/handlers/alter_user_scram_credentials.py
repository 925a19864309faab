"""AlterUserScramCredentials (51), version 0: set or remove SCRAM credentials (KIP-554).

Behaviour: each user succeeds or fails on its own; one that is named twice fails. The client has
salted the password, this broker derives the keys and keeps those. Any broker does it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...common.errors import ErrorCode, KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps
from ..dynamic_config.scram_admin import ScramAlteration, alter_scram_credentials
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_alter_user_scram_credentials(
    context: HandlerContext, request: Request[messages.AlterUserScramCredentialsRequest]
) -> messages.AlterUserScramCredentialsResponse:
    """Alter the credentials of the users named."""
    alterations = await run_in_steps(_alterations(request.body))
    if not context.authorize(request, "ALTER", "CLUSTER", CLUSTER_NAME):
        refusal = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        refused = dict.fromkeys((each.user for each in alterations), refusal)
        return await run_in_steps(_response(refused))
    outcomes: Mapping[str, KafkaError | None]
    try:
        outcomes = await alter_scram_credentials(context.config_manager, alterations)
    except MetadataStoreError as error:
        outcomes = dict.fromkeys((each.user for each in alterations), kafka_error_of(error))
    return await run_in_steps(_response(outcomes))


def _alterations(
    body: messages.AlterUserScramCredentialsRequest,
) -> Steps[list[ScramAlteration]]:
    alterations = []
    for deletion in body.deletions:
        alterations.append(ScramAlteration(deletion.name, deletion.mechanism))
        yield
    for each in body.upsertions:
        salted = bytes(each.salt), bytes(each.salted_password), each.iterations
        alterations.append(ScramAlteration(each.name, each.mechanism, salted))
        yield
    return alterations


def _response(
    outcomes: Mapping[str, KafkaError | None],
) -> Steps[messages.AlterUserScramCredentialsResponse]:
    response = messages.AlterUserScramCredentialsResponse
    answer = response()
    for user, refusal in outcomes.items():
        answer.results.append(
            response.AlterUserScramCredentialsResult(
                user=user,
                error_code=refusal.code if refusal else ErrorCode.NONE,
                error_message=refusal.message if refusal else None,
            )
        )
        yield
    return answer
