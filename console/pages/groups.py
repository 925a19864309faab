"""Groups of every kind: all of them, one with its members and lag, and moving its offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from ...client.admin.group_descriptions import INACTIVE_STATES
from ...client.consumer.offset_reset import (
    NothingToShift,
    PlannedOffset,
    ResetKind,
    ResetRule,
    plan_reset,
)
from ...common.errors import KafkaError
from ..cluster.group_progress import GroupProgress, PartitionProgress, progress_of
from ..context import ConsoleContext, context_of
from ..forms import done, read_form, require_typed
from ..paging import page_of
from ..parameters import ParameterError, Parameters, parse_time_ms
from ..rendering import make_url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ...common.errors import ErrorCode

PARTITIONS_PER_PAGE: Final = 100
MEMBERS_MAX: Final = 60
LINES_MAX: Final = 50
"""Of so many partitions, those with most lag, the chart is told; it draws those that come first."""
TYPES: Final = ("", "classic", "consumer", "share", "streams")
TARGETS: Final = ("earliest", "latest", "offset", "time", "shift")

STATES: Final = {
    "Stable": "Members share the partitions, and nothing is on its way.",
    "Empty": "Nobody is in it; its offsets are kept for a while.",
    "Dead": "It is being deleted.",
    "PreparingRebalance": "Its members are joining again.",
    "CompletingRebalance": "Its members wait for who reads what.",
    "Assigning": "The broker is working out who reads what.",
    "Reconciling": "Members are giving up and taking partitions.",
    "NotReady": "Topics that its application needs are missing.",
}


async def list_all(request: Request) -> Response:
    """The list."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    text, type_ = parameters.text("search").strip(), parameters.choice("type", TYPES)
    listed = await context.groups.list_groups()
    found = [
        group
        for group in listed
        if text.lower() in group.group_id.lower() and type_ in ("", group.type or "classic")
    ]
    return context.render.page(
        request,
        "groups.html",
        section="groups",
        title="Groups",
        page=page_of(found, parameters.number("page", 1, 1)),
        search=text,
        type=type_,
        types=TYPES[1:],
        count=len(listed),
        states=STATES,
    )


async def show(request: Request) -> Response:
    """One group."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    progress = await progress_of(context, parameters.required("id", 40_000))
    group = progress.group
    page = page_of(progress.partitions, parameters.number("page", 1, 1), PARTITIONS_PER_PAGE)
    return context.render.page(
        request,
        "group.html",
        section="groups",
        title=group.group_id,
        group=group,
        progress=progress,
        page=page,
        columns=columns_of(page.items),
        members=group.members[:MEMBERS_MAX],
        reads={each.member_id: frozenset(each.assignment) for each in group.members},
        is_to_read={each.member_id: frozenset(each.target) for each in group.members},
        names={member.member_id: member.client_id for member in group.members},
        lag_max=max((each.lag or 0 for each in progress.partitions), default=0),
        state=STATES.get(group.state, ""),
        is_inactive=group.state in INACTIVE_STATES,
        topics=sorted({each.topic for each in progress.partitions}),
        targets=TARGETS,
        query={"id": group.group_id},
    )


async def lag(request: Request) -> Response:
    """The lag of a group now, and of the partitions with most of it, for the chart."""
    group_id = Parameters(request.query_params).required("id", 40_000)
    progress = await progress_of(context_of(request), group_id)
    known = [each for each in progress.partitions if each.lag is not None]
    known.sort(key=lambda each: -(each.lag or 0))
    lines = [(f"{each.topic}:{each.partition}", each.lag) for each in known[:LINES_MAX]]
    return JSONResponse({"lag": progress.lag, "lines": lines})


def columns_of(partitions: Sequence[PartitionProgress]) -> list[tuple[str, list[int]]]:
    """Topics, each with its partitions: the columns of the table of who reads what."""
    return [
        (topic, [each.partition for each in group])
        for topic, group in groupby(partitions, lambda each: each.topic)
    ]


async def reset(request: Request) -> Response:
    """Move a group's offsets: show what would come of it first, and commit when that is said."""
    form = await read_form(request)
    context = context_of(request)
    progress = await progress_of(context, form.required("id", 40_000))
    group = progress.group
    if group.state not in INACTIVE_STATES:
        raise ParameterError("the group has members; stop its consumers before moving its offsets")
    rule, plan = await _plan(context, progress, form)
    if form.flag("commit"):
        await _commit(context, group.group_id, plan, is_share=group.is_share)
        return done(make_url("/groups/view", id=group.group_id))
    return context.render.page(
        request,
        "group_reset.html",
        section="groups",
        title=group.group_id,
        group=group,
        plan=sorted(plan.items()),
        rule=rule,
        fields={name: form.text(name) for name in ("topic", "target", "offset", "time", "shift")},
    )


