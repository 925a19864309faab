"""The control channel over HTTP, as other languages use it: `odradek serve --ephemeral --json`."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from support.http_control import ServedBrokers
from support.pytest_runs import processes_of
from support.selection import short

from odradek.testing.http_control.endpoint import BODY_BYTES_MAX, CONNECTIONS_MAX, HEAD_BYTES_MAX
from odradek.testing.http_control.operation import RequestRefused
from odradek.testing.http_control.operations import CONDITIONS, FAULTS, MEANINGS, TABLE
from odradek.testing.process.process_end import is_alive
from odradek.testing.waiting import wait_until
from odradek.tools.docs.control_page import EXAMPLE_FILES

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def one_served() -> Iterator[ServedBrokers]:
    with ServedBrokers() as served:
        yield served


@pytest.fixture
def served(one_served: ServedBrokers) -> ServedBrokers:
    one_served.post("/reset")
    return one_served


def produce(served: ServedBrokers, topic: str, *values: bytes, **settings: object) -> None:
    with KafkaProducer(bootstrap_servers=served.bootstrap_servers, **settings) as producer:
        for value in values:
            producer.send(topic, value).get(SECONDS_MAX)


# -- the process ----------------------------------------------------------------------------------


def test_the_ready_line_says_where_a_client_and_the_channel_find_it(served: ServedBrokers) -> None:
    assert served.ready["control"] == f"http://127.0.0.1:{served.control_port}"
    assert served.ready["pid"] == served.process.pid
    assert served.ready["brokers"] == [{"id": 1, "address": served.bootstrap_servers}]
    produce(served, "hello", b"one", b"\xff")

    consumer = KafkaConsumer(
        "hello", bootstrap_servers=served.bootstrap_servers, auto_offset_reset="earliest"
    )
    assert [next(consumer).value for _ in range(2)] == [b"one", b"\xff"]
    consumer.close()
    answer = served.get("/topics/hello/records")
    assert [each["value"] for each in answer["records"]] == ["one", {"base64": "/w=="}]
    assert base64.b64decode("/w==") == b"\xff"
    assert answer["more"] is False
    assert served.get("/topics/hello/records?limit=1")["more"] is True


def nothing_is_left(folder: Path, pids: set[str]) -> None:
    def look() -> bool:
        return not list(folder.iterdir()) and not processes_of(pids, folder)

    wait_until(look, SECONDS_MAX, lambda: str([*folder.iterdir(), *processes_of(pids, folder)]))


def broker_pids(folder: Path) -> set[str]:
    """The processes of the brokers whose folders are in a temporary folder."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "odradek.testing.process.broker" in arguments and any(
            each.startswith(str(folder)) for each in arguments
        ):
            found.add(path.name)
    return found


@pytest.mark.parametrize("end", short(["closed", "killed", "terminated"], 1))
def test_nothing_is_left_however_it_ends(tmp_path: Path, end: str) -> None:
    served = ServedBrokers("--brokers", "2", folder=tmp_path)
    pids = broker_pids(tmp_path)
    assert len(pids) == 2
    if end == "killed":
        served.process.kill()
    if end == "terminated":
        served.process.terminate()
        assert served.process.wait(SECONDS_MAX) == 0
    assert served.close() == (-signal.SIGKILL if end == "killed" else 0)
    nothing_is_left(tmp_path, pids)


STARTER = """
import os, subprocess, sys
command = [sys.executable, "-m", "odradek", "serve", "--ephemeral", "--json"]
process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
print(process.pid, process.stdout.readline().decode(), flush=True)
os.kill(os.getpid(), 9)
"""


