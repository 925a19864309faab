"""What only the controller can do, done on any broker: the request goes on to it.

A client may send CreateTopics and its like to any broker, as with Kafka 4. Where this broker
is not the controller the request is sent on as it is, and the controller's answer becomes the
answer. One that was sent on is not sent on again, so two brokers that each take the other for
the controller cannot play ping-pong. The controller authorizes it as if its client had come to it,
and counts it for that client's quotas (as Kafka does with Envelope, KIP-590).
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import quote, unquote

from ...client.errors import ClientError
from ...common.errors import ErrorCode, KafkaError
from ...controller.settings import topic_for_first_use
from ...controller.topics.planning import TopicCreation
from ...metadata.metadata_waiting import partitions_are_led, wait_for_metadata
from ...protocol import messages
from ...runtime import waiting
from ...runtime.long_work import run_in_steps
from ...runtime.steps import map_in_steps
from ..request.context import HandlerContext
from ..request.requests import Request

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

logger = logging.getLogger(__name__)

FORWARDED_BY = "odradek-forwarded-by-broker-"
"""The client id of requests sent on begins so."""

RETRY_BACKOFF_MS = 100
DEFAULT_TIMEOUT_MS = 30_000
"""For requests that bring no time-out of their own."""

ANSWER_GRACE_MS = 1_000
"""How much longer than the client's time-out the controller may take to say that it passed."""

CREATE_TOPICS_VERSION = 7

BodyT = TypeVar("BodyT", bound="Message")
ResponseT = TypeVar("ResponseT", bound="Message")
ResultT = TypeVar("ResultT")
AsyncHandler = Callable[[HandlerContext, Request[BodyT]], Awaitable[ResponseT]]


def on_controller(
    handler: AsyncHandler[BodyT, ResponseT], *, heeds_timeout: bool = True
) -> AsyncHandler[BodyT, ResponseT]:
    """Have a handler run on the controller, whichever broker its request came to.

    It may find that this broker is the controller no more and raise NOT_CONTROLLER; then the
    request is sent on.

    Args:
        heeds_timeout: whether the request's own time-out counts, if it has one.
    """

    @wraps(handler)
    async def handle_or_send_on(context: HandlerContext, request: Request[BodyT]) -> ResponseT:
        timeout_ms = DEFAULT_TIMEOUT_MS
        if heeds_timeout:
            timeout_ms = getattr(request.body, "timeout_ms", DEFAULT_TIMEOUT_MS)
        if request.client_id.startswith(FORWARDED_BY):
            return await handler(context, _on_behalf(context, request))

        async def here() -> ResponseT:
            return await handler(context, request)

        answer = await ask_controller(
            context, request.body, request.api_version, timeout_ms, here, _client_of(request)
        )
        return cast("ResponseT", answer)  # the controller answers with its API's response, too

    return handle_or_send_on


async def ask_controller(
    context: HandlerContext,
    body: Message,
    version: int,
    timeout_ms: int,
    here: Callable[[], Awaitable[ResultT]],
    on_behalf: str = "",
) -> ResultT | Message:
    """The answer of the controller, found again for as long as the time-out lasts.

    Args:
        body: the request, to be sent in `version`.
        here: what to do where this broker is the controller.
        on_behalf: of which client it is (`_client_of`); empty: this broker's own.

    Raises:
        KafkaError: REQUEST_TIMED_OUT, the controller was not found, or did not answer.
    """
    with waiting.move_on_after(max(timeout_ms, 0) / 1000 + ANSWER_GRACE_MS / 1000):
        while True:
            if context.controller.is_active or timeout_ms <= 0:
                try:
                    return await _to_its_end(context, here)
                except KafkaError as refusal:
                    if refusal.code is not ErrorCode.NOT_CONTROLLER:
                        raise
            else:
                answer = await _send_on(context, body, version, timeout_ms, on_behalf)
                if answer is not None:
                    return answer
            await waiting.sleep(RETRY_BACKOFF_MS / 1000)
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The controller was not found in time.")


async def _to_its_end(
    context: HandlerContext, operation: Callable[[], Awaitable[ResultT]]
) -> ResultT:
    """Do in a task of its own what the controller does for a request, and wait for its outcome.

    Once begun it goes to its end, whoever waits: what was written to the store and sent to brokers
    cannot be taken back, and cut off in between it would leave the controller's view behind them.
    In Kafka, too, only the answer is timed.
    """
    is_done = waiting.new_event()
    results: list[ResultT] = []
    failures: list[Exception] = []

    async def run() -> None:
        try:
            results.append(await operation())
        except Exception as failure:
            failures.append(failure)  # the request is answered with it
        is_done.set()

    context.start_task(run)
    await is_done.wait()
    if failures:
        raise failures[0]
    return results[0]


async def _send_on(
    context: HandlerContext, body: Message, version: int, timeout_ms: int, on_behalf: str
) -> Message | None:
    """The controller's answer; None where it is not known, not reached, or no controller."""
    controller_id = context.metadata_cache.controller_id
    if controller_id is None or controller_id == context.broker_id:
        return None
    try:
        client_id = f"{FORWARDED_BY}{context.broker_id}{on_behalf}"
        api_key = type(body).api_key
        assert api_key is not None, f"{body!r} is no request"
        versions = {api_key: version}
        async with context.links.to_broker(controller_id, versions, client_id) as connection:
            answer = await connection.request(
                body, version=version, timeout_ms=timeout_ms + ANSWER_GRACE_MS
            )
    except ClientError as error:
        logger.warning("could not send a request on to the controller: %s", error)
        return None
    return None if _says_not_controller(answer) else answer