async def _plan(
    context: ConsoleContext, progress: GroupProgress, form: Parameters
) -> tuple[ResetRule, Mapping[tuple[str, int], PlannedOffset]]:
    topic = form.text("topic")
    # What changes a group asks the cluster itself: a snapshot may not have a new topic yet.
    topics = await context.admin.describe_topics({each.topic for each in progress.partitions})
    partitions = [
        (each.topic, each.partition)
        for each in progress.partitions
        if topic in ("", each.topic)
        and each.topic in topics
        and each.partition in topics[each.topic].partitions
    ]
    committed = {
        (each.topic, each.partition): each.committed
        for each in progress.partitions
        if each.committed is not None
    }
    rule = rule_of(form, partitions)
    try:
        return rule, await plan_reset(context.client, partitions, committed, rule)
    except NothingToShift as error:
        raise ParameterError(f"{error}; choose an offset, or the earliest") from error


def rule_of(form: Parameters, partitions: list[tuple[str, int]]) -> ResetRule:
    """What a form asks for. Raises ParameterError."""
    target = form.choice("target", TARGETS)
    if target == "earliest":
        return ResetRule(ResetKind.EARLIEST)
    if target == "latest":
        return ResetRule(ResetKind.LATEST)
    if target == "offset":
        return ResetRule(
            ResetKind.OFFSETS, offsets=dict.fromkeys(partitions, form.number("offset", 0))
        )
    if target == "shift":
        return ResetRule(ResetKind.SHIFT, form.number("shift", 0, -(1 << 62), 1 << 62))
    return ResetRule(ResetKind.TIME, parse_time_ms(form.text("time")))


async def _commit(
    context: ConsoleContext,
    group_id: str,
    plan: Mapping[tuple[str, int], PlannedOffset],
    *,
    is_share: bool,
) -> None:
    """Raises KafkaError for the first offset that was refused."""
    offsets = {each: planned.offset for each, planned in plan.items()}
    if not offsets:
        return
    set_offsets = context.groups.alter_share_offsets if is_share else context.groups.commit
    outcomes: Mapping[tuple[str, int], ErrorCode] = await set_offsets(group_id, offsets)
    for (topic, index), code in outcomes.items():
        if code:
            raise KafkaError(code, f"group {group_id!r}, {topic}:{index}: {code.name}")


async def delete(request: Request) -> Response:
    """Delete a group whose name was typed."""
    form = await read_form(request)
    context = context_of(request)
    group_id = form.required("id", 40_000)
    require_typed(form, group_id, "delete the group", length_max=40_000)
    for name, code in (await context.groups.delete([group_id])).items():
        if code:
            raise KafkaError(code, f"group {name!r}: {code.name}")
    return done("/groups")


ROUTES = [
    Route("/groups", list_all, methods=["GET"]),
    Route("/groups/view", show, methods=["GET"]),
    Route("/groups/lag.json", lag, methods=["GET"]),
    Route("/groups/reset", reset, methods=["POST"]),
    Route("/groups/delete", delete, methods=["POST"]),
]