def test_it_ends_with_the_process_that_started_it_without_a_pipe(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTER],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    pid, _, ready = done.stdout.decode().partition(" ")
    assert json.loads(ready)["pid"] == int(pid)
    wait_until(lambda: not is_alive(int(pid)), SECONDS_MAX)
    nothing_is_left(tmp_path, broker_pids(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--json"], "--json needs --ephemeral"),
        (["--json", "--ephemeral", "--broker-id", "4"], "numbered from 1"),
        (["--json", "--ephemeral", "--metrics", "localhost:0"], "--json has no --metrics"),
        (["--json", "--ephemeral", "-o", "log.dirs=/x"], "log.dirs cannot be set with --json"),
        (["--json", "--ephemeral", "-o", "nonsense"], "write it as -o KEY=VALUE"),
        (["--json", "--ephemeral", "-o", "num.partitions=x"], "num.partitions"),
    ],
)
def test_what_it_cannot_have_is_refused(arguments: list[str], sentence: str) -> None:
    command = [sys.executable, "-m", "odradek", "serve", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


# -- operations -----------------------------------------------------------------------------------


def test_a_fault_strikes_a_client_and_is_waited_for(served: ServedBrokers) -> None:
    served.post("/topics", topic="orders")
    fault = served.post("/faults", fault="lose_answer", api="Produce", topic="orders", times=1)
    assert fault["fault"] == (
        "handle Produce for topic 'orders', and close the connection in place of the answer; once"
    )
    assert served.get("/faults") == {"faults": [fault]}
    with ThreadPoolExecutor(1) as threads:
        struck = threads.submit(served.post, f"/faults/{fault['id']}/wait", timeout=SECONDS_MAX)
        produce(served, "orders", b"an order", enable_idempotence=True)
        assert struck.result()["strikes"] == 1
    assert [each["value"] for each in served.get("/topics/orders/records")["records"]] == [
        "an order"
    ]
    sent = served.get("/requests?api=Produce&topic=orders")
    assert sent["count"] == 2
    assert served.delete(f"/faults/{fault['id']}") == {}
    assert served.request("GET", f"/faults/{fault['id']}")[0] == 404
    assert served.delete("/faults") == {"lifted": 0}


def test_a_wait_is_answered_when_it_comes_true(served: ServedBrokers) -> None:
    served.post("/topics", topic="orders")
    with ThreadPoolExecutor(3) as threads:
        waits = [
            threads.submit(served.post, "/wait", timeout=SECONDS_MAX, **condition)
            for condition in (
                {"condition": "record_matching", "topic": "orders", "value": "late"},
                {"condition": "offset_reached", "topic": "orders", "offset": 2},
                {"condition": "topic_exists", "topic": "made"},
            )
        ]
        produce(served, "orders", b"early", b"late")
        served.post("/topics", topic="made")
        assert [each.result() for each in waits] == [{}] * 3
    status, answer = served.request(
        "POST",
        "/wait",
        {"condition": "offset_reached", "topic": "orders", "offset": 3, "timeout": 0},
    )
    assert status == 504
    assert "its high watermark is 2" in answer["error"]


def test_groups_are_seen_and_their_sessions_end(served: ServedBrokers) -> None:
    produce(served, "orders", b"1", b"2")
    with KafkaConsumer(
        "orders",
        bootstrap_servers=served.bootstrap_servers,
        group_id="shippers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        next(consumer)
        served.post("/wait", condition="group_stable", group="shippers", members=1)
        consumer.commit()
        group = served.get("/groups/shippers")
        assert (group["state"], len(group["members"]), group["lag"]) == ("Stable", 1, 1)
        assert group["offsets"] == [
            {"topic": "orders", "partition": 0, "offset": 1, "end": 2, "lag": 1}
        ]
        assert group["members"][0]["partitions"] == [{"topic": "orders", "partition": 0}]
        assert served.get("/groups") == {"groups": ["shippers"]}
        expired = served.post("/groups/shippers/expire-session")
        assert expired == {"members": [group["members"][0]["member_id"]]}
    served.post("/wait", condition="group_empty", group="shippers")


def test_time_passes_at_once(served: ServedBrokers) -> None:
    (before,) = served.get("/time")["brokers"]
    ahead = served.post("/time/advance", hours=2)["ahead"]
    (after,) = served.get("/time")["brokers"]
    assert 2 * 3600 <= after["time"] - before["time"] < 2 * 3600 + SECONDS_MAX
    assert served.post("/time/advance", minutes=1)["ahead"] == ahead + 60
    status, answer = served.request("POST", "/time/advance", {"seconds": -1})
    assert (status, "time cannot go back" in answer["error"]) == (400, True)


def test_a_broker_is_killed_and_started_again_with_its_data(served: ServedBrokers) -> None:
    produce(served, "orders", b"kept")
    assert served.post("/brokers/1/kill")["state"] == "down"
    assert served.get("/")["brokers"][0]["state"] == "down"
    assert served.request("POST", "/brokers/1/freeze")[0] == 409
    assert served.post("/brokers/1/start")["state"] == "running"
    assert served.get("/topics/orders/records")["records"][0]["value"] == "kept"
    served.post("/brokers/1/freeze")
    assert served.get("/")["brokers"][0]["state"] == "frozen"
    status, answer = served.request("POST", "/brokers/1/fill-disk")
    assert (status, answer["error"]) == (
        409,
        "the broker is frozen, so it answers nothing until it thaws",
    )
    served.post("/brokers/1/thaw")
    assert "the process is frozen" in served.get("/brokers/1/log")["log"]
    served.post("/brokers/1/fill-disk")
    with KafkaProducer(bootstrap_servers=served.bootstrap_servers, retries=0) as producer:
        refused = producer.send("orders", b"no room")
        with pytest.raises(Exception, match="KafkaStorageError"):
            refused.get(SECONDS_MAX)
    assert served.get("/disks") == {"brokers": [{"id": 1, "filled": [0]}]}
    served.post("/brokers/1/free-disk")
    assert served.get("/disks") == {"brokers": [{"id": 1, "filled": []}]}
    produce(served, "orders", b"room")


@pytest.mark.slow
def test_a_cluster_is_cut_and_its_leaders_move() -> None:
    with ServedBrokers("--brokers", "3") as served:
        assert len(served.bootstrap_servers.split(",")) == 3
        served.post("/topics", topic="orders", partitions=1, replication_factor=3)
        leader = served.get("/topics/orders")["partitions"][0]["leader"]
        other = next(number for number in (1, 2, 3) if number != leader)
        served.post("/topics/orders/partitions/0/move-leader", to=other)
        served.post("/wait", condition="leader_is", topic="orders", partition=0, broker=other)
        isr = served.post("/topics/orders/partitions/0/shrink-isr", broker=leader)["isr"]
        assert set(isr) == {1, 2, 3} - {leader}
        served.post("/topics/orders/partitions/0/restore-isr", broker=leader)
        served.post("/wait", condition="isr_is", topic="orders", partition=0, brokers=[1, 2, 3])
        served.post("/links/cut", one=1, other=2)
        assert served.get("/")["cut_links"] == [[1, 2]]
        served.post("/links/heal")
        assert served.get("/")["cut_links"] == []
        assert served.request("POST", "/links/cut", {"one": 1, "other": 1})[0] == 400
        served.post(f"/brokers/{other}/kill")
        served.post("/wait", condition="leader_is", topic="orders", partition=0, broker=leader)
        fault = served.post("/faults", fault="delay", api="Fetch", seconds=0.1, times=1)
        produce(served, "orders", b"after all")
        records = served.get("/topics/orders/records")["records"]
        assert [each["value"] for each in records] == ["after all"]
        assert served.get(f"/faults/{fault['id']}")["strikes"] == 0
        added = served.post("/brokers")
        assert added["id"] == 4
        served.delete("/brokers/4")
        assert [each["id"] for each in served.get("/")["brokers"]] == [1, 2, 3]


# -- requests that are refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"),
    [
        ("POST", "/topics", {"topik": "a"}, 400, "did you mean 'topic'?"),
        ("POST", "/topics", {"topic": 5}, 400, "topic is a value of type string, not 5"),
        ("POST", "/topics", {}, 400, "create_topic needs topic, of type string"),
        ("POST", "/topics", {"topic": "a", "config": {"x": 1}}, 400, "object of strings"),
        ("POST", "/topics", {"topic": "a/b"}, 409, "topic a/b is not made"),
        ("POST", "/topics", [], 400, "the body is a JSON object"),
        ("POST", "/topics?topic=a", {}, 400, "takes its arguments as a JSON object"),
        ("POST", "/faults", {"fault": "lose_anser"}, 400, "did you mean 'lose_answer'?"),
        ("POST", "/faults", {}, 400, "fault is one of answer, delay"),
        ("POST", "/faults", {"fault": "answer", "api": "Produce"}, 400, "add_fault needs error"),
        (
            "POST",
            "/faults",
            {"fault": "answer", "api": "Produce", "error": "NOT_LEADR"},
            400,
            "did you mean 'NOT_LEADER_OR_FOLLOWER'?",
        ),
        ("POST", "/faults", {"fault": "drop", "secnds": 1}, 400, "unknown field 'secnds'"),
        ("POST", "/faults", {"fault": "drop", "times": 1, "on": 2}, 400, "not several"),
        ("POST", "/faults", {"fault": "drop", "broker": 7}, 400, "there is no 7"),
        ("POST", "/wait", {"condition": "group_stabel"}, 400, "did you mean 'group_stable'?"),
        (
            "POST",
            "/wait",
            {"condition": "topic_exists", "topic": "a", "timeout": 1e9},
            400,
            "timeout is from 0 to 3600",
        ),
        ("GET", "/topics?internl=true", None, 400, "did you mean 'internal'?"),
        ("GET", "/topics?internal=maybe", None, 400, "of type boolean, not 'maybe'"),
        ("GET", "/topics/none/records", None, 409, "there is no topic none"),
        ("GET", "/faults/x", None, 400, "id is a value of type integer"),
        ("GET", "/topcs", None, 404, "did you mean /topics?"),
        ("DELETE", "/time", None, 405, "/time takes GET, not DELETE"),
    ],
)
def test_what_a_request_gets_wrong_is_a_sentence(
    served: ServedBrokers, method: str, path: str, body: object, status: int, sentence: str
) -> None:
    answered, answer = served.request(method, path, body)
    assert (answered, sentence in answer["error"]) == (status, True), answer


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example"},
        {"Host": "rebound.example:80"},
        {"Host": "127.0.0.1.rebound.example"},
        {"Host": ""},
        {"Origin": "https://page.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1.page.example"},
    ],
)
def test_pages_of_a_browser_do_not_steer_it(served: ServedBrokers, headers: dict[str, str]) -> None:
    status, answer = served.request("POST", "/topics", {"topic": "by-a-page"}, **headers)
    assert status == 403, answer
    assert served.get("/topics") == {"topics": []}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:80", "[::1]:1"])