def _client_of(request: Request[BodyT]) -> str:
    """Whose request it is, as the client id of a request that is sent on ends."""
    connection = request.connection
    parts = (connection.principal, connection.peer_host, request.client_id)
    return "".join(f" {quote(part, safe=':')}" for part in parts)


def _on_behalf(context: HandlerContext, request: Request[BodyT]) -> Request[BodyT]:
    """A request that was sent on, as it came from its client; only a broker can say from whom."""
    _, *parts = request.client_id.split(" ")
    if len(parts) != len(("principal", "host", "client id")):
        return request  # it is the other broker's own
    if not context.registered_brokers.is_broker(request.connection):
        return request
    principal, host, client_id = map(unquote, parts)
    connection = copy.copy(request.connection)  # to be authorized, not to be answered
    connection.principal = principal
    connection.peer = f"[{host}]:0"
    connection.is_broker = False
    return Request(request.route, request.correlation_id, client_id, request.body, connection)


def _says_not_controller(answer: Message) -> bool:
    """Whether the whole request was refused so: every error code in the answer says it."""
    code = getattr(answer, "error_code", None)
    if code is not None and code != ErrorCode.NONE:
        return bool(code == ErrorCode.NOT_CONTROLLER)
    for name in ("topics", "results", "responses", "replica_election_results"):
        items = getattr(answer, name, None)
        if items:
            return all(
                getattr(item, "error_code", ErrorCode.NONE) == ErrorCode.NOT_CONTROLLER
                for item in items
            )
    return False


async def ensure_topics(context: HandlerContext, names: Sequence[str]) -> dict[str, KafkaError]:
    """Have those topics made that are not there, as they are made when first used.

    Returns once this broker's metadata shows them.

    Returns:
        Why, for those that cannot be made.

    Raises:
        KafkaError: none was made.
    """

    async def here() -> dict[str, KafkaError]:
        return await context.controller.ensure_topics(names)

    broker_count = len(context.metadata_cache.snapshot.alive_brokers)
    new_topics = await run_in_steps(
        map_in_steps(lambda name: topic_for_first_use(name, context.config, broker_count), names)
    )
    refused = await _have_created(context, new_topics, here)
    made = [(name, 1) for name in names if name not in refused]
    await wait_for_metadata(context.metadata_cache, partitions_are_led(made), DEFAULT_TIMEOUT_MS)
    return refused


async def create_topics_for(
    context: HandlerContext, request: Request[BodyT], topics: Sequence[TopicCreation]
) -> dict[str, KafkaError]:
    """Have topics made that a client's request turned out to need; those that are there are fine.

    Returns:
        Why, for those that cannot be made.

    Raises:
        KafkaError: none was made.
    """

    async def here() -> dict[str, KafkaError]:
        made = await context.controller.create_topics(topics)
        return {
            each.name: each.error
            for each in made
            if each.error is not None and each.error.code is not ErrorCode.TOPIC_ALREADY_EXISTS
        }

    return await _have_created(context, topics, here, _client_of(request))


async def _have_created(
    context: HandlerContext,
    topics: Iterable[TopicCreation],
    here: Callable[[], Awaitable[dict[str, KafkaError]]],
    client: str = "",
) -> dict[str, KafkaError]:
    """Have topics made by the controller, wherever it is; returns why for those that cannot be.

    Args:
        here: makes them, where this broker is the controller.
        client: on whose behalf, as `ask_controller` takes it.
    """
    body = messages.CreateTopicsRequest(
        topics=await run_in_steps(map_in_steps(_creatable, topics)), timeout_ms=DEFAULT_TIMEOUT_MS
    )
    answer = await ask_controller(
        context, body, CREATE_TOPICS_VERSION, DEFAULT_TIMEOUT_MS, here, client
    )
    if isinstance(answer, dict):
        return answer
    assert isinstance(answer, messages.CreateTopicsResponse)
    return _refusals(answer)


def create_topics_beside(context: HandlerContext, names: Iterable[str]) -> None:
    """Have those topics made that are not there, and do not wait; each is made once at a time."""

    def note(refused: Mapping[str, KafkaError]) -> None:
        for name, why in refused.items():
            logger.info("could not create topic %s when it was first used: %s", name, why)

    create_beside(context, names, partial(ensure_topics, context), note)


def create_beside(
    context: HandlerContext,
    names: Iterable[str],
    create: Callable[[Sequence[str]], Awaitable[Mapping[str, KafkaError]]],
    on_refused: Callable[[Mapping[str, KafkaError]], None],
) -> None:
    """Have topics made, and do not wait; each is made once at a time.

    Args:
        create: makes those of some names, and returns why for those that cannot be made.
        on_refused: is given these, when all is done.
    """
    names = [name for name in names if name not in context.topics_in_creation]
    if names:
        context.topics_in_creation.update(names)
        context.start_task(_create_beside, context, names, create, on_refused)


async def _create_beside(
    context: HandlerContext,
    names: Sequence[str],
    create: Callable[[Sequence[str]], Awaitable[Mapping[str, KafkaError]]],
    on_refused: Callable[[Mapping[str, KafkaError]], None],
) -> None:
    try:
        refused = await create(names)
    except KafkaError as refusal:
        refused = dict.fromkeys(names, refusal)
    finally:
        context.topics_in_creation.difference_update(names)
    on_refused(refused)


def _refusals(answer: messages.CreateTopicsResponse) -> dict[str, KafkaError]:
    there = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return {
        topic.name: KafkaError(ErrorCode(topic.error_code), topic.error_message)
        for topic in answer.topics
        if topic.error_code not in there
    }


def _creatable(topic: TopicCreation) -> messages.CreateTopicsRequest.CreatableTopic:
    make = messages.CreateTopicsRequest
    return make.CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=[
            make.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs
        ],
    )
