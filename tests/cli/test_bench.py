"""`odradek bench`: the whole command, what it leaves, and what it says of what cannot be done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from odradek.bench.cluster import NAME_PREFIX, TargetCluster
from odradek.bench.loads.loads import LOADS
from odradek.bench.run.own_broker import FOLDER_PREFIX
from odradek.bench.target import BenchTarget
from odradek.testing import Broker
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.process.process_end import is_alive
from odradek.testing.waiting import wait_until

from .conftest import Odradek

pytestmark = pytest.mark.clients

BEGINS_SECONDS_MAX = 120.0
ENDS_SECONDS_MAX = 120.0
LONG = ("--only", "^Produce, 16 connections($|, 256)", "--seconds", 100)
SHORT = ("--quick", "--seconds", 0.05)


def topics_of_loads(port: int) -> list[str]:
    with TargetCluster(BenchTarget("127.0.0.1", port)) as cluster:
        return cluster.topics_named(NAME_PREFIX)


@pytest.mark.slow
def test_whole_command_measures_every_load(odradek: Odradek, tmp_path: Path) -> None:
    run, picture = tmp_path / "run.json", tmp_path / "run.png"
    done = odradek("bench", "--quick", "--seconds", 0.05, "--json", run, "--plot", picture)
    assert done.code == 0, done.err
    report = json.loads(run.read_text())
    assert list(report["loads"]) == [load.name for load in LOADS]
    assert report["failures"] == report["left_out"] == {}
    assert len(report["slots"]) == len(LOADS)
    assert {"processor", "cores", "memory", "system"} <= set(report["machine"])
    assert report["versions"]["python"] == sys.version.split()[0]
    for name, figures in report["loads"].items():
        assert any(line.startswith(f"  {name} ") for line in done.lines), done.out
        assert name == "start" or "cpu_us" in figures
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_runs_are_compared(odradek: Odradek, broker: BrokerProcess, tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    where = ("--only", "^Produce, 1 connection$", *SHORT, "-b", broker.bootstrap)
    assert odradek("bench", *where, "--json", run).code == 0
    content = json.loads(run.read_text())
    (figures,) = content["loads"].values()
    figures["rate"] *= 1_000_000  # more than anything slows a load of a few milliseconds
    content["machine"]["processor"] = "another"
    run.write_text(json.dumps(content))
    done = odradek("bench", *where, "--compare", run)
    assert done.code == 0, done.err
    (line,) = [line for line in done.lines if "rate/s" in line and "ratio" not in line][-1:]
    assert line.split()[-2:] == ["0.00", "worse"]
    assert "on another machine (processor)" in done.err


def test_broker_that_was_named_is_reported_and_left_clean(
    odradek: Odradek, broker: BrokerProcess
) -> None:
    done = odradek(
        *("bench", "-b", f"127.0.0.1:1,{broker.bootstrap}", "--only", "16 conn", *SHORT),
        *("--pid", broker.pid),
    )
    assert done.code == 0, done.err
    assert f"this writes as fast as {broker.bootstrap} takes it, at most 1 GB" in done.err
    assert f"odradek topics delete NAME -b {broker.bootstrap}" in done.err
    assert "broker CPU us" in done.out
    assert topics_of_loads(broker.port) == []


def test_list_tells_every_load_and_runs_none(odradek: Odradek) -> None:
    done = odradek("bench", "--list")
    assert all(load.name in done.out and load.about in done.out for load in LOADS)
    assert "fetch wake-up" not in odradek("bench", "--list", "--only", "Produce").out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("-b", "127.0.0.1:1"), "no broker answers at 127.0.0.1:1"),
        (("-b", "here"), "'here' is no broker's address"),
        (("--pid", "1"), "--pid is for a broker named with --bootstrap-server"),
        (("--only", "("), "--only '(' is no regular expression"),
        (("--only", "no such"), "no load's name matches --only 'no such'"),
        (("--only", "start", "-b", "127.0.0.1:1"), "'start' starts brokers of its own"),
        (("--compare", "/nowhere.json"), "/nowhere.json: No such file"),
        (("--json", "/nowhere/run.json"), "/nowhere is no folder"),
        (("--plot", "picture.words"), "picture.words cannot be drawn"),
    ],
)
def test_what_cannot_be_done_is_reported_before_anything_runs(
    odradek: Odradek, options: tuple[str, ...], sentence: str
) -> None:
    done = odradek("bench", *options)
    assert done.code == 1
    assert sentence in done.err
    assert "round 1" not in done.err


def test_plot_without_matplotlib_says_what_to_install(
    odradek: Odradek, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("matplotlib", "matplotlib.backend_bases"):
        monkeypatch.setitem(sys.modules, module, None)
    done = odradek("bench", "--plot", "x.png")
    assert (done.code, done.out) == (1, "")
    assert "--plot needs matplotlib: pip install matplotlib" in done.err


def test_process_that_is_not_there_is_named(odradek: Odradek, broker: BrokerProcess) -> None:
    done = odradek("bench", "-b", broker.bootstrap, "--pid", 1 << 22)
    assert "there is no process 4194304 on this machine" in done.err


@pytest.mark.slow
def test_load_that_fails_fails_the_command_and_the_others_are_shown(
    odradek: Odradek, start_broker: Callable[..., BrokerProcess]
) -> None:
    refusing = start_broker(settings={"transaction.max.timeout.ms": "1000"})
    done = odradek("bench", "-b", refusing.bootstrap, "--only", "transactions|16 conn", *SHORT)
    assert done.code == 1
    assert "transactions of 100 records failed: " in done.err
    assert "InitProducerId with INVALID_TRANSACTION_TIMEOUT" in done.err
    assert "  Produce, 16 connections " in done.out


# -- what is left when it does not end by itself -----------------------------------------------


class Running:
    """`odradek bench` in a process of its own."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self.out = folder / "out"
        command = [sys.executable, "-m", "odradek", "bench", *map(str, arguments)]
        with self.out.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, env={**os.environ, "TMPDIR": str(folder)}
            )

    def children(self) -> dict[int, str]:
        """Its child processes, and their command lines."""
        pid = self.process.pid
        found = {}
        for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(OSError):  # it ended after it was listed
                found[int(each)] = Path(f"/proc/{each}/cmdline").read_text().replace("\0", " ")
        return found

    def loader(self) -> int | None:
        """The process of the load that runs."""
        return next(
            (pid for pid, line in self.children().items() if "bench.run.worker" in line), None
        )

    def ended(self) -> int:
        """Wait for its end; the exit code."""
        return self.process.wait(ENDS_SECONDS_MAX)


