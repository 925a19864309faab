"""Formats, pages of lists, parameters, payloads, filters: what pages are made with."""

from __future__ import annotations

import json

import pytest
import trio
import trio.testing
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from odradek.client.errors import ClientError
from odradek.console import formats
from odradek.console.app import PAGE_SECONDS_MAX, in_time
from odradek.console.cluster.traffic import Reading, parse, traffic_between
from odradek.console.pages.test_broker import BROKER_ACTS, FAULTS, TRIGGERS
from odradek.console.paging import page_of
from odradek.console.parameters import ParameterError, Parameters, parse_time_ms
from odradek.console.records.matching import Filter, WhereError, parse_where
from odradek.console.records.payload import SHOWN_BYTES_MAX, hex_lines, preview, shown_as
from odradek.console.records.reading import iter_positions, write_positions
from odradek.console.rendering import make_url
from odradek.console.transcript import Transcript, call
from odradek.protocol.records import Record
from odradek.testing import Broker, Cluster
from odradek.testing.faults import kinds
from odradek.testing.faults.broker_faults import AddedFault
from odradek.testing.faults.cluster_faults import ClusterFault, ClusterFaults
from odradek.testing.faults.fault import Fault


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (900_000, "879 KiB"),
        (5 << 30, "5.0 GiB"),
        (1 << 60, "1,024 PiB"),
        (None, formats.UNKNOWN),
    ],
)
def test_sizes_have_units(value: int | None, text: str) -> None:
    assert formats.size(value) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (90_000, "1 min 30 s"),
        (90_061_000, "1 d 1 h"),
        (None, formats.UNKNOWN),
    ],
)
def test_durations_have_their_two_largest_units(milliseconds: int | None, text: str) -> None:
    assert formats.duration(milliseconds) == text


@pytest.mark.parametrize("timestamp", [1 << 62, -(1 << 62), -2])
def test_times_that_no_calendar_has_are_shown_all_the_same(timestamp: int) -> None:
    assert "time" in formats.time(timestamp) or str(timestamp) in formats.time(timestamp)


def test_what_is_not_printable_is_shown_as_it_is_written_and_the_rest_escaped() -> None:
    text = "a<b>\x00\u202e\n\ud800é"
    assert formats.visible(text) == (
        'a&lt;b&gt;<span class="unprintable">\\x00</span>'
        '<span class="unprintable">\\u202e</span><span class="unprintable">\\n</span>'
        '<span class="unprintable">\\ud800</span>é'
    )
    assert formats.block("a\n\tb\r") == 'a\n\tb<span class="unprintable">\\r</span>'


@pytest.mark.parametrize("number", [-5, 0, 1, 2, 3, 1 << 60])
def test_pages_of_a_list_are_within_it(number: int) -> None:
    page = page_of(range(120), number, 50)
    assert page.pages == 3
    assert 1 <= page.number <= 3
    assert list(page.items) == list(range(page.first - 1, page.last))


def test_list_of_nothing_has_one_page_of_nothing() -> None:
    page = page_of([], 7)
    assert (page.number, page.pages, page.total, page.first, page.last) == (1, 1, 0, 0, 0)


@pytest.mark.parametrize("text", ["x", "1.5", "-", "٣", "9" * 20, "99", "-1"])
def test_what_is_no_number_within_the_bounds_is_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        Parameters({"page": text}).number("page", 1, 0, 50)


def test_parameters_are_bounded_in_length() -> None:
    with pytest.raises(ParameterError, match=r"more than 2,000 characters"):
        Parameters({"search": "x" * 2001}).text("search")


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01Z", 1_000),
        ("1970-01-01T00:00:01", 1_000),
        ("1970-01-01T01:00:01+01:00", 1_000),
        ("1370088000000", 1_370_088_000_000),
    ],
)
def test_times_are_read_as_people_write_them(text: str, milliseconds: int) -> None:
    assert parse_time_ms(text) == milliseconds


def test_what_is_no_time_is_refused() -> None:
    for text in ("", "noon", "2026-13-01", "9" * 30):
        with pytest.raises(ParameterError):
            parse_time_ms(text)


def test_addresses_leave_out_what_is_empty_and_encode_the_rest() -> None:
    assert make_url("/a", b=None, c="", d=0, e="x&y", f=False) == "/a?d=0&e=x%26y"
    assert make_url("/a", b="\ud800") == "/a?b=%3F"


