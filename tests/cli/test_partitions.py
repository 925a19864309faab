"""`odradek partitions` on a cluster of three brokers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odradek.cli.partitions.plan import Move, read_plan, spread, throttled_replicas
from odradek.testing.process.broker_process import BrokerProcess

from .conftest import Odradek

BROKERS = (1, 2, 3)
SECONDS_MAX = 60


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Three brokers of one process."""
    command = [sys.executable, "-m", "odradek", "serve", "--brokers", "3", "--ephemeral"]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        yield child.stdout.readline().split("ready at ")[1].split(", ")[0]
        child.send_signal(signal.SIGTERM)


@pytest.fixture
def on_three(odradek: Odradek, bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("ODRADEK_BOOTSTRAP_SERVER", bootstrap)

    def run(*arguments: object, stdin: bytes = b"", code: int = 0) -> Any:
        """A broker hears of a new topic a moment after another: until then it is not there."""
        outcome = odradek(*arguments, stdin=stdin)
        deadline_s = time.monotonic() + SECONDS_MAX
        while "there is no such topic" in outcome.err and "nothing" not in arguments:
            assert time.monotonic() < deadline_s, outcome.err
            outcome = odradek(*arguments, stdin=stdin)
        assert outcome.code == code, outcome.err
        return outcome

    return run


def replicas_of(on_three: Any, topic: str) -> list[list[int]]:
    (line,) = on_three("topics", "describe", topic, "--json").lines
    return [each["replicas"] for each in json.loads(line)["partitions"]]


def becomes(find: Callable[[], object], expected: object) -> bool:
    """Whether that is what each broker says, once it has heard of it."""
    deadline_s = time.monotonic() + SECONDS_MAX
    while (found := find()) != expected:
        assert time.monotonic() < deadline_s, found
    return True


def throttles(on_three: Any, topic: str) -> dict[str, str]:
    """Every setting of the topic or of a broker that throttles replication."""
    owners = (("--topic", topic), *(("--broker", broker) for broker in BROKERS))
    lines = [on_three("configs", "describe", *owner, "--json").lines for owner in owners]
    found = [json.loads(line) for each in lines for line in each]
    return {each["setting"]: each["value"] for each in found if "throttled" in each["setting"]}


assignments = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 20)),
    st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True),
    min_size=1,
)


