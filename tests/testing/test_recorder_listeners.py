"""Who listens to a recorder in Python: what goes wrong there ends nobody's traffic."""

from __future__ import annotations

import socket
import struct

import pytest
from support.scripted_upstream import SECONDS_MAX, ScriptedUpstream, framed, receive_frame

from odradek.testing.recorder import proxy
from odradek.testing.recorder.addresses import Address
from odradek.testing.recorder.recording import (
    RecordedConnection,
    RecordedEnd,
    RecordedFrame,
    RecordedNote,
)
from odradek.testing.recorder.running_recorder import Recorder

FRAME = struct.pack(">hhi", 999, 7, 1)


def echo(frame: bytes) -> bytes:
    """An answer with the request's correlation id, and all that was asked."""
    return framed(frame[4:8] + frame)


class Broken:
    """A listener with a mistake of its own."""

    def opened(self, connection: RecordedConnection) -> None:
        """Fine."""

    def passed(self, frame: RecordedFrame) -> None:
        """The mistake."""
        raise KeyError("no such thing")

    def ended(self, end: RecordedEnd) -> None:
        """Fine."""

    def noted(self, note: RecordedNote) -> None:
        """Fine."""


def answered(recorder: Recorder) -> bytes:
    """What comes back for a request through the recorder, over a connection of its own."""
    where = Address.parse(recorder.bootstrap_servers)
    with socket.create_connection(where, SECONDS_MAX) as connection:
        connection.sendall(framed(FRAME))
        return receive_frame(connection)


def test_a_listener_that_raises_is_left_out_and_traffic_goes_on() -> None:
    with (
        ScriptedUpstream(echo) as upstream,
        Recorder(upstream.address, listener=Broken()) as recorder,
    ):
        for _ in range(2):
            assert answered(recorder) == FRAME[4:8] + FRAME
        (failure,) = recorder.failures
    assert "Broken" in failure
    assert "no such thing" in failure


def test_a_mistake_in_one_connection_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = proxy.ProxiedConnection.run
    calls = 0

    async def fails_once(connection: proxy.ProxiedConnection) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise LookupError("a mistake of ours")
        await usual(connection)

    monkeypatch.setattr(proxy.ProxiedConnection, "run", fails_once)
    with ScriptedUpstream(echo) as upstream, Recorder(upstream.address) as recorder:
        with pytest.raises(ConnectionError):
            answered(recorder)
        assert answered(recorder) == FRAME[4:8] + FRAME


def test_a_recorder_that_ended_by_itself_says_so_when_it_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fails(_: object, __: object, ___: object) -> None:
        raise BaseException("beyond repair")  # what no handler of a connection takes

    monkeypatch.setattr(proxy.Proxy, "_serve", fails)
    with ScriptedUpstream(echo) as upstream:
        recorder = Recorder(upstream.address)
        with pytest.raises(ConnectionError):
            answered(recorder)
        recorder._thread.join(SECONDS_MAX)  # closing it in the middle of its end is no failure
        with pytest.raises(RuntimeError, match="beyond repair"):
            recorder.close()
        recorder.close()