def test_programs_of_this_machine_do(served: ServedBrokers, host: str) -> None:
    origin = f"http://{host}"
    assert served.request("GET", "/topics", None, Host=host, Origin=origin)[0] == 200


def test_it_listens_on_the_loopback_interface_only(served: ServedBrokers) -> None:
    listening = subprocess.run(
        ["cat", "/proc/net/tcp", "/proc/net/tcp6"], capture_output=True, text=True, check=True
    )
    port = f":{served.control_port:04X} "
    addresses = {line.split()[1] for line in listening.stdout.splitlines() if port in line}
    local = [each for each in addresses if each.endswith(port.strip())]
    assert local == [f"0100007F{port.strip()}"]


RAW = {
    "no HTTP": (b"GET\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.0\r\n\r\n", 403),
    "two lengths": (
        b"POST /reset HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        400,
    ),
    "a body that is no JSON": (
        b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n{",
        400,
    ),
    "a body that is deep": (
        b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
        + b"[" * 100_000,
        400,
    ),
    "a long head": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 2 * HEAD_BYTES_MAX, 431),
    "a long body": (
        b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        % (2 * BODY_BYTES_MAX)
        + b" " * (BODY_BYTES_MAX + 1),
        413,
    ),
}


@pytest.mark.parametrize("sent", RAW)
def test_what_is_no_request_is_refused_and_closed(served: ServedBrokers, sent: str) -> None:
    content, status = RAW[sent]
    with socket.create_connection(("127.0.0.1", served.control_port), SECONDS_MAX) as connection:
        connection.sendall(content)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == status
        assert json.loads(answer.read())["error"]


