"""Changing the settings of resources, as AlterConfigs and IncrementalAlterConfigs both do.

After Kafka's ConfigAdminManager and ConfigurationControlManager. Any broker changes the
settings of topics, groups and client metrics, and those of the whole cluster; its own
settings and its loggers only the broker itself, since it must be able to follow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from ...common.errors import ErrorCode, KafkaError
from ...config.alterations import ConfigAlteration, alter_config, check_alterations
from ...config.definition import ConfigError, ConfigResourceType, Definition, shorten
from ...config.dynamic.dynamic_rules import DYNAMIC_ONLY, refusal_of
from ...config.group_configs import validate_client_metrics_config, validate_group_config
from ...config.tables.broker_table import BROKER_DEFINITIONS
from ...config.tables.group_table import GROUP_DEFINITIONS
from ...config.tables.topic_table import TOPIC_DEFINITIONS
from ...config.topic_configs import validate_topic_config
from ...controller.fenced_store import kafka_error_of
from ...controller.topics.topic_names import validate_topic_name
from ...metadata_store import znodes
from ...metadata_store.errors import MetadataStoreError
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.steps import Steps, count_in_steps, map_in_steps
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.requests import Request
from .config_manager import BROKERS, CLIENT_METRICS, CLUSTER_DEFAULT, GROUPS, TOPICS, Overrides
from .loggers import change_levels

AUTHORIZED_AS: Final[dict[int, tuple[str, ErrorCode]]] = {
    ConfigResourceType.TOPIC: ("TOPIC", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ConfigResourceType.BROKER: ("CLUSTER", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ConfigResourceType.BROKER_LOGGER: ("CLUSTER", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ConfigResourceType.CLIENT_METRICS: ("CLUSTER", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ConfigResourceType.GROUP: ("GROUP", ErrorCode.GROUP_AUTHORIZATION_FAILED),
}
"""What a principal needs permission for, and the error without."""

MESSAGE_CHARACTERS_MAX: Final = 4000
"""An answer holds no error text of more than 32,767 bytes."""

ALTERATIONS_MAX: Final = 1_000
"""Of one resource in a request: it is altered in one go, and there are fewer settings."""

SETTINGS_OF_BROKERS: Final[dict[str, Definition]] = {**BROKER_DEFINITIONS, **DYNAMIC_ONLY}


ResultT = TypeVar("ResultT")
ConfigT = TypeVar("ConfigT")
ConfigT_co = TypeVar("ConfigT_co", covariant=True)


class RequestedResource(Protocol[ConfigT_co]):
    """A resource as one of the two requests names it."""

    @property
    def resource_type(self) -> int:
        """A `ConfigResourceType`, or a number that is none."""

    @property
    def resource_name(self) -> str:
        """Its name."""

    @property
    def configs(self) -> Sequence[ConfigT_co]:
        """What is to be changed of it."""


class AlterationRequest(Protocol[ConfigT_co]):
    """The body of AlterConfigs or IncrementalAlterConfigs."""

    @property
    def resources(self) -> Sequence[RequestedResource[ConfigT_co]]:
        """What is altered."""

    @property
    def validate_only(self) -> bool:
        """Whether nothing is to be changed."""


class AlteredResource(NamedTuple):
    """A resource and what is to be changed of it."""

    resource_type: int
    name: str
    alterations: Sequence[ConfigAlteration]


class Alteration(NamedTuple):
    """A resource's change on its way: how it is done, beside what is requested."""

    context: HandlerContext
    resource: AlteredResource
    replace: bool
    validate_only: bool


async def alter_resources(
    context: HandlerContext,
    request: Request[AlterationRequest[ConfigT]],
    alteration_of: Callable[[ConfigT], ConfigAlteration],
    result_type: Callable[..., ResultT],
    *,
    replace: bool,
) -> list[ResultT]:
    """Change the resources that AlterConfigs or IncrementalAlterConfigs names, each on its own.

    Args:
        alteration_of: what a setting in the request means.
        result_type: of a resource in the response.
        replace: whether the settings not named go back to their defaults.

    Returns:
        One result for each resource, in their order.
    """
    body = request.body
    resources = await run_in_steps(_altered_resources(body.resources, alteration_of))
    occurrences = await run_in_steps(count_in_steps(each[:2] for each in resources))
    outcomes: list[tuple[AlteredResource, KafkaError | None]] = []
    pace = Pace()
    for resource in resources:
        await pace.keep()
        try:
            if occurrences[resource[:2]] > 1:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."
                )
            _check(context, request, resource, replace=replace)
            await _ALTER[resource.resource_type](
                Alteration(context, resource, replace, body.validate_only)
            )
        except (KafkaError, MetadataStoreError) as error:
            outcomes.append((resource, kafka_error_of(error)))
        else:
            outcomes.append((resource, None))

    def result_of(outcome: tuple[AlteredResource, KafkaError | None]) -> ResultT:
        resource, refusal = outcome
        return result_type(
            error_code=refusal.code if refusal else ErrorCode.NONE,
            error_message=refusal.message if refusal else None,
            resource_type=resource.resource_type,
            resource_name=resource.name,
        )

    return await run_in_steps(map_in_steps(result_of, outcomes))


