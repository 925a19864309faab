"""For a test broker: faults, outages, time and requests, by its control channel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.routing import Route

from ..cluster.gathering import gather_what_answers
from ..cluster_map import map_of
from ..context import context_of
from ..control_channel import ControlChannel
from ..forms import done, read_form
from ..paging import page_of
from ..parameters import ParameterError, Parameters
from ..rendering import make_url
from ..transcript import Transcript, call

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

FAULTS: Final = {
    "answer": "answer with an error",
    "delay": "hold requests before they are handled",
    "delay_answer": "hold answers",
    "drop": "drop requests",
    "drop_answer": "drop answers",
    "disconnect": "close the connection in place of handling",
    "lose_answer": "handle, then close in place of the answer",
    "truncate_answer": "send the beginning of the answer",
    "corrupt_answer": "turn over a bit of the answer",
    "corrupt_records": "turn over a bit of the records",
    "throttle": "pass bytes slowly",
    "half_open": "let the connection go dead",
    "refuse_login": "refuse logins",
    "expire_session": "let a login expire",
    "refuse_connections": "refuse connections",
}
APIS: Final = (
    "",
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "ConsumerGroupHeartbeat",
    "ApiVersions",
    "CreateTopics",
    "DeleteTopics",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "TxnOffsetCommit",
    "ShareFetch",
    "ShareAcknowledge",
    "ShareGroupHeartbeat",
)
WITHOUT_API: Final = frozenset({"refuse_login", "refuse_connections"})
WITH_SECONDS: Final = frozenset({"delay", "delay_answer"})
WHICH: Final = ("topic", "client_id", "group", "transactional_id")
TRIGGERS: Final = ("times", "on", "after", "every")
BROKER_ACTS: Final = {
    "kill": "kill",
    "stop": "stop",
    "start": "start",
    "freeze": "freeze",
    "thaw": "thaw",
    "fill-disk": "fill_disk",
    "free-disk": "free_disk",
    "expire-metadata-session": "expire_metadata_session",
}
"""Operations of the channel, and the methods of `odradek.testing` that do the same."""
REQUESTS_SHOWN: Final = 100
REQUESTS_SEARCHED: Final = 2_000
"""Among the last so many of a client and an API one is looked for that is to be shown whole."""
LOOK_SECONDS_MAX: Final = 2.0
TOPIC_NAME_MAX: Final = 249
LEADERS_PER_PAGE: Final = 50


async def show(request: Request) -> Response:
    """The page; its live parts alone where they are asked for again."""
    channel, context = _channel(request), context_of(request)
    parameters = Parameters(request.query_params)
    cluster = await channel.get("/")
    # A broker that is frozen says nothing of its faults, its disks, nor what time it is there.
    faults, times, disks = await gather_what_answers(
        lambda: channel.get("/faults", LOOK_SECONDS_MAX),
        lambda: channel.get("/time", LOOK_SECONDS_MAX),
        lambda: channel.get("/disks", LOOK_SECONDS_MAX),
    )
    clocks = [] if isinstance(times, Exception) else times["brokers"]
    full = (
        set()
        if isinstance(disks, Exception)
        else {each["id"] for each in disks["brokers"] if each["filled"]}
    )
    name = parameters.text("topic", length_max=TOPIC_NAME_MAX).strip()
    leaders = await context.cluster.topic(name) if name else None
    transcript: Transcript = request.app.state.transcript
    moves = request.app.state.moves.shown()
    return context.render.page(
        request,
        "test_broker.html",
        section="test",
        title="Test broker",
        brokers=cluster["brokers"],
        map=map_of(cluster, full, moves),
        full=full,
        cut_links=cluster.get("cut_links", ()),
        moves=moves,
        topic=name,
        leaders=leaders
        and page_of(leaders.partitions, parameters.number("page", 1, 1), LEADERS_PER_PAGE),
        faults=None if isinstance(faults, Exception) else faults["faults"],
        clocks={each["id"]: round(each["time"] * 1000) for each in clocks},
        kinds=FAULTS,
        apis=APIS,
        recipe=transcript.recipe(len(cluster["brokers"])),
    )


async def add_fault(request: Request) -> Response:
    """Have a fault strike from now on."""
    form = await read_form(request)
    kind = form.choice("fault", tuple(FAULTS))
    fault = fault_of(kind, form)
    triggers = {name: form.optional_number(name, 1, 1_000_000) for name in TRIGGERS}
    broker = form.optional_number("broker")
    body = {"fault": kind, **fault, **triggers, "broker": broker}
    added = await _channel(request).post(
        "/faults", {name: value for name, value in body.items() if value is not None}
    )
    _note(request, f"fault_{added['id']} = {_fault_line(kind, fault, triggers, broker)}")
    return done("/test")


def fault_of(kind: str, form: Parameters) -> dict[str, object]:
    """The arguments of a fault. Raises ParameterError."""
    fault: dict[str, object] = {name: form.text(name) for name in WHICH if form.text(name)}
    if kind == "refuse_connections":
        return {}
    if kind not in WITHOUT_API and form.text("api"):
        fault["api"] = form.text("api")
    if kind == "answer":
        if "api" not in fault:
            raise ParameterError("to answer with an error, choose an API")
        fault["error"] = form.text("error") or "UNKNOWN_SERVER_ERROR"
    if kind in WITH_SECONDS:
        fault["seconds"] = form.number("milliseconds", 1_000, 1, 3_600_000) / 1000
    if kind == "throttle":
        fault["bytes_per_second"] = form.number("bytes_per_second", 1_024, 1)
    return fault


def _fault_line(
    kind: str, fault: dict[str, object], triggers: dict[str, int | None], broker: int | None
) -> str:
    named = dict(fault)
    first = [named.pop(name) for name in ("api", "error") if name in named]
    made = call(f"faults.{kind}", first, **named)
    for name, value in triggers.items():
        if value is not None:
            made += f".{name}({value})"
    target = "kafka_cluster" if broker is None else f"kafka_cluster.broker({broker})"
    return f"{target}.faults.add({made})"


async def lift_fault(request: Request) -> Response:
    """Have one fault strike no more, or all."""
    form = await read_form(request)
    number = form.optional_number("id")
    await _channel(request).delete("/faults" if number is None else f"/faults/{number}")
    every = "kafka_cluster.faults.lift_all()"
    _note(request, every if number is None else f"fault_{number}.lift()")
    return done("/test")


async def act_on_broker(request: Request) -> Response:
    """Kill, freeze, start a broker, and so on."""
    form = await read_form(request)
    act = form.choice("act", tuple(BROKER_ACTS))
    broker = form.number("broker", 0)
    await _channel(request).post(f"/brokers/{broker}/{act}", {})
    _note(request, f"kafka_cluster.broker({broker}).{BROKER_ACTS[act]}()")
    context_of(request).cluster.forget()
    return done("/test")


async def act_on_links(request: Request) -> Response:
    """Cut a link between brokers, isolate one, or heal what was cut: one link, or all."""
    form = await read_form(request)
    act = form.choice("act", ("cut", "heal", "heal-all", "isolate"))
    one, other = form.optional_number("one"), form.optional_number("other")
    channel = _channel(request)
    if act == "heal-all":
        await channel.post("/links/heal", {})
        _note(request, "kafka_cluster.heal()")
    elif one is None:
        raise ParameterError("say which broker's link it is about")
    elif act == "isolate" or (act == "cut" and other is None):
        await channel.post(f"/brokers/{one}/isolate", {})
        _note(request, f"kafka_cluster.isolate({one})")
    elif other is None:
        raise ParameterError("say which two brokers the link is between")
    else:
        await channel.post(f"/links/{act}", {"one": one, "other": other})
        _note(request, f"kafka_cluster.{act}({one}, {other})")
    return done("/test")


async def move_leader(request: Request) -> Response:
    """Have another broker lead a partition; it is on the map until it is moved back."""
    form = await read_form(request)
    context = context_of(request)
    topic, to = form.required("topic", TOPIC_NAME_MAX), form.number("to", 0)
    number = form.number("partition", 0)
    partitions = (await context.cluster.topic(topic)).partitions
    origin = next((each.leader_id for each in partitions if each.partition_index == number), to)
    await _channel(request).post(
        f"/topics/{quote(topic, safe='')}/partitions/{number}/move-leader", {"to": to}
    )
    request.app.state.moves.note(topic, number, origin, to)
    replicas = max((len(each.replica_nodes) for each in partitions), default=1)
    request.app.state.transcript.need_topic(topic, len(partitions), replicas)
    _note(request, call("kafka_cluster.move_leader", [topic, number], to=to))
    context.cluster.forget()
    return done(make_url("/test", topic=topic))


async def advance_time(request: Request) -> Response:
    """Let time pass for all brokers."""
    form = await read_form(request)
    unit = form.choice("unit", ("seconds", "minutes", "hours", "days"))
    amount = form.number("amount", 0, 1, 100_000)
    await _channel(request).post("/time/advance", {unit: amount})
    _note(request, f"kafka_cluster.advance_time({unit}={amount})")
    return done("/test")


async def clear_transcript(request: Request) -> Response:
    """Begin the transcript anew."""
    await read_form(request)
    request.app.state.transcript.clear()
    return done("/test")


async def requests(request: Request) -> Response:
    """The requests that brokers were sent, the latest first."""
    parameters = Parameters(request.query_params)
    filters: dict[str, Any] = {
        "api": parameters.text("api"),
        "client_id": parameters.text("client_id"),
        "topic": parameters.text("topic"),
        "group": parameters.text("group"),
        "error": parameters.text("error"),
        "broker": parameters.optional_number("broker"),
    }
    found = await _channel(request).get("/requests", limit=REQUESTS_SHOWN, **filters)
    return context_of(request).render.page(
        request,
        "requests.html",
        section="test",
        title="Requests",
        requests=[_with_time(each) for each in reversed(found["requests"])],
        count=found["count"],
        filters=filters,
        apis=APIS,
    )


async def show_request(request: Request) -> Response:
    """One request with all that it names; beside the table where htmx asks for it."""
    parameters = Parameters(request.query_params)
    number, time_ms = parameters.number("number", 0), parameters.number("time", 0)
    found = await _channel(request).get(
        "/requests",
        limit=REQUESTS_SEARCHED,
        api=parameters.text("api"),
        client_id=parameters.text("client_id"),
    )
    # Each broker counts its own: a number and a time are of one request.
    shown = [
        each
        for each in map(_with_time, found["requests"])
        if (each["number"], each["time_ms"]) == (number, time_ms)
    ]
    if not shown:
        raise ParameterError("the brokers do not remember that request any more")
    return context_of(request).render.page(
        request,
        "_request.html" if "hx-request" in request.headers else "request.html",
        section="test",
        title=f"Request {number}",
        shown=shown[0],
    )


def _with_time(logged: dict[str, Any]) -> dict[str, Any]:
    return {**logged, "time_ms": round(logged["time"] * 1000)}


def _channel(request: Request) -> ControlChannel:
    """The channel of the broker. Raises ParameterError where there is none."""
    url = context_of(request).settings.control
    if url is None:
        raise ParameterError("this is no test broker: the console was started without --control")
    return ControlChannel(url)


def _note(request: Request, line: str) -> None:
    request.app.state.transcript.note(line)


ROUTES = [
    Route("/test", show, methods=["GET"]),
    Route("/test/faults", add_fault, methods=["POST"]),
    Route("/test/faults/lift", lift_fault, methods=["POST"]),
    Route("/test/brokers", act_on_broker, methods=["POST"]),
    Route("/test/links", act_on_links, methods=["POST"]),
    Route("/test/leaders", move_leader, methods=["POST"]),
    Route("/test/time", advance_time, methods=["POST"]),
    Route("/test/transcript/clear", clear_transcript, methods=["POST"]),
    Route("/test/requests", requests, methods=["GET"]),
    Route("/test/requests/view", show_request, methods=["GET"]),
]
