"""The control channel of a broker for tests: who may use it, and what comes of what it is asked."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odradek.testing import Broker
from odradek.testing.control.client import ControlClient, ControlError, ControlTimeout
from odradek.testing.control.framing import FRAME_BYTES_MAX, HELLO_BYTES_MAX, TOKEN_VARIABLE
from odradek.testing.control.server import CONNECTIONS_MAX
from odradek.testing.process.broker_process import BrokerProcess

SECONDS_MAX = 100.0
WAITED_FOR_SECONDS = 120.0
"""How long a call lasts that nothing ends."""


def connect(broker: Broker) -> socket.socket:
    host, _, port = broker.control_address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=SECONDS_MAX)


def frame(value: object) -> bytes:
    body = json.dumps(value).encode()
    return struct.pack(">I", len(body)) + body


def is_closed_by_peer(connection: socket.socket) -> bool:
    """Whether nothing but the end comes over the connection; waits for it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_call_and_its_answer_carry_what_json_can_say_and_bytes(broker: Broker) -> None:
    given = {
        "text": "é",
        "number": 1.5,
        "nothing": None,
        "list": [{"deep": b"\x00\xff"}],
        "empty": b"",
    }
    answer = broker.control().call("control.ping", **given)
    assert answer == {"broker_id": 1, "pid": broker.pid, "given": given}


def test_it_listens_on_the_loopback_interface_only(broker: Broker) -> None:
    assert broker.control_address.startswith("127.0.0.1:")


def test_the_token_is_on_no_command_line_and_in_no_environment_that_others_inherit(
    broker: Broker,
) -> None:
    assert len(bytes.fromhex(broker.control_token)) == 32
    assert broker.control_token not in " ".join(broker.command())
    command_line = Path(f"/proc/{broker.pid}/cmdline").read_bytes()
    assert broker.control_token.encode() not in command_line
    assert TOKEN_VARIABLE not in os.environ
    assert broker.control_token not in broker.log


@pytest.mark.parametrize(
    "hello",
    [
        {"token": "0" * 64},
        {"token": ""},
        {"token": None},
        {"token": "\ud800"},
        {},
        [],
        "token",
        {"verb": "control.ping", "arguments": {}},
    ],
    ids=str,
)
def test_who_does_not_show_the_token_is_turned_away(broker: Broker, hello: object) -> None:
    with connect(broker) as connection:
        connection.sendall(frame(hello))
        assert is_closed_by_peer(connection)
    assert broker.control().call("control.ping")["pid"] == broker.pid


def test_a_first_frame_that_is_no_json_or_too_long_closes_the_connection(broker: Broker) -> None:
    for data in (
        struct.pack(">I", 3) + b"{]}",
        struct.pack(">I", HELLO_BYTES_MAX + 1),
        struct.pack(">I", 2**32 - 1),
    ):
        with connect(broker) as connection:
            connection.sendall(data)
            assert is_closed_by_peer(connection)


def test_a_frame_longer_than_the_limit_closes_the_connection_before_it_is_read(
    broker: Broker,
) -> None:
    with connect(broker) as connection:
        connection.sendall(frame({"token": broker.control_token}))
        assert connection.recv(4096)
        connection.sendall(struct.pack(">I", FRAME_BYTES_MAX + 1))
        assert is_closed_by_peer(connection)


def test_a_wrong_token_is_reported_to_the_caller_in_a_sentence(broker: Broker) -> None:
    with pytest.raises(ControlError, match="does not take this token"):
        ControlClient(broker.control_address, "00").call("control.ping")


@pytest.mark.parametrize(
    ("verb", "sentence"),
    [
        ("nothing", "unknown verb 'nothing': the groups are .*control.*faults"),
        ("control.dance", "control has ping"),
        ("faults._table", "faults has add, known, lift, lift_all, show, wait"),
        ("faults.AddedFault", "faults has add"),
    ],
)
def test_an_unknown_verb_is_refused_with_what_there_is(
    broker: Broker, verb: str, sentence: str
) -> None:
    with pytest.raises(ControlError, match=sentence):
        broker.control().call(verb)


def test_wrong_arguments_are_reported_to_the_caller_and_end_nothing(broker: Broker) -> None:
    with pytest.raises(ControlError, match="show"):
        broker.control().call("faults.show", wrong=1)
    assert broker.control().call("control.ping")["pid"] == broker.pid


