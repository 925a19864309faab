"""AlterUserScramCredentials (51), version 0: set or remove SCRAM credentials (KIP-554).

Behaviour: each user succeeds or fails on its own; one that is named twice fails. The client has
salted the password, this broker derives the keys and keeps those. Any broker does it.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
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
    body = request.body
    alterations = [ScramAlteration(each.name, each.mechanism) for each in body.deletions]
    alterations += [
        ScramAlteration(
            each.name,
            each.mechanism,
            (bytes(each.salt), bytes(each.salted_password), each.iterations),
        )
        for each in body.upsertions
    ]
    if not context.authorize(request, "ALTER", "CLUSTER", CLUSTER_NAME):
        refusal = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return _response({each.user: refusal for each in alterations})
    try:
        return _response(await alter_scram_credentials(context.config_manager, alterations))
    except MetadataStoreError as error:
        refusal = kafka_error_of(error)
        return _response({each.user: refusal for each in alterations})


def _response(
    outcomes: dict[str, KafkaError] | dict[str, KafkaError | None],
) -> messages.AlterUserScramCredentialsResponse:
    response = messages.AlterUserScramCredentialsResponse
    return response(
        results=[
            response.AlterUserScramCredentialsResult(
                user=user,
                error_code=refusal.code if refusal else ErrorCode.NONE,
                error_message=refusal.message if refusal else None,
            )
            for user, refusal in outcomes.items()
        ]
    )