def test_one_connection_takes_many_requests_and_a_head_has_no_body(served: ServedBrokers) -> None:
    connection = served.connect()
    for _ in range(3):
        connection.request("GET", "/topics", headers={"Expect": "100-continue"})
        assert json.loads(connection.getresponse().read()) == {"topics": []}
    socket_before = connection.sock
    connection.request("HEAD", "/topics")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (405, b"")
    connection.request("GET", "/topics")
    assert connection.getresponse().status == 200
    assert connection.sock is socket_before
    connection.close()


def test_connections_are_bounded_and_waits_of_those_who_leave_end(served: ServedBrokers) -> None:
    waiting: list[HTTPConnection] = []
    body = json.dumps({"condition": "topic_exists", "topic": "never", "timeout": 3600})
    for _ in range(CONNECTIONS_MAX):
        connection = served.connect()
        connection.request("POST", "/wait", body)
        waiting.append(connection)
    assert served.request("GET", "/topics") == (
        503,
        {"error": f"there are {CONNECTIONS_MAX} connections already: close some"},
    )
    for connection in waiting:
        connection.close()
    wait_until(lambda: served.request("GET", "/topics")[0] == 200, SECONDS_MAX)


def test_requests_are_answered_beside_one_that_waits(served: ServedBrokers) -> None:
    connection = served.connect()
    body = json.dumps({"condition": "topic_exists", "topic": "awaited", "timeout": SECONDS_MAX})
    connection.request("POST", "/wait", body)
    assert served.get("/topics") == {"topics": []}
    served.post("/topics", topic="awaited")
    assert connection.getresponse().status == 200
    connection.close()