# --- Payloads ------------------------------------------------------------------------------------


def test_null_and_empty_are_different_things() -> None:
    assert preview(None).kind == shown_as(None, "auto").kind == "null"
    assert preview(b"").kind == shown_as(b"", "auto").kind == "empty"


def test_json_is_shown_with_a_member_on_a_line() -> None:
    value = {"a": [1, {"b": "ü"}]}
    shown = shown_as(json.dumps(value).encode(), "auto")
    assert shown.kind == "JSON"
    assert json.loads(shown.text) == value
    assert len(shown.text.splitlines()) > 3


@pytest.mark.parametrize(
    "payload",
    [
        b"[" * 100_000,
        b"[" * 50_000 + b"]" * 50_000,
        b'{"a":' * 40_000,
        b"1" * 50_000,
        b'{"a": NaN',
        b"{",
    ],
)
def test_json_that_is_none_or_too_deep_is_shown_as_text(payload: bytes) -> None:
    shown = shown_as(payload, "auto")
    assert shown.kind == "text"
    assert shown.text == payload[:SHOWN_BYTES_MAX].decode()
    assert shown.cut == max(len(payload) - SHOWN_BYTES_MAX, 0)


def test_bytes_that_are_no_text_are_shown_in_hexadecimal() -> None:
    shown = shown_as(bytes(range(256)), "auto")
    assert shown.is_hex
    assert shown.text.splitlines()[4] == (
        "00000040  40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f  @ABCDEFGHIJKLMNO"
    )
    assert hex_lines(b"\xff<") == f"00000000  {'ff 3c':<47}  .<"


def test_large_values_are_cut_and_say_by_how_much() -> None:
    payload = b"x" * (10 << 20)
    assert len(preview(payload).text) <= 240
    shown = shown_as(payload, "auto")
    assert len(shown.text) + shown.cut == len(payload)
    assert len(shown.text) == SHOWN_BYTES_MAX
    assert len(shown_as(payload, "hex").text) < 64 << 10


def test_character_that_the_cut_goes_through_makes_no_hexadecimal_of_a_text() -> None:
    payload = ("a" + "€" * 40_000).encode()
    assert shown_as(payload, "auto").kind == "text"
    assert preview(payload).kind == "text"


def test_values_of_a_schema_registry_are_recognized() -> None:
    assert "schema 7." in shown_as(b"\x00\x00\x00\x00\x07\xfe\xff", "auto").remark


# --- Filters -------------------------------------------------------------------------------------


def record(key: bytes | None, value: bytes | None, **headers: bytes | None) -> Record:
    return Record(0, 0, key, value, list(headers.items()))


ORDER = record(
    b"k1", b'{"customer": {"id": 42, "name": "Ada"}, "items": [{"n": 3}]}', kind=b"order"
)


@pytest.mark.parametrize(
    ("where", "matches"),
    [
        ("customer.id = 42", True),
        ("customer.id=43", False),
        ("customer.id != 43", True),
        ("customer.id > 41", True),
        ("customer.id <= 41", False),
        ('customer.name = "Ada"', True),
        ("customer.name = Ada", True),
        ("customer.name ~ aD", True),
        ("customer.name > 3", False),
        ("items[0].n = 3", True),
        ("$.items.0.n = 3", True),
        ("items.7.n = 3", False),
        ("customer.missing = 1", False),
        ("customer = 1", False),
    ],
)
def test_members_of_json_are_compared(where: str, matches: bool) -> None:
    assert Filter(where=parse_where(where)).matches(ORDER) is matches


@pytest.mark.parametrize("payload", [None, b"", b"\xff", b"[" * 100_000, b"7", b"x" * (2 << 20)])
def test_values_that_are_no_json_match_no_comparison(payload: bytes | None) -> None:
    assert not Filter(where=parse_where("a.b = 1")).matches(record(None, payload))


@pytest.mark.parametrize("text", ["a", "a =", "= 1", "a == ", "a b c"])
def test_what_is_no_comparison_is_refused(text: str) -> None:
    with pytest.raises(WhereError):
        parse_where(text)


