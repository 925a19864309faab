"""Changing the settings of resources, as AlterConfigs and IncrementalAlterConfigs both do.

After Kafka's ConfigAdminManager: what can be refused without knowing the resource is refused
here, and the controller does the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..protocol.errors import ErrorCode, KafkaError
from .authorized_operations import CLUSTER_NAME
from .controller.config_changes import ConfigAlteration, check_alterations

if TYPE_CHECKING:
    from .broker import Broker
    from .requests import Request

TOPIC: Final = 2
"""The number of the resource type (Kafka's ConfigResource.Type)."""

OTHER_TYPES: Final = {4: "brokers", 8: "loggers", 16: "client metrics", 32: "groups"}
"""Resource types whose settings cannot be changed here."""


class AlteredResource(NamedTuple):
    """A resource and what is to be changed of it."""

    resource_type: int
    name: str
    alterations: Sequence[ConfigAlteration]


async def alter_resources(
    broker: Broker,
    request: Request,
    resources: Sequence[AlteredResource],
    *,
    replace: bool,
    validate_only: bool,
) -> list[KafkaError | None]:
    """Change resources, each on its own.

    Args:
        replace: whether the settings not named go back to their defaults.
        validate_only: find out what would be refused, and change nothing.

    Returns:
        One outcome for each resource, in their order; None is success.
    """
    occurrences = Counter((resource.resource_type, resource.name) for resource in resources)
    outcomes: list[KafkaError | None] = []
    accepted: dict[str, Sequence[ConfigAlteration]] = {}
    for resource in resources:
        try:
            if occurrences[resource.resource_type, resource.name] > 1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "The request names this resource twice."
                )
            _check(broker, request, resource)
        except KafkaError as refusal:
            outcomes.append(refusal)
        else:
            outcomes.append(None)
            accepted[resource.name] = resource.alterations
    if accepted:
        changed = await broker.controller.alter_topic_configs(
            accepted, replace=replace, validate_only=validate_only
        )
        outcomes = [
            changed[resource.name] if outcome is None else outcome
            for resource, outcome in zip(resources, outcomes, strict=True)
        ]
    return outcomes


def _check(broker: Broker, request: Request, resource: AlteredResource) -> None:
    check_alterations(resource.alterations)
    if resource.resource_type == TOPIC:
        if not resource.name:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Topics have no common settings: name one topic."
            )
        if not broker.authorize(request, "ALTER_CONFIGS", "TOPIC", resource.name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return
    if not broker.authorize(request, "ALTER_CONFIGS", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    kind = OTHER_TYPES.get(resource.resource_type)
    raise KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"This broker does not change settings of {kind} while it runs."
        if kind
        else f"There is no resource type {resource.resource_type} with settings.",
    )