def _altered_resources(
    resources: Sequence[RequestedResource[ConfigT]],
    alteration_of: Callable[[ConfigT], ConfigAlteration],
) -> Steps[list[AlteredResource]]:
    altered = []
    for resource in resources:
        alterations = yield from map_in_steps(alteration_of, resource.configs)
        altered.append(AlteredResource(resource.resource_type, resource.resource_name, alterations))
        yield
    return altered


def _check(
    context: HandlerContext, request: Request[object], resource: AlteredResource, *, replace: bool
) -> None:
    if len(resource.alterations) > ALTERATIONS_MAX:
        text = f"A resource has at most {ALTERATIONS_MAX} settings altered in one request."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    check_alterations(resource.alterations)
    kind = resource.resource_type
    authorized_kind, refusal = AUTHORIZED_AS.get(kind, AUTHORIZED_AS[ConfigResourceType.BROKER])
    authorized_name = CLUSTER_NAME if authorized_kind == "CLUSTER" else resource.name
    if not context.authorize(request, "ALTER_CONFIGS", authorized_kind, authorized_name):
        raise KafkaError(refusal)
    if kind not in _ALTER or (replace and kind == ConfigResourceType.BROKER_LOGGER):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def _altered(
    alteration: Alteration, present: Overrides, definitions: dict[str, Definition]
) -> dict[str, str]:
    current = {} if alteration.replace else present
    return alter_config(
        current,
        alteration.resource.alterations,
        definitions,
        of_broker=alteration.resource.resource_type == ConfigResourceType.BROKER,
    )


async def _alter_topic(alteration: Alteration) -> None:
    context, name = alteration.context, alteration.resource.name
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    validate_topic_name(name)

    def change(present: Overrides) -> Overrides:
        altered = _altered(alteration, present, TOPIC_DEFINITIONS)
        validate_topic_config(altered, context.config)
        if not context.metadata_cache.contains(name):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        return altered

    await context.config_manager.alter(
        TOPICS, name, change, needs=znodes.topic_path(name), validate_only=alteration.validate_only
    )


async def _alter_broker(alteration: Alteration) -> None:
    context, name = alteration.context, alteration.resource.name
    if name:
        require_own_id(context, name, "Node id", "broker id, expected {own}, but received {name}")

    def change(present: Overrides) -> Overrides:
        usable = {
            key: text
            for key, text in present.items()
            if refusal_of(key, text, per_broker=bool(name)) is None
        }
        altered = _altered(alteration, usable, SETTINGS_OF_BROKERS)
        try:
            context.config.validate(altered, per_broker=bool(name))
        except ConfigError as error:
            reason = str(error)[:MESSAGE_CHARACTERS_MAX]  # it may repeat what the client sent
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason) from None
        return altered

    entity = str(context.broker_id) if name else CLUSTER_DEFAULT
    await context.config_manager.alter(
        BROKERS, entity, change, validate_only=alteration.validate_only
    )


async def _alter_loggers(alteration: Alteration) -> None:
    require_own_id(
        alteration.context,
        alteration.resource.name,
        "Node id",
        "node id. Expected {own}, but received {name}",
    )
    change_levels(alteration.resource.alterations, validate_only=alteration.validate_only)


async def _alter_client_metrics(alteration: Alteration) -> None:
    name = alteration.resource.name
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")

    def change(present: Overrides) -> Overrides:
        # As in Kafka, no setting of a subscription is a list to append to.
        altered = _altered(alteration, present, {})
        validate_client_metrics_config(altered)
        return altered

    await alteration.context.config_manager.alter(
        CLIENT_METRICS, name, change, validate_only=alteration.validate_only
    )


async def _alter_group(alteration: Alteration) -> None:
    context, name = alteration.context, alteration.resource.name
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")

    def change(present: Overrides) -> Overrides:
        altered = _altered(alteration, present, GROUP_DEFINITIONS)
        validate_group_config(altered, context.config)
        return altered

    await context.config_manager.alter(GROUPS, name, change, validate_only=alteration.validate_only)


_ALTER: Final[dict[int, Callable[[Alteration], Awaitable[None]]]] = {
    ConfigResourceType.TOPIC: _alter_topic,
    ConfigResourceType.BROKER: _alter_broker,
    ConfigResourceType.BROKER_LOGGER: _alter_loggers,
    ConfigResourceType.CLIENT_METRICS: _alter_client_metrics,
    ConfigResourceType.GROUP: _alter_group,
}


def require_own_id(context: HandlerContext, name: str, noun: str, unexpected: str) -> None:
    """Refuse another broker's name, and one that is no number.

    Args:
        context: the broker's.
        name: of the resource.
        noun: what Kafka calls the id in the request at hand.
        unexpected: what it says there of another broker's, with places for the two ids.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    shown = shorten(name)
    digits = name[1:] if name[:1] in ("-", "+") else name
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 10
    if not is_number:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{noun} must be an integer, but it is: {shown}"
        )
    if int(name) != context.broker_id:
        text = unexpected.format(own=context.broker_id, name=shown)
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected {text}")
