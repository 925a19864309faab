"""Topics: all of them, and one with its partitions and settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from starlette.routing import Route

from ...client.admin.admin import TOPIC_RESOURCE, ConfigEntry, ConfigSynonym, NewTopic
from ...client.consumer.offsets import list_offsets
from ...common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ...runtime.rng import uuid_to_text
from ..cluster.cluster_reader import TopicRow, search
from ..cluster.gathering import gather, gather_what_answers
from ..context import ConsoleContext, context_of
from ..forms import done, read_form, require_typed
from ..paging import page_of
from ..parameters import ParameterError, Parameters

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ...protocol import messages

    PartitionMetadata = messages.MetadataResponse.MetadataResponsePartition

PARTITIONS_PER_PAGE = 100
SIZED_PARTITIONS_MAX = 2_000
"""The sizes of a page's topics are asked for as long as they have so many partitions together."""

ORDERS = ("name", "partitions", "trouble")

SOURCES = {
    1: "this topic",
    2: "this broker",
    3: "all brokers, dynamic",
    4: "broker, static",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "this group",
}
"""Where a setting comes from, by Kafka's ConfigSource."""
SETTING_MAX = 100_000
OWN_SOURCE = 1
DEFAULT_SOURCE = 5


class PartitionRow(NamedTuple):
    """A partition as its topic's page shows it; None for what nobody answers for now."""

    number: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    start: int | None
    end: int | None
    size: int | None

    @property
    def records(self) -> int | None:
        """Between start and end; fewer where a topic is compacted or has transactions."""
        return None if self.start is None or self.end is None else self.end - self.start


