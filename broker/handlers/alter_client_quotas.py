"""AlterClientQuotas (49), versions 0-1: set or remove quotas (KIP-546).

Behaviour: each entity succeeds or fails on its own; one that is named twice is altered as it was
named first, and answers INVALID_REQUEST all the same. Any broker does it; the quotas are in force
there when it answers, and on the others when they see the notification.
Version notes: 1 is flexible.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import ErrorCode, KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.offload import run_in_thread
from ...runtime.steps import Steps
from ...security.quotas.alterations import QuotaAlteration, is_known_host
from ...security.quotas.entity import IP, ClientQuotaEntity
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request

Outcomes = dict[ClientQuotaEntity, KafkaError | None]


@in_task
async def handle_alter_client_quotas(
    context: HandlerContext, request: Request[messages.AlterClientQuotasRequest]
) -> messages.AlterClientQuotasResponse:
    """Alter the quotas of the entities named."""
    requested = await run_in_steps(_requested(request.body.entries))
    if not context.authorize(request, "ALTER_CONFIGS", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    outcomes: Outcomes = {}
    pace = Pace()
    for alteration, op_count in requested:
        await pace.keep()
        entity = alteration.entity
        if entity in outcomes or len(alteration.values) < op_count:
            outcomes[entity] = KafkaError(
                ErrorCode.INVALID_REQUEST, f"Ignoring duplicate entity {entity}"
            )
            continue
        outcomes[entity] = await _alter(
            context, alteration, validate_only=request.body.validate_only
        )
    results = await run_in_steps(_results(outcomes))
    return messages.AlterClientQuotasResponse(entries=results)


def _requested(
    entries: Sequence[messages.AlterClientQuotasRequest.EntryData],
) -> Steps[list[tuple[QuotaAlteration, int]]]:
    """What is to be altered, and how many times each entry says so."""
    requested = []
    for entry in entries:
        names = {}
        for each in entry.entity:
            names[each.entity_type] = each.entity_name
            yield
        values = {}
        for op in entry.ops:
            values[op.key] = None if op.remove else op.value
            yield
        alteration = QuotaAlteration(ClientQuotaEntity.of(names), values)
        requested.append((alteration, len(entry.ops)))
        yield
    return requested


async def _alter(
    context: HandlerContext, alteration: QuotaAlteration, *, validate_only: bool
) -> KafkaError | None:
    """Alter one entity's quotas; returns why that was not done."""
    host = alteration.entity.names.get(IP)
    is_known = host is None or await run_in_thread(lambda: is_known_host(host))
    try:
        alteration.check(lambda _: is_known)
        await context.config_manager.alter_quotas(
            alteration.entity.path, alteration.apply, validate_only=validate_only
        )
    except (KafkaError, MetadataStoreError) as error:
        return kafka_error_of(error)
    return None


def _results(outcomes: Outcomes) -> Steps[list[messages.AlterClientQuotasResponse.EntryData]]:
    response = messages.AlterClientQuotasResponse
    results = []
    for entity, refusal in outcomes.items():
        result = response.EntryData(
            error_code=refusal.code if refusal else ErrorCode.NONE,
            error_message=refusal.message if refusal else None,
        )
        for entity_type, name in entity.entries:
            result.entity.append(response.EntityData(entity_type=entity_type, entity_name=name))
            yield
        results.append(result)
        yield
    return results