@pytest.mark.parametrize(
    ("filter_", "matches"),
    [
        (Filter(), True),
        (Filter(text=b"ada"), True),
        (Filter(text=b"K1"), True),
        (Filter(text=b"grace"), False),
        (Filter(key=b"k1"), True),
        (Filter(key=b"k"), False),
        (Filter(header="kind"), True),
        (Filter(header="kind=order"), True),
        (Filter(header="kind=other"), False),
        (Filter(header="kin"), False),
        (Filter(key=b"k1", text=b"grace"), False),
    ],
)
def test_all_parts_of_a_filter_must_hold(filter_: Filter, matches: bool) -> None:
    assert filter_.matches(ORDER) is matches


def test_positions_survive_an_address_and_nonsense_does_not() -> None:
    assert dict(iter_positions(write_positions({3: 7, 0: 12}))) == {0: 12, 3: 7}
    assert list(iter_positions("1:2,x,3:,:4,5:-6,7:8:9,²:1," + "9" * 60 + ":1")) == [(1, 2)]


def test_transcript_names_what_the_test_kit_has() -> None:
    assert all(hasattr(Broker, method) for method in BROKER_ACTS.values())
    for method in ("cut", "heal", "isolate", "move_leader", "advance_time", "broker", "faults"):
        assert hasattr(Cluster, method)
    assert hasattr(ClusterFaults, "lift_all")
    assert hasattr(ClusterFault, "lift")
    assert hasattr(AddedFault, "lift")
    assert all(hasattr(kinds, kind) for kind in FAULTS)
    assert all(hasattr(Fault, trigger) for trigger in TRIGGERS)


def test_transcript_is_python_that_compiles() -> None:
    transcript = Transcript()
    assert transcript.recipe(3) == ""
    transcript.note(call("kafka_cluster.move_leader", ["a'b\n", 0], to=2, silent=None))
    recipe = transcript.recipe(3)
    compile(recipe, "recipe", "exec")
    assert 'kafka_cluster.move_leader("a\'b\\n", 0, to=2)' in recipe


# --- Traffic -------------------------------------------------------------------------------------

METRICS = b"""# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total 500.0
kafka_server_brokertopicmetrics_bytesin_total{topic="a"} 300.0
# TYPE kafka_server_brokertopicmetrics_bytesout_total counter
kafka_server_brokertopicmetrics_bytesout_total 70.0
# TYPE kafka_network_requestmetrics_requests_total counter
kafka_network_requestmetrics_requests_total{request="Produce",version="9"} 5.0
kafka_network_requestmetrics_requests_total{request="Produce",version="11"} 7.0
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.50"} 1.5
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} 9.0
kafka_network_requestmetrics_totaltimems_count{request="Produce"} 12.0
"""


def test_metrics_are_read_whatever_the_version_and_without_topics() -> None:
    assert parse(METRICS) == Reading(
        500.0, 70.0, {"Produce": 12.0}, {("Produce", "0.50"): 1.5, ("Produce", "0.99"): 9.0}
    )


def test_rates_are_of_two_readings_of_the_same_broker() -> None:
    later = parse(METRICS)
    earlier = later._replace(bytes_in=300.0, requests={"Produce": 2.0})
    found = traffic_between({"a": earlier}, {"a": later, "new": later}, 2.0, [])
    assert (found.bytes_in, found.bytes_out, found.requests) == (100.0, 0.0, 5.0)
    assert [tuple(each) for each in found.apis] == [("Produce", 5.0, 1.5, 9.0)]
    fetches = {"Fetch": 8.0, "FetchConsumer": 6.0, "FetchFollower": 2.0}  # each is counted twice
    fetched = traffic_between({"a": earlier}, {"a": later._replace(requests=fetches)}, 2.0, [])
    assert (fetched.requests, len(fetched.apis)) == (4.0, 3)
    restarted = later._replace(bytes_in=1.0)
    assert traffic_between({"a": later}, {"a": restarted}, 2.0, ["x"]).bytes_in is None
    assert traffic_between({}, {"a": later}, 2.0, []).requests is None


@pytest.mark.parametrize(("method", "seconds"), [("GET", PAGE_SECONDS_MAX), ("POST", 60)])
def test_page_is_given_up_in_time_and_no_change(method: str, seconds: float) -> None:
    async def never(request: Request) -> Response:
        del request
        await trio.sleep_forever()
        raise AssertionError

    async def ask() -> float:
        with trio.move_on_after(60), pytest.raises(ClientError, match="did not all come within"):
            await in_time(Route("/", never, methods=[method])).endpoint(Request({"type": "http"}))
        return trio.current_time()

    clock = trio.testing.MockClock(autojump_threshold=0)
    assert trio.run(ask, clock=clock) == seconds
