"""DescribeUserScramCredentials (50), version 0: which SCRAM credentials users have (KIP-554).

Behaviour: mechanisms and their iterations, never a key. No list of users, or an empty one, is all
that have any; RESOURCE_NOT_FOUND for a user without, DUPLICATE_RESOURCE for one named twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...common.errors import ErrorCode
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...protocol.sasl.scram import ScramMechanism
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps, count_in_steps, map_in_steps
from ..dynamic_config.scram_admin import scram_iterations
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request

Response = messages.DescribeUserScramCredentialsResponse


@in_task
async def handle_describe_user_scram_credentials(
    context: HandlerContext, request: Request[messages.DescribeUserScramCredentialsRequest]
) -> messages.DescribeUserScramCredentialsResponse:
    """Describe the credentials of the users named, or of all."""
    if not context.authorize(request, "DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return await run_in_steps(_unauthorized(len(request.body.users or ())))
    users = request.body.users or ()
    counts = await run_in_steps(count_in_steps(each.name for each in users))
    once = [name for name, count in counts.items() if count == 1]
    try:
        found = await scram_iterations(context.config_manager, once if counts else None)
    except MetadataStoreError as error:
        refusal = kafka_error_of(error)
        return Response(error_code=refusal.code, error_message=refusal.message)
    return Response(
        error_message="",
        results=await run_in_steps(
            map_in_steps(
                lambda name: _result(name, counts[name], found.get(name, {})), counts or found
            )
        ),
    )


def _unauthorized(count: int) -> Steps[messages.DescribeUserScramCredentialsResponse]:
    """The refusal, which also stands in as many results, without the users' names."""
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    result = Response.DescribeUserScramCredentialsResult
    results = yield from map_in_steps(lambda _: result(user="", error_code=code), range(count))
    return Response(error_code=code, results=results)


def _result(
    name: str, count: int, iterations: Mapping[ScramMechanism, int]
) -> messages.DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult:
    result = Response.DescribeUserScramCredentialsResult(user=name, error_message="")
    if count > 1:
        result.error_code = ErrorCode.DUPLICATE_RESOURCE
        result.error_message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        )
    elif not iterations:
        result.error_code = ErrorCode.RESOURCE_NOT_FOUND
        result.error_message = f"Attempt to describe a user credential that does not exist: {name}"
    result.credential_infos = [
        Response.CredentialInfo(mechanism=mechanism.number, iterations=number)
        for mechanism, number in iterations.items()
    ]
    return result
