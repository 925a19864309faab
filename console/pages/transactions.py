"""Transactions: those that are open, those that hang, and the producers of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from ...client.admin.admin import BROKER_RESOURCE
from ...common.errors import ErrorCode, KafkaError
from ..cluster.gathering import gather_what_answers
from ..context import ConsoleContext, context_of
from ..forms import done, read_form, require_typed
from ..paging import AT_ONCE_PARTITIONS_MAX, page_of
from ..parameters import ParameterError, Parameters
from ..rendering import make_url

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ...client.admin.transaction_descriptions import HangingTransaction
    from ..cluster.cluster_reader import ClusterSnapshot

    TopicPartition = tuple[str, int]

PRODUCERS_MAX: Final = 500
SEARCHED_PARTITIONS_MAX: Final = 20_000
"""Of so many partitions the producers are asked for at once."""
MINUTES_MAX: Final = 1 << 31
MAX_TIMEOUT: Final = "transaction.max.timeout.ms"
MAX_TIMEOUT_MS: Final = 900_000
"""Kafka's default, where the brokers do not say what theirs is."""
STATES: Final = {
    "Empty": "No transaction yet.",
    "Ongoing": "A transaction is open.",
    "PrepareCommit": "It is being committed: markers are on their way.",
    "PrepareAbort": "It is being aborted: markers are on their way.",
    "CompleteCommit": "The last transaction was committed.",
    "CompleteAbort": "The last transaction was aborted.",
    "PrepareEpochFence": "An older producer is being fenced off.",
    "Dead": "It is being forgotten.",
}


async def list_all(request: Request) -> Response:
    """The transactional ids."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    text, is_open = parameters.text("search").strip(), parameters.flag("open")
    listed = await context.transactions.list_transactions()
    found = [
        each
        for each in listed
        if text.lower() in each.transactional_id.lower()
        and (not is_open or each.state in ("Ongoing", "PrepareCommit", "PrepareAbort"))
    ]
    return context.render.page(
        request,
        "transactions.html",
        section="transactions",
        title="Transactions",
        page=page_of(found, parameters.number("page", 1, 1)),
        search=text,
        is_open=is_open,
        count=len(listed),
        states=STATES,
    )


async def show(request: Request) -> Response:
    """One transactional id."""
    context = context_of(request)
    name = Parameters(request.query_params).required("id", 40_000)
    found = (await context.transactions.describe([name]))[name]
    if found is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"transactional id {name!r}")
    now_ms = context.client.clock.now_ms()
    return context.render.page(
        request,
        "transaction.html",
        section="transactions",
        title=name,
        transaction=found,
        partitions=sorted(found.partitions),
        age_ms=None if found.started_ms is None else now_ms - found.started_ms,
        states=STATES,
    )


async def fence(request: Request) -> Response:
    """End what a transactional id has open, and shut its producers out, once its name was typed."""
    form = await read_form(request)
    context = context_of(request)
    name = form.required("id", 40_000)
    require_typed(form, name, "end the transaction", length_max=40_000)
    await context.transactions.fence(name)
    return done(make_url("/transactions/view", id=name))


async def show_hanging(request: Request) -> Response:
    """Transactions that are open in partitions, and that no coordinator is going to end."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    text = parameters.text("search").strip()
    minutes = parameters.optional_number("minutes", 0, MINUTES_MAX)
    snapshot = await context.cluster.snapshot()
    partitions = led_partitions(snapshot, text)
    if minutes is None:
        minutes = await _max_timeout_minutes(context, snapshot)
    # A look through many takes a while: the page comes first, and asks for it.
    is_later = len(partitions) > AT_ONCE_PARTITIONS_MAX and not parameters.flag("now")
    searched = [] if is_later else partitions[:SEARCHED_PARTITIONS_MAX]
    found = await _hanging(context, searched, minutes)
    number = parameters.number("page", 1, 1)
    return context.render.page(
        request,
        "hanging.html",
        section="transactions",
        title="Hanging transactions",
        page=page_of(found, number),
        search=text,
        minutes=minutes,
        searched=len(searched),
        is_later=is_later,
        number=number,
        count=len(partitions),
        now_ms=context.client.clock.now_ms(),
    )