async def list_all(request: Request) -> Response:
    """The list; its table alone where the search asks for it."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    text, internal = parameters.text("search"), parameters.flag("internal")
    order = parameters.choice("order", ORDERS)
    snapshot = await context.cluster.snapshot()
    found = search(snapshot.topics.values(), text, internal=internal)
    if order == "partitions":
        found.sort(key=lambda topic: (-topic.partitions, topic.name))
    elif order == "trouble":
        found.sort(key=lambda topic: (-topic.offline, -topic.under_replicated, topic.name))
    page = page_of(found, parameters.number("page", 1, 1))
    return context.render.page(
        request,
        "topics.html",
        section="topics",
        title="Topics",
        page=page,
        search=text,
        internal=internal,
        order=order,
        sizes=await _sizes(context, page.items),
        hidden=sum(topic.is_internal for topic in snapshot.topics.values()),
        all_topics=len(snapshot.topics),
    )


async def _sizes(context: ConsoleContext, topics: Sequence[TopicRow]) -> dict[str, int]:
    """The bytes that each topic of a page has on all brokers' disks; nothing where they are many
    partitions, or brokers do not say."""
    if sum(topic.partitions for topic in topics) > SIZED_PARTITIONS_MAX:
        return {}
    partitions = [(topic.name, index) for topic in topics for index in range(topic.partitions)]
    sizes: dict[str, int] = {}
    for (name, _), each in (await _replica_sizes(context, partitions)).items():
        sizes[name] = sizes.get(name, 0) + sum(each.values())
    return sizes


async def _replica_sizes(
    context: ConsoleContext, partitions: list[tuple[str, int]]
) -> dict[tuple[str, int], dict[int, int]]:
    """The bytes of each replica, by broker; of those brokers that answer."""
    if not partitions:
        return {}
    alive = [node.id for node in await context.client.live_brokers()]
    answers = await gather_what_answers(
        *(
            lambda broker=broker: context.partitions.describe_log_dirs(broker, partitions)
            for broker in alive
        )
    )
    sizes: dict[tuple[str, int], dict[int, int]] = {}
    for broker, directories in zip(alive, answers, strict=True):
        if isinstance(directories, Exception):
            continue
        for directory in directories:
            for key, replica in directory.replicas.items():
                if not replica.is_future:
                    sizes.setdefault(key, {})[broker] = replica.size
    return sizes


async def show(request: Request) -> Response:
    """One topic: a page of its partitions."""
    context = context_of(request)
    name = request.path_params["topic"]
    topic = await context.cluster.topic(name)
    parameters = Parameters(request.query_params)
    page = page_of(topic.partitions, parameters.number("page", 1, 1), PARTITIONS_PER_PAGE)
    rows, settings = await gather(
        lambda: _rows(context, name, list(page.items)),
        lambda: context.admin.config_entries(name, TOPIC_RESOURCE),
    )
    counted = [row.records for row in rows if row.records is not None]
    return context.render.page(
        request,
        "topic.html",
        section="topics",
        title=name,
        topic=topic,
        topic_id=uuid_to_text(topic.topic_id) if any(topic.topic_id) else None,
        page=page._replace(items=rows),
        records=sum(counted) if page.pages == 1 and len(counted) == len(rows) else None,
        size=sum(row.size or 0 for row in rows) if page.pages == 1 else None,
        own=[entry for entry in settings if entry.source == OWN_SOURCE],
        cleanup=_value(settings, "cleanup.policy"),
        tab="partitions",
    )


def _value(settings: list[ConfigEntry], name: str) -> str | None:
    return next((entry.value for entry in settings if entry.name == name), None)


async def _rows(
    context: ConsoleContext, name: str, partitions: list[PartitionMetadata]
) -> list[PartitionRow]:
    led = [each.partition_index for each in partitions if each.leader_id >= 0]
    sizes, starts, ends = await gather_what_answers(
        lambda: _replica_sizes(context, [(name, each.partition_index) for each in partitions]),
        lambda: list_offsets(context.client, {(name, index): EARLIEST_TIMESTAMP for index in led}),
        lambda: list_offsets(context.client, {(name, index): LATEST_TIMESTAMP for index in led}),
    )
    rows = []
    for each in partitions:
        key = name, each.partition_index
        replicas = {} if isinstance(sizes, Exception) else sizes.get(key, {})
        start = None if isinstance(starts, Exception) else starts.get(key)
        end = None if isinstance(ends, Exception) else ends.get(key)
        rows.append(
            PartitionRow(
                each.partition_index,
                each.leader_id if each.leader_id >= 0 else None,
                each.leader_epoch,
                list(each.replica_nodes),
                list(each.isr_nodes),
                start.offset if start else None,
                end.offset if end else None,
                replicas.get(each.leader_id),
            )
        )
    return rows


async def show_settings(request: Request) -> Response:
    """One topic: its settings, and where each comes from."""
    context = context_of(request)
    name = request.path_params["topic"]
    topic, settings = await gather(
        lambda: context.cluster.topic(name),
        lambda: context.admin.config_entries(name, TOPIC_RESOURCE),
    )
    settings.sort(key=lambda entry: (entry.source != OWN_SOURCE, entry.name))
    return context.render.page(
        request,
        "topic_settings.html",
        section="topics",
        title=name,
        topic=topic,
        settings=settings,
        sources=SOURCES,
        own_source=OWN_SOURCE,
        tab="settings",
    )


async def change_setting(request: Request) -> Response:
    """Set one setting of a topic, or have it follow its default again.

    A dry run has the broker say whether it would take the value, and shows what would change.
    """
    form = await read_form(request)
    context = context_of(request)
    name, setting = request.path_params["topic"], form.required("name")
    value = None if form.flag("reset") else form.text("value", length_max=SETTING_MAX)
    is_dry = form.flag("check")
    await context.admin.alter_configs(name, {setting: value}, TOPIC_RESOURCE, validate_only=is_dry)
    if not is_dry:
        return done(f"{_path(name)}/settings")
    topic, settings = await gather(
        lambda: context.cluster.topic(name),
        lambda: context.admin.config_entries(name, TOPIC_RESOURCE, with_synonyms=True),
    )
    entry = next((each for each in settings if each.name == setting), None)
    if entry is None:
        raise ParameterError(f"the topic has no setting {setting[:80]!r}")
    return context.render.page(
        request,
        "topic_setting.html",
        section="topics",
        title=name,
        topic=topic,
        tab="settings",
        now=entry,
        then=changed(entry, value),
        value=value,
        sources=SOURCES,
    )


def changed(entry: ConfigEntry, value: str | None) -> ConfigSynonym | None:
    """What a topic's setting would be.

    Args:
        entry: what it is, with where else it is set.
        value: of the topic; None: none.

    Returns:
        Value and source; None where the brokers do not say what it would follow.
    """
    if value is not None:
        return ConfigSynonym(entry.name, value, OWN_SOURCE)
    return next((each for each in entry.synonyms if each.source != OWN_SOURCE), None)


async def show_creation(request: Request) -> Response:
    """The form for a new topic."""
    return context_of(request).render.page(
        request, "topic_create.html", section="topics", title="Create a topic"
    )


async def create(request: Request) -> Response:
    """Create a topic."""
    form = await read_form(request)
    context = context_of(request)
    name = form.required("name")
    topic = NewTopic(
        name,
        form.number("partitions", -1, 1, 100_000),
        form.number("replication", -1, 1, 1_000),
        configs=_settings_of(form.text("settings", length_max=20_000)),
    )
    await context.admin.create_topics([topic])
    await context.admin.wait_for_topics([name])
    context.cluster.forget()
    return done(_path(name))


def _settings_of(text: str) -> dict[str, str | None]:
    """Settings, one NAME=VALUE on each line. Raises ParameterError."""
    settings: dict[str, str | None] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ParameterError(f"a setting is written as NAME=VALUE, not {line[:80]!r}")
        settings[name.strip()] = value.strip()
    return settings


async def show_deletion(request: Request) -> Response:
    """Ask for the name before a topic is deleted."""
    context = context_of(request)
    name = request.path_params["topic"]
    return context.render.page(
        request,
        "topic_delete.html",
        section="topics",
        title=name,
        topic=await context.cluster.topic(name),
        tab="delete",
    )


async def delete(request: Request) -> Response:
    """Delete a topic whose name was typed."""
    form = await read_form(request)
    context = context_of(request)
    name = request.path_params["topic"]
    require_typed(form, name, "delete the topic", f"its name, {name},")
    await context.admin.delete_topics([name])
    context.cluster.forget()
    return done("/topics")


def _path(name: str) -> str:
    return f"/topics/{quote(name, safe='')}"


ROUTES = [
    Route("/topics", list_all, methods=["GET"]),
    Route("/topics", create, methods=["POST"]),
    Route("/new-topic", show_creation, methods=["GET"]),
    Route("/topics/{topic}", show, methods=["GET"]),
    Route("/topics/{topic}/settings", show_settings, methods=["GET"]),
    Route("/topics/{topic}/settings", change_setting, methods=["POST"]),
    Route("/topics/{topic}/delete", show_deletion, methods=["GET"]),
    Route("/topics/{topic}/delete", delete, methods=["POST"]),
]