@example({("a", n): [1, 2, 3] if n > 2 else [1] for n in range(5)}, [1, 2, 3])
@given(assignments, st.lists(st.integers(1, 9), min_size=3, max_size=8, unique=True))
def test_a_plan_is_even_and_copies_only_what_evenness_needs(
    replicas: dict[tuple[str, int], list[int]], brokers: list[int]
) -> None:
    planned = spread(replicas, brokers, None)
    assert planned.keys() == replicas.keys()
    load = dict.fromkeys(brokers, 0)
    for each, found in planned.items():
        assert len(set(found)) == len(found) == len(replicas[each])
        for broker in found:
            load[broker] += 1
    most = -(-sum(map(len, replicas.values())) // len(brokers))
    held = dict.fromkeys(brokers, 0)
    for each in replicas.values():
        for broker in each:
            if broker in held:
                held[broker] += 1
    if all(count <= most for count in held.values()) and set().union(*replicas.values()) <= set(
        brokers
    ):
        assert {each: set(found) for each, found in planned.items()} == {
            each: set(found) for each, found in replicas.items()
        }
    assert max(load.values()) <= most


def test_a_throttle_names_leaders_and_those_that_copy() -> None:
    moves = [Move(("t", 0), (1, 2), (2, 3), 5), Move(("t", 1), (3,), (1,), 5)]
    assert throttled_replicas(moves) == {
        "t": {
            "leader.replication.throttled.replicas": "0:1,0:2,1:3",
            "follower.replication.throttled.replicas": "0:3,1:1",
        }
    }
    assert throttled_replicas([Move(("t", 0), (1, 2), (2, 1), 5)]) == {}


@pytest.mark.slow
@pytest.mark.clients
def test_a_plan_is_shown_then_carried_out(on_three: Any, topic: str) -> None:
    on_three("topics", "create", topic, "-p", 4, "-r", 1)
    on_three("produce", topic, stdin=b"some line\n" * 100)
    before = replicas_of(on_three, topic)
    shown = on_three("partitions", "reassign", topic, "--to", "1,2,3", "-r", 2)
    assert "nothing was changed" in shown.err
    assert "bytes are to be copied" in shown.out
    assert becomes(lambda: replicas_of(on_three, topic), before)
    on_three("partitions", "reassign", topic, "--to", "1,2,3", "-r", 2, "--execute")
    assert becomes(lambda: {len(each) for each in replicas_of(on_three, topic)}, {2})
    after = replicas_of(on_three, topic)
    assert sorted(broker for each in after for broker in each).count(1) in (2, 3)
    on_three("partitions", "elect-leaders", topic)

    def leaders() -> list[int]:
        (line,) = on_three("topics", "describe", topic, "--json").lines
        return [each["leader"] for each in json.loads(line)["partitions"]]

    assert becomes(leaders, [each[0] for each in after])
    assert len(on_three("consume", topic, "--from-beginning", "-e").lines) == 100
    words = ("partitions", "reassign", topic, "--to", "1,2,3")
    assert becomes(lambda: "where they should be" in on_three(*words).err, True)


@pytest.mark.clients
def test_a_written_plan_is_read_again(on_three: Any, topic: str, tmp_path: Path) -> None:
    on_three("topics", "create", topic, "-r", 1)
    ((old,),) = replicas_of(on_three, topic)
    new = next(broker for broker in BROKERS if broker != old)
    plan = tmp_path / "plan.json"
    words = ("partitions", "reassign", topic, "--to", new, "--json")
    plan.write_text(on_three(*words).out)
    assert read_plan(plan.read_text(), "plan") == {(topic, 0): (new,)}
    on_three("partitions", "reassign", "--plan", plan, "--execute")
    assert becomes(lambda: replicas_of(on_three, topic), [[new]])


@pytest.mark.slow
@pytest.mark.clients
def test_an_interrupted_reassignment_goes_on_and_its_throttle_ends(
    on_three: Any, bootstrap: str, topic: str
) -> None:
    on_three("topics", "create", topic, "-r", 1)
    on_three("produce", topic, stdin=(b"x" * 1000 + b"\n") * 2000)
    ((old,),) = replicas_of(on_three, topic)
    new = next(broker for broker in BROKERS if broker != old)
    words = ("partitions", "reassign", topic, "--to", str(new), "--throttle", "1000")
    with subprocess.Popen(
        [sys.executable, "-m", "odradek", *words, "--execute", "-b", bootstrap],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stderr is not None
        assert "1 partitions are being moved" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        assert "odradek partitions status --wait" in child.stderr.read()
    assert child.returncode == 130
    (line,) = on_three("partitions", "status", "--json").lines
    assert json.loads(line)["adding"] == [new]
    throttled = {
        "leader.replication.throttled.replicas": f"0:{old}",
        "follower.replication.throttled.replicas": f"0:{new}",
        "leader.replication.throttled.rate": "1000",
        "follower.replication.throttled.rate": "1000",
    }
    assert becomes(lambda: throttles(on_three, topic), throttled)
    for broker in (old, new):
        rates = [f"{side}.replication.throttled.rate=50000000" for side in ("leader", "follower")]
        on_three("configs", "alter", *rates, "--broker", broker)
    waited = on_three("partitions", "status", "--wait")
    assert "the throttle was taken away" in waited.err
    assert becomes(lambda: replicas_of(on_three, topic), [[new]])
    assert becomes(lambda: throttles(on_three, topic), {})


@pytest.mark.clients
def test_a_cancelled_reassignment_leaves_partitions_and_settings_as_they_were(
    on_three: Any, topic: str
) -> None:
    on_three("topics", "create", topic, "-r", 1)
    on_three("produce", topic, stdin=(b"x" * 1000 + b"\n") * 2000)
    ((old,),) = replicas_of(on_three, topic)
    new = next(broker for broker in BROKERS if broker != old)
    words = ("partitions", "reassign", topic, "--to", new, "--throttle", 1, "--execute")
    on_three(*words, "--no-wait")
    busy = on_three(*words, code=1)
    assert "is being moved" in busy.err
    on_three("partitions", "cancel", topic)
    assert becomes(lambda: replicas_of(on_three, topic), [[old]])
    assert becomes(lambda: throttles(on_three, topic), {})
    assert on_three("partitions", "status", "--json").lines == []
    assert "is not being moved" in on_three("partitions", "cancel", topic, code=1).err


@pytest.mark.clients
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("reassign", "nothing", "--to", "1"), "topic nothing: there is no such topic"),
        (("reassign", "{topic}", "--to", "9"), "there is no broker 9"),
        (("reassign", "{topic}", "--to", "one"), "'one' names no brokers"),
        (("reassign", "{topic}", "--to", "1", "-r", "2"), "2 replicas need as many brokers"),
        (("reassign", "{topic}"), "name partitions and --to"),
        (("reassign", "--plan", "/nowhere"), "/nowhere: No such file"),
        (("reassign", "--plan", "/etc/passwd"), "/etc/passwd is no plan"),
        (("cancel",), "name partitions, or give --all"),
        (("elect-leaders", "{topic}:7"), "has no partition 7"),
        (("move", "{topic}", "--broker", "1", "--to", "/no"), "broker 1 has no directory /no"),
        (("directories", "--broker", "9"), "no node 9"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    on_three: Any, topic: str, words: tuple[str, ...], sentence: str
) -> None:
    on_three("topics", "create", topic)
    outcome = on_three("partitions", *(word.format(topic=topic) for word in words), code=1)
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.clients
def test_replicas_move_between_directories(odradek: Odradek, tmp_path: Path, topic: str) -> None:
    paths = [str(tmp_path / name) for name in ("one", "two")]
    log_path = tmp_path / "broker.log"
    with BrokerProcess(Path(",".join(paths)), log_path=log_path) as broker:
        to_broker = ("-b", broker.bootstrap)
        assert odradek("topics", "create", topic, *to_broker).code == 0
        assert odradek("produce", topic, *to_broker, stdin=b"line\n" * 1000).code == 0

        def where() -> str:
            (found,) = (path for path in paths if (Path(path) / f"{topic}-0").is_dir())
            return found

        old = where()
        (new,) = {*paths} - {old}
        words = ("partitions", "move", topic, "--broker", 1, "--to", new, *to_broker)
        assert "nothing was changed" in odradek(*words).err
        assert where() == old
        outcome = odradek(*words, "--throttle", 50_000_000, "--execute")
        assert outcome.code == 0, outcome.err
        shown = odradek("partitions", "directories", "--json", *to_broker).lines
        rows = {each["directory"]: each for each in map(json.loads, shown)}
        assert (rows[old]["replicas"], rows[new]["replicas"]) == (0, 1)
        described = odradek("configs", "describe", "--broker", 1, "--json", *to_broker).out
        assert "replica.alter.log.dirs.io" not in described
        assert len(odradek("consume", topic, "--from-beginning", "-e", *to_broker).lines) == 1000
