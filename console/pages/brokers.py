"""Brokers: all of them, one with its settings, and changing those while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from ...client.admin.admin import BROKER_RESOURCE, ConfigEntry
from ...common.errors import ErrorCode, KafkaError
from ..cluster.gathering import gather_what_answers
from ..context import ConsoleContext, context_of
from ..forms import done, read_form
from ..parameters import NUMBER_MAX, ParameterError, Parameters
from ..rendering import make_url
from .topics import DEFAULT_SOURCE, SOURCES

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ..cluster.cluster_reader import BrokerRow

SCOPES: Final = ("broker", "all")
"""Whose setting is changed: one broker's, or that of all that have none of their own."""
ALL_BROKERS: Final = ""
VALUE_MAX: Final = 100_000


async def list_all(request: Request) -> Response:
    """The list."""
    context = context_of(request)
    snapshot = await context.cluster.snapshot()
    alive = [broker for broker in snapshot.brokers if broker.node is not None]
    answers = await gather_what_answers(
        *(
            lambda broker=broker: context.partitions.describe_log_dirs(broker.broker_id, ())
            for broker in alive
        )
    )
    disks = {
        broker.broker_id: (
            sum(each.total_bytes for each in directories),
            sum(each.usable_bytes for each in directories),
        )
        for broker, directories in zip(alive, answers, strict=True)
        if not isinstance(directories, Exception)
        and all(each.total_bytes >= 0 for each in directories)
    }
    return context.render.page(
        request,
        "brokers.html",
        section="brokers",
        title="Brokers",
        cluster=snapshot,
        disks=disks,
    )


async def show(request: Request) -> Response:
    """One broker's settings; those that were set first."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    text = parameters.text("search").strip().lower()
    only_set = parameters.choice("show", ("set", "all")) == "set" and not text
    broker = await _broker(request)
    number = broker.broker_id
    settings = await context.admin.config_entries(str(number), BROKER_RESOURCE)
    return context.render.page(
        request,
        "broker.html",
        section="brokers",
        title=f"Broker {number}",
        broker=broker,
        settings=sorted(
            (entry for entry in settings if _is_shown(entry, text, only_set=only_set)),
            key=lambda entry: entry.name,
        ),
        count=len(settings),
        search=text,
        only_set=only_set,
        sources=SOURCES,
        default_source=DEFAULT_SOURCE,
    )


async def show_setting(request: Request) -> Response:
    """One setting, and the form that changes it."""
    broker = await _broker(request)
    name = Parameters(request.query_params).required("name")
    entry = await _entry(context_of(request), broker, name)
    return _setting_page(request, broker, entry, entry.value, "broker")


async def change_setting(request: Request) -> Response:
    """Set one setting while brokers run, or have it follow its default again.

    A dry run has the broker say whether it would take the value, and changes nothing.
    """
    form = await read_form(request)
    context = context_of(request)
    broker = await _broker(request)
    entry = await _entry(context, broker, form.required("name"))
    value = None if form.flag("reset") else form.text("value", length_max=VALUE_MAX)
    scope = form.choice("scope", SCOPES)
    resource = ALL_BROKERS if scope == "all" else str(broker.broker_id)
    is_dry = form.flag("check")
    await context.admin.alter_configs(
        resource, {entry.name: value}, BROKER_RESOURCE, validate_only=is_dry
    )
    if is_dry:
        return _setting_page(request, broker, entry, value, scope, is_accepted=True)
    return done(make_url(f"/brokers/{broker.broker_id}", search=entry.name))


def _setting_page(
    request: Request,
    broker: BrokerRow,
    entry: ConfigEntry,
    value: str | None,
    scope: str,
    *,
    is_accepted: bool = False,
) -> Response:
    return context_of(request).render.page(
        request,
        "broker_setting.html",
        section="brokers",
        title=entry.name,
        broker=broker,
        entry=entry,
        # A secret that was typed is in no page.
        value="" if entry.is_sensitive or value is None else value,
        scope=scope,
        is_accepted=is_accepted,
        source=SOURCES.get(entry.source, "unknown"),
    )


async def _broker(request: Request) -> BrokerRow:
    """The broker of a path. Raises ParameterError, and KafkaError where it is not alive."""
    number = Parameters(request.path_params).number("broker", 0, 0, NUMBER_MAX)
    snapshot = await context_of(request).cluster.snapshot()
    broker = next((each for each in snapshot.brokers if each.broker_id == number), None)
    if broker is None:
        raise ParameterError(f"the cluster has no broker {number}")
    if broker.node is None:
        raise KafkaError(
            ErrorCode.BROKER_NOT_AVAILABLE, f"broker {number} is not alive; start it again"
        )
    return broker


async def _entry(context: ConsoleContext, broker: BrokerRow, name: str) -> ConfigEntry:
    """A setting that can be changed while a broker runs. Raises ParameterError."""
    settings = await context.admin.config_entries(str(broker.broker_id), BROKER_RESOURCE)
    entry = next((each for each in settings if each.name == name), None)
    if entry is None:
        raise ParameterError(f"broker {broker.broker_id} has no setting {name[:80]!r}")
    if entry.is_read_only:
        raise ParameterError(f"{name} changes at a restart only, in the broker's file of settings")
    return entry


def _is_shown(entry: ConfigEntry, text: str, *, only_set: bool) -> bool:
    if only_set:
        return entry.source != DEFAULT_SOURCE
    return text in entry.name.lower() or text in (entry.value or "").lower()


ROUTES = [
    Route("/brokers", list_all, methods=["GET"]),
    Route("/brokers/{broker}", show, methods=["GET"]),
    Route("/brokers/{broker}/setting", show_setting, methods=["GET"]),
    Route("/brokers/{broker}/setting", change_setting, methods=["POST"]),
]
