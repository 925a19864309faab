"""Turns: who is asked when, which slots count, and what a failure does to the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from odradek.bench.run.calibration import TRIES_MAX, Calibration
from odradek.tools.benchmarks.compared.loads.load import ComparedLoad, Figures, LeftOut, Tools
from odradek.tools.benchmarks.compared.peers import Failed, Peer
from odradek.tools.benchmarks.compared.rounds import WARM_UP_SLOTS_MAX, Turns


class Sleeper(Peer):
    """A peer that is no broker: `start` starts a process that waits."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.starts = 0

    def commands(self) -> Sequence[list[str]]:
        return [["sleep", "600"]]

    def start(self) -> None:
        import subprocess

        self.starts += 1
        self._processes = [subprocess.Popen(command) for command in self.commands()]

    def die(self) -> None:
        """As a broker that was killed."""
        self._processes[0].kill()
        self._processes[0].wait()


class Heard:
    """A watcher that keeps all it hears."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.done: list[tuple[str, str]] = []
        self.dropped: list[tuple[str, str]] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def at(self, what: str) -> None:
        pass

    def took(self, load: str, peer: str, seconds: float) -> None:
        assert seconds >= 0
        self.done.append((load, peer))

    def no_more(self, load: str, peer: str) -> None:
        self.dropped.append((load, peer))


@pytest.fixture
def peers() -> Iterator[list[Sleeper]]:
    with contextlib.ExitStack() as stack:
        started = [Sleeper("x"), Sleeper("y"), Sleeper("z")]
        for peer in started:
            stack.callback(peer.stop)
            peer.start()
        yield started


@pytest.fixture
def heard() -> Heard:
    return Heard()


def turns_of(heard: Heard, calibrations: Iterator[float] | None = None) -> Turns:
    """With a machine that is quiet, or as busy as these figures say after the first five."""
    tools = Tools(Path("loader"), Path("jars"), seconds=1.0, scale=1.0)
    if calibrations is None:
        return Turns(tools, heard, Calibration(calibration=lambda: 1.0))
    before = iter([1.0] * 5)
    given = calibrations
    calibration = Calibration(calibration=lambda: next(before, None) or next(given))
    return Turns(tools, heard, calibration)


def load_of(name: str, rate: Callable[[Peer], float]) -> ComparedLoad:
    def run(peer: Peer, tools: Tools) -> Figures:
        return {"rate": rate(peer)}

    return ComparedLoad(name, run)


def test_every_peer_has_its_turn_and_another_begins_each_round(
    peers: list[Sleeper], heard: Heard
) -> None:
    turns = turns_of(heard)
    loads = [load_of("a", lambda _: 1.0), load_of("b", lambda _: 2.0)]
    turns.run(loads, peers, 2)
    assert heard.done == [
        *(("a", "x"), ("a", "y"), ("a", "z"), ("b", "x"), ("b", "y"), ("b", "z")),
        *(("a", "y"), ("a", "z"), ("a", "x"), ("b", "y"), ("b", "z"), ("b", "x")),
    ]
    assert [(slot.load, slot.peer) for slot in turns.slots] == heard.done
    assert all(slot.memory_before_mb > 0 and slot.memory_after_mb > 0 for slot in turns.slots)


def test_a_slowed_slot_is_dropped_and_done_again(peers: list[Sleeper], heard: Heard) -> None:
    rates = iter([10.0, 20.0])
    turns = turns_of(heard, iter([1.0, 1.5, 1.0, 1.1]))
    turns.run([load_of("a", lambda _: next(rates))], peers[:1], 1)
    assert [slot.figures["rate"] for slot in turns.slots] == [20.0]
    assert (turns.calibration.repeated, turns.calibration.slowed) == (1, 0)


def test_a_slot_that_was_slow_before_its_load_is_dropped_too(
    peers: list[Sleeper], heard: Heard
) -> None:
    rates = iter([10.0, 20.0])
    turns = turns_of(heard, iter([1.5, 1.0, 1.0, 1.0]))
    turns.run([load_of("a", lambda _: next(rates))], peers[:1], 1)
    assert [slot.figures["rate"] for slot in turns.slots] == [20.0]


def test_of_slots_that_were_all_slowed_the_quietest_is_kept(
    peers: list[Sleeper], heard: Heard
) -> None:
    assert TRIES_MAX == 3
    rates = iter([10.0, 20.0, 30.0])
    turns = turns_of(heard, iter([2.0, 2.0, 1.5, 1.4, 3.0, 1.2]))
    turns.run([load_of("a", lambda _: next(rates))], peers[:1], 1)
    assert [slot.figures["rate"] for slot in turns.slots] == [20.0]
    assert (turns.calibration.repeated, turns.calibration.slowed) == (2, 1)


def test_a_load_that_a_peer_fails_runs_on_the_others_only(
    peers: list[Sleeper], heard: Heard
) -> None:
    def rate(peer: Peer) -> float:
        if peer.name == "y":
            raise Failed("it has no such thing")
        return 1.0

    turns = turns_of(heard)
    turns.run([load_of("a", rate), load_of("b", lambda _: 1.0)], peers, 2)
    assert turns.failures == {("a", "y"): "it has no such thing"}
    assert heard.done.count(("a", "x")) == 2
    assert heard.done.count(("b", "y")) == 2
    assert heard.dropped == [("a", "y")]


def test_a_failure_in_a_later_round_keeps_the_earlier_slots(
    peers: list[Sleeper], heard: Heard
) -> None:
    rates = iter([5.0])
    turns = turns_of(heard)
    turns.run([load_of("a", lambda _: next(rates))], peers[:1], 3)
    assert [slot.figures["rate"] for slot in turns.slots] == [5.0]
    assert turns.failures == {("a", "x"): "StopIteration: "}


def test_a_load_that_no_peer_can_run_is_left_out(peers: list[Sleeper], heard: Heard) -> None:
    requested = []

    def rate(peer: Peer) -> float:
        requested.append(peer.name)
        raise LeftOut("there is no Spark here")

    turns = turns_of(heard)
    turns.run([load_of("a", rate), load_of("b", lambda _: 1.0)], peers, 1)
    assert requested == ["x"]
    assert turns.left_out == {"a": "there is no Spark here"}
    assert turns.failures == {}
    assert heard.dropped == [("a", "x"), ("a", "y"), ("a", "z")]
    assert heard.done == [("b", "x"), ("b", "y"), ("b", "z")]


def test_a_peer_that_dies_of_a_load_is_started_again(peers: list[Sleeper], heard: Heard) -> None:
    def rate(peer: Peer) -> float:
        assert isinstance(peer, Sleeper)
        if peer.name == "y":
            peer.die()
        return peer.cpu_seconds()

    turns = turns_of(heard)
    turns.run([load_of("a", rate), load_of("b", lambda _: 1.0)], peers, 1)
    assert turns.failures == {("a", "y"): "y has ended"}
    assert [peer.starts for peer in peers] == [1, 2, 1]
    assert ("b", "y") in heard.done


def test_warming_up_ends_when_the_rate_rises_no_more(peers: list[Sleeper], heard: Heard) -> None:
    rates = iter([10.0, 20.0, 30.0, 40.0, 41.0, 100.0])
    turns = turns_of(heard)
    turns.warm_up(load_of("a", lambda _: next(rates)), peers[0])
    assert next(rates) == 100.0
    assert turns.slots == []


def test_warming_up_does_not_go_on_for_ever(peers: list[Sleeper], heard: Heard) -> None:
    rates = [2.0**number for number in range(WARM_UP_SLOTS_MAX + 5)]
    left = iter(rates)
    turns_of(heard).warm_up(load_of("a", lambda _: next(left)), peers[0])
    assert len(list(left)) == 5


def test_a_failure_while_warming_up_is_reported_and_no_more(
    peers: list[Sleeper], heard: Heard
) -> None:
    def rate(peer: Peer) -> float:
        raise Failed("not yet")

    turns = turns_of(heard)
    turns.warm_up(load_of("a", rate), peers[0])
    assert heard.lines == ["x was not warmed up by a: not yet"]
    assert turns.failures == {}


def test_starts_are_measured_and_one_that_fails_has_no_more_turns(heard: Heard) -> None:
    class Broken(Sleeper):
        def start(self) -> None:
            self.starts += 1
            raise Failed("b did not start")

    with contextlib.ExitStack() as stack:
        good, broken = Sleeper("a"), Broken("b")
        stack.callback(good.stop)
        stack.callback(broken.stop)
        turns = turns_of(heard)
        turns.start([good, broken], 2)
        assert [(slot.load, slot.peer) for slot in turns.slots] == [("start", "a")] * 2
        assert all(slot.figures["memory_mb"] > 0 for slot in turns.slots)
        assert (good.runs(), broken.runs()) == (True, False)
        assert (good.starts, broken.starts) == (2, 1)
        assert turns.failures == {("start", "b"): "b did not start"}


def test_a_broker_that_ends_at_once_is_reported_with_its_last_words() -> None:
    class Complaining(Sleeper):
        def commands(self) -> Sequence[list[str]]:
            return [["sleep", "600"], ["sh", "-c", "echo no such setting; exit 1"]]

        def start(self) -> None:
            Peer.start(self)

    peer = Complaining("b")
    try:
        with pytest.raises(Failed, match=r"^b did not start: no such setting$"):
            peer.start()
    finally:
        peer.stop()
    assert not peer.folder.exists()
