"""For a test broker: faults, outages, time and requests, by its control channel."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from starlette.routing import Route

from ..cluster.gathering import gather_what_answers
from ..context import context_of
from ..control_channel import ControlChannel
from ..forms import done, read_form
from ..parameters import ParameterError, Parameters
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


MAP_BROKERS_MAX: Final = 12
MAP_RADIUS: Final = 90


class Place(NamedTuple):
    """A broker on the map."""

    broker: int
    state: str
    x: float
    y: float


class Link(NamedTuple):
    """The link between two brokers on the map: "cut", or "idle" where one of them does not run."""

    one: Place
    other: Place
    state: str


class ClusterMap(NamedTuple):
    """Brokers in a circle, and what is between them."""

    places: list[Place]
    links: list[Link]

    @property
    def cut(self) -> list[Link]:
        """The links that are cut."""
        return [each for each in self.links if each.state == "cut"]


def map_of(cluster: dict[str, Any]) -> ClusterMap | None:
    """The map of what a control channel shows; None for more brokers than can be drawn.

    Args:
        cluster: its answer; brokers of former versions say nothing of links.
    """
    brokers = cluster["brokers"]
    if not 1 < len(brokers) <= MAP_BROKERS_MAX:
        return None
    cut = {frozenset(each) for each in cluster.get("cut_links", ())}
    places = []
    for number, broker in enumerate(brokers):
        angle = 2 * math.pi * number / len(brokers) - math.pi / 2
        x, y = MAP_RADIUS * math.cos(angle), MAP_RADIUS * math.sin(angle)
        places.append(Place(broker["id"], broker["state"], round(x, 1), round(y, 1)))
    links = []
    for one, other in combinations(places, 2):
        is_idle = one.state != "running" or other.state != "running"
        is_cut = frozenset((one.broker, other.broker)) in cut
        links.append(Link(one, other, "cut" if is_cut else "idle" if is_idle else "up"))
    return ClusterMap(places, links)


async def show(request: Request) -> Response:
    """The page; its live parts alone where they are asked for again."""
    channel = _channel(request)
    cluster = await channel.get("/")
    # A broker that is frozen says nothing of its faults, nor what time it is there.
    faults, times = await gather_what_answers(
        lambda: channel.get("/faults", LOOK_SECONDS_MAX),
        lambda: channel.get("/time", LOOK_SECONDS_MAX),
    )
    clocks = [] if isinstance(times, Exception) else times["brokers"]
    transcript: Transcript = request.app.state.transcript
    return context_of(request).render.page(
        request,
        "test_broker.html",
        section="test",
        title="Test broker",
        brokers=cluster["brokers"],
        map=map_of(cluster),
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
    """Cut a link between brokers, isolate one, or heal what was cut."""
    form = await read_form(request)
    act = form.choice("act", ("cut", "heal", "isolate"))
    one, other = form.optional_number("one"), form.optional_number("other")
    channel = _channel(request)
    if act == "heal":
        await channel.post("/links/heal", {})
        _note(request, "kafka_cluster.heal()")
    elif act == "isolate" or other is None:
        if one is None:
            raise ParameterError("say which broker is to be alone")
        await channel.post(f"/brokers/{one}/isolate", {})
        _note(request, f"kafka_cluster.isolate({one})")
    else:
        if one is None:
            raise ParameterError("say which two brokers the link is between")
        await channel.post("/links/cut", {"one": one, "other": other})
        _note(request, f"kafka_cluster.cut({one}, {other})")
    return done("/test")


async def move_leader(request: Request) -> Response:
    """Have another broker lead a partition."""
    form = await read_form(request)
    topic, to = form.required("topic", 249), form.number("to", 0)
    partition = form.number("partition", 0)
    await _channel(request).post(
        f"/topics/{quote(topic, safe='')}/partitions/{partition}/move-leader", {"to": to}
    )
    _note(request, call("kafka_cluster.move_leader", [topic, partition], to=to))
    context_of(request).cluster.forget()
    return done("/test")


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