async def show_abort(request: Request) -> Response:
    """One that hangs, and the form that ends it."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    found = await _one_hanging(context, parameters)
    return context.render.page(
        request,
        "hanging_abort.html",
        section="transactions",
        title="Abort a hanging transaction",
        hanging=found,
        minutes=parameters.number("minutes", 0, 0, MINUTES_MAX),
        age_ms=context.client.clock.now_ms() - found.producer.last_timestamp,
    )


async def abort(request: Request) -> Response:
    """End one that hangs, past its coordinator, once its topic's name was typed."""
    form = await read_form(request)
    context = context_of(request)
    found = await _one_hanging(context, form)
    require_typed(form, found.partition[0], "abort the transaction", "its topic's name")
    begins = found.producer.open_since_offset
    assert begins is not None  # or it would not hang
    if not await context.transactions.abort_open(found.partition, begins):
        raise ParameterError("the transaction has ended meanwhile; nothing was done")
    minutes = form.number("minutes", 0, 0, MINUTES_MAX)
    return done(make_url("/transactions/hanging", minutes=minutes))


def led_partitions(snapshot: ClusterSnapshot, text: str) -> list[TopicPartition]:
    """The partitions that have a leader, of topics whose names have a text in them."""
    offline = {(each.topic, each.partition) for each in snapshot.troubled if each.leader is None}
    return [
        (topic.name, index)
        for topic in snapshot.topics.values()
        if text.lower() in topic.name.lower()
        for index in range(topic.partitions)
        if (topic.name, index) not in offline
    ]


async def _hanging(
    context: ConsoleContext, partitions: list[TopicPartition], minutes: int
) -> list[HangingTransaction]:
    return await context.transactions.find_hanging(
        partitions, now_ms=context.client.clock.now_ms(), older_than_ms=minutes * 60_000
    )


async def _one_hanging(context: ConsoleContext, given: Parameters) -> HangingTransaction:
    """The one that a query or a form names. Raises ParameterError where it does not hang."""
    partition = given.required("topic", 249), given.number("partition", 0)
    begins = given.number("offset", 0)
    for each in await _hanging(context, [partition], given.number("minutes", 0, 0, MINUTES_MAX)):
        if each.producer.open_since_offset == begins:
            return each
    raise ParameterError(
        "no transaction hangs there: it has ended, or its coordinator knows of it and will end it"
    )


async def _max_timeout_minutes(context: ConsoleContext, snapshot: ClusterSnapshot) -> int:
    """What the brokers allow a transaction at most; what is younger may yet end."""
    values: list[str] = []
    alive = [broker.broker_id for broker in snapshot.brokers if broker.node is not None]
    if alive:  # a Kafka that is only starting, or stops, names no broker
        (entries,) = await gather_what_answers(
            lambda: context.admin.config_entries(str(alive[0]), BROKER_RESOURCE)
        )
        given = () if isinstance(entries, Exception) else entries
        values = [each.value for each in given if each.name == MAX_TIMEOUT and each.value]
    return -(-int(values[0] if values else MAX_TIMEOUT_MS) // 60_000)


async def producers(request: Request) -> Response:
    """The producers that a partition remembers."""
    context = context_of(request)
    name = request.path_params["topic"]
    topic = await context.cluster.topic(name)
    parameters = Parameters(request.query_params)
    partition = parameters.number("partition", 0, 0, len(topic.partitions) - 1)
    found = (await context.transactions.producers([(name, partition)]))[name, partition]
    return context.render.page(
        request,
        "producers.html",
        section="topics",
        title=name,
        topic=topic,
        tab="producers",
        partition=partition,
        producers=found[:PRODUCERS_MAX],
        count=len(found),
    )


ROUTES = [
    Route("/transactions", list_all, methods=["GET"]),
    Route("/transactions/view", show, methods=["GET"]),
    Route("/transactions/fence", fence, methods=["POST"]),
    Route("/transactions/hanging", show_hanging, methods=["GET"]),
    Route("/transactions/hanging/abort", show_abort, methods=["GET"]),
    Route("/transactions/hanging/abort", abort, methods=["POST"]),
    Route("/topics/{topic}/producers", producers, methods=["GET"]),
]