def wait_until_gone(pids: Iterable[int]) -> None:
    """A load that was interrupted as it began ends by itself, and may be its command's survivor."""
    wait_until(lambda: not any(is_alive(pid) for pid in pids), ENDS_SECONDS_MAX, "it runs still")


@contextmanager
def running(folder: Path, *arguments: object) -> Iterator[Running]:
    run = Running(folder, *arguments)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_neither_process_nor_topic(
    broker: BrokerProcess, tmp_path: Path, how: signal.Signals
) -> None:
    with running(tmp_path, "-b", broker.bootstrap, *LONG) as run:
        wait_until(
            lambda: bool(topics_of_loads(broker.port)), BEGINS_SECONDS_MAX, run.out.read_text
        )
        children = run.children()
        assert any("bench.run.worker" in line for line in children.values())
        run.process.send_signal(how)
        assert run.ended() == 130
        assert "interrupted" in run.out.read_text()
    wait_until_gone(children)
    assert topics_of_loads(broker.port) == []


def test_ctrl_c_ends_the_broker_that_was_started(tmp_path: Path) -> None:
    with running(tmp_path, *LONG) as run:
        wait_until(lambda: run.loader() is not None, BEGINS_SECONDS_MAX, run.out.read_text)
        children = run.children()
        assert any("odradek serve" in line for line in children.values())
        assert list(tmp_path.glob(f"{FOLDER_PREFIX}*"))
        run.process.send_signal(signal.SIGINT)
        assert run.ended() == 130
    wait_until_gone(children)
    assert not list(tmp_path.glob(f"{FOLDER_PREFIX}*"))


def test_command_that_is_killed_takes_its_load_with_it(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    with running(tmp_path, "-b", broker.bootstrap, *LONG) as run:
        wait_until(
            lambda: bool(topics_of_loads(broker.port)), BEGINS_SECONDS_MAX, run.out.read_text
        )
        loader = run.loader()
        assert loader is not None
        run.process.kill()
    wait_until_gone([loader])
    assert topics_of_loads(broker.port) == []


def test_load_that_is_killed_is_reported_and_its_topic_removed(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    with running(tmp_path, "-b", broker.bootstrap, *LONG) as run:
        seen: set[str] = set()
        for _ in range(2):  # both of the loads
            wait_until(
                lambda seen=seen: bool(set(topics_of_loads(broker.port)) - seen),
                BEGINS_SECONDS_MAX,
                run.out.read_text,
            )
            # Before it is killed: after that there may be the other one's at any moment.
            seen = set(topics_of_loads(broker.port))
            loader = run.loader()
            assert loader is not None
            os.kill(loader, signal.SIGKILL)
        assert run.ended() == 1
        assert "it ended with exit code -9" in run.out.read_text()
    assert topics_of_loads(broker.port) == []


# -- TLS ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tls_broker_is_measured_as_the_settings_of_clients_say(
    odradek: Odradek, tmp_path: Path
) -> None:
    with Broker({"ssl.client.auth": "required"}, tls=True) as broker:
        config = tmp_path / "client.properties"
        settings = broker.client_settings("java")
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        done = odradek(
            *("bench", "-b", broker.bootstrap_servers, "--command-config", config, *SHORT),
            *("--only", "4 connections x 8|bulk|wake-up$|round trip"),
        )
        assert done.code == 0, done.err
        for name in ("Produce, 4 connections x 8 in flight", "bulk fetch 1 KB", "fetch wake-up"):
            assert f"  {name} " in done.out
        for client in ("kafka-python", "confluent-kafka"):
            assert f"  {client} round trip " in done.out
        plain = odradek("bench", "-b", broker.bootstrap_servers)
        assert plain.code == 1
        assert "if it speaks TLS, say how in a file" in plain.err