# -- the table ------------------------------------------------------------------------------------


def test_every_argument_is_explained_and_every_explanation_used() -> None:
    from odradek.testing.http_control.operation import arguments_of

    named = {name for operation in TABLE for name in operation.arguments}
    for function in (*FAULTS.values(), *CONDITIONS.values()):
        named |= set(arguments_of(function))
    assert named == set(MEANINGS)
    assert all(each.kinds for operation in TABLE for each in operation.arguments.values())


def test_no_two_operations_have_the_same_name_or_place() -> None:
    assert len({operation.name for operation in TABLE}) == len(list(TABLE))
    assert len({(operation.method, operation.path) for operation in TABLE}) == len(list(TABLE))


def test_a_path_is_found_by_its_names() -> None:
    found, in_path = TABLE.find("GET", "/topics/a%2Fb")
    assert (found.name, in_path) == ("show_topic", {"topic": "a%2Fb"})
    assert found.read_arguments(in_path, "", b"") == {"topic": "a/b"}
    with pytest.raises(RequestRefused, match="no 'limit'"):
        found.read_arguments(in_path, "limit=3", b"")


def test_every_fault_and_condition_of_python_is_there() -> None:
    from odradek.testing import conditions, faults

    assert set(FAULTS) == {name for name in faults.__all__ if name.islower()}
    known = {name for name in conditions.__all__ if name.islower()}
    assert known - set(CONDITIONS) == {"requests"}  # `GET /requests` counts them


def test_the_page_names_examples_that_are_there() -> None:
    for _, _, folder, *files in EXAMPLE_FILES:
        for file in files:
            assert (ROOT / "examples" / folder / file).is_file()


def test_the_page_shows_what_a_ready_line_holds(served: ServedBrokers) -> None:
    page = (ROOT / "docs" / "control.md").read_text()
    assert all(f'"{name}": ' in page for name in served.ready)


def test_threads_do_not_disturb_each_other(served: ServedBrokers) -> None:
    names = [f"topic-{number}" for number in range(20)]
    with ThreadPoolExecutor(10) as threads:
        made = list(threads.map(lambda name: served.post("/topics", topic=name), names))
    assert [each["name"] for each in made] == names
    assert served.get("/topics")["topics"] == sorted(names)