def test_threads_share_a_client(broker: Broker) -> None:
    control = broker.control()
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(lambda number: control.call("control.ping", number=number), range(100))
        )
    assert [answer["given"]["number"] for answer in answers] == list(range(100))


def test_what_a_verb_waits_for_in_vain_is_a_timeout_with_a_sentence(broker: Broker) -> None:
    from odradek.testing import faults

    with (
        broker.faults.during(faults.drop("Fetch", topic="nobody")) as fault,
        pytest.raises(TimeoutError, match="struck 0 of 1 times, of 0 requests"),
    ):
        fault.wait_until_struck(timeout=0.1)


def test_an_answer_that_does_not_come_in_time_is_a_timeout(broker: Broker) -> None:
    from odradek.testing import faults

    with broker.faults.during(faults.drop("Fetch", topic="nobody")) as fault:
        began = time.monotonic()
        with pytest.raises(ControlTimeout, match=r"has not answered faults\.wait"):
            broker.control().call(
                "faults.wait",
                answer_within=0.2,
                number=fault.id,
                times=1,
                timeout=WAITED_FOR_SECONDS,
            )
        assert time.monotonic() - began < WAITED_FOR_SECONDS
    assert broker.control().call("control.ping")["pid"] == broker.pid


def test_a_broker_that_is_gone_is_reported_at_once() -> None:
    with Broker() as broker:
        control = broker.control()
        assert control.call("control.ping")["pid"] == broker.pid
        broker.kill()
        with pytest.raises(ControlError, match="not running"):
            broker.control()
        began = time.monotonic()
        with pytest.raises(ControlError, match="is it running"):
            control.call("control.ping", answer_within=WAITED_FOR_SECONDS)
        assert time.monotonic() - began < WAITED_FOR_SECONDS / 2


def test_a_broker_that_is_killed_during_a_call_is_reported_at_once() -> None:
    from odradek.testing import faults

    with Broker() as broker:
        fault = broker.faults.add(faults.drop("Fetch"))
        threading.Timer(0.2, broker.kill).start()
        with pytest.raises(ControlError, match="failed on the broker"):
            fault.wait_until_struck(timeout=SECONDS_MAX)


def test_a_restarted_broker_has_a_new_channel_and_the_same_token() -> None:
    with Broker() as broker:
        token, pid = broker.control_token, broker.pid
        broker.restart()
        assert broker.control_token == token
        assert broker.control().call("control.ping")["pid"] == broker.pid != pid


def test_it_is_off_unless_requested(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as served:
        assert served.control_address == ""
        sockets = _listening_sockets(served.pid)
    assert len(sockets) == 1


def test_without_a_token_it_does_not_start(tmp_path: Path) -> None:
    with Broker() as broker:
        command = [*broker.command(), "--control"]
    environment = {key: value for key, value in os.environ.items() if key != TOKEN_VARIABLE}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert ended.returncode == 1
    assert f"--control needs a token in the environment variable {TOKEN_VARIABLE}" in ended.stderr


def _listening_sockets(pid: int) -> list[str]:
    """The TCP sockets on which a process listens."""
    own = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            own.add(os.readlink(descriptor))
        except FileNotFoundError:
            continue
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                found.append(fields[1])
    return found


def test_who_comes_when_all_places_are_taken_is_refused_and_the_others_go_on(
    broker: Broker,
) -> None:
    first, late = (ControlClient(broker.control_address, broker.control_token) for _ in range(2))
    assert first.call("control.ping")["pid"] == broker.pid
    others = []
    try:
        while len(others) < CONNECTIONS_MAX:
            others.append(connect(broker))
            others[-1].sendall(frame({"token": broker.control_token}))
            if b"error" in others[-1].recv(1000):
                break
        with pytest.raises(ControlError, match=f"takes nobody now.* {CONNECTIONS_MAX} connections"):
            late.call("control.ping")
        assert first.call("control.ping")["pid"] == broker.pid
    finally:
        for each in others:
            each.close()
        first.close()
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            assert late.call("control.ping")["pid"] == broker.pid
            break
        except ControlError:
            assert time.monotonic() < deadline
    late.close()
