"""No background task ends for good by an exception.

The table lists every place where a task is started, and why it outlives a failure; what is to be
begun again has to be started by what does that. The tasks of three brokers then fail at their
first run, each once, and the cluster works all the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trio
from support.in_process_cluster import SECONDS_MAX, InProcessCluster

from odradek.broker.broker import Broker
from odradek.client import BatchProducer, Fetcher, KafkaClient
from odradek.metadata_store.znodes import FEATURE, FeatureNode, encode_feature
from odradek.runtime import supervisor as supervision
from odradek.runtime.supervisor import Supervisor, task_name

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "broker",
    "client",
    "controller",
    "coordinator",
    "metadata",
    "metadata_store",
    "replication",
    "runtime",
    "security",
    "testing/control",
    "testing/faults",
    "testing/outages",
)
SUPERVISED = {"keep_running", "_keep_running"}
"""What begins a task again whenever it fails, under each of its names."""
STARTERS = {"start_soon", "start_task", "_start_task", *SUPERVISED}
RUNNERS = {"run_supervised", "self._supervisor.run", "Supervisor().run"}
"""The supervisor's `run`, in a task that is started otherwise."""

KEPT = "begun again whenever it fails"
RUNNER = "runs the supervisor itself"
REQUEST = "the work for one request, whose connection is answered an error or closed"
NEXT = "its owner starts the next when there is work"
CONNECTION = "one connection's, caught at its end"
USER = "of a client whose user it reaches, which no broker is"
PART = "a part of a task that is kept, which ends and is begun again with it"
STOP = "a step of the broker's stop, which has a deadline"
PROCESS = "it is the process, and its failure is why it does not start"
TESTS = "of a broker for tests, which its test ends"
STARTER = "the supervisor and its users' own parameters"

TASKS = {
    "broker/broker.py self._serve": PROCESS,
    "broker/broker.py self.controller.log_directories_changed": KEPT,
    "broker/broker.py self.server.serve": KEPT,
    "broker/broker.py self.channels.run": KEPT,
    "broker/broker.py self.controller.run": KEPT,
    "broker/broker.py self._tls.follow_files": KEPT,
    "broker/broker.py self._hold_producer_ids": KEPT,
    "broker/broker.py self._recover_logs": KEPT,
    "broker/broker.py self._start_log_cleaner": KEPT,
    "broker/broker.py tokens.remove_expired": NEXT,
    "broker/coordinators.py self.producer_ids.refill": NEXT,
    "broker/dynamic_config/acl_manager.py self._load": KEPT,
    "broker/dynamic_config/change_notifications.py self._follow": KEPT,
    "broker/dynamic_config/token_manager.py self._load": KEPT,
    "broker/interbroker/broker_channel.py self._run": NEXT,
    "broker/interbroker/controlled_shutdown.py self._wait_until_forgotten": STOP,
    "broker/interbroker/feature_follower.py self._follow": KEPT,
    "broker/interbroker/forwarding.py _create_beside": NEXT,
    "broker/interbroker/forwarding.py run": REQUEST,
    "broker/interbroker/isr_writer.py self._write": KEPT,
    "broker/interbroker/peers.py self._shrink_isrs": NEXT,
    "broker/interbroker/registered_brokers.py self._read_if_possible": KEPT,
    "broker/interbroker/isr_writer.py self._propagate": KEPT,
    "broker/maintenance/log_cleaner_task.py self._run": KEPT,
    "broker/maintenance/log_cleaner_task.py self._cancel_with_task": PART,
    "broker/maintenance/log_maintenance.py self._flush_closed_segments": KEPT,
    "broker/maintenance/log_maintenance.py self._delete_due": KEPT,
    "broker/maintenance/log_maintenance.py self._write_recovery_points": KEPT,
    "broker/maintenance/log_maintenance.py work_and_go_on": KEPT,
    "broker/metrics/endpoint.py accept_all": PART,
    "broker/network/accepting.py _serve": CONNECTION,
    "broker/network/server.py self._epoll.run": KEPT,
    "broker/network/server.py self._streams.run": KEPT,
    "broker/network/server.py self._run_timers": KEPT,
    "broker/network/server.py self._serve_tls": KEPT,
    "broker/network/server.py self._serve_streams": KEPT,
    "broker/network/stream_transport.py link.receive_all": CONNECTION,
    "broker/network/stream_transport.py link.send_all": CONNECTION,
    "broker/request/authentication.py conclude_later": REQUEST,
    "broker/request/dispatch.py work": STARTER,
    "broker/request/dispatch.py self._decode_and_handle": REQUEST,
    "broker/request/dispatch.py self._make_route": REQUEST,
    "broker/request/dispatch.py self._answer_when_done": REQUEST,
    "broker/request/dispatch.py self._go_on": REQUEST,
    "broker/start.py _count_suppressed_lines": KEPT,
    "broker/start.py collect_when_idle": KEPT,
    "broker/start.py serve": RUNNER,
    "runtime/offload.py stop_when_cancelled": PROCESS,
    "broker/start.py _run_all": PROCESS,
    "broker/start.py in_turn.stop_all": PROCESS,
    "broker/start.py run_to_its_end": PROCESS,
    "client/client.py self._ask": USER,
    "client/client.py self._keep_metadata": USER,
    "client/consumer/consumer.py self._keep_committing": USER,
    "client/consumer/consumer.py self._keep_located": USER,
    "client/consumer/consumer.py self._member.run": USER,
    "client/consumer/consumer.py self._prefetcher.run": USER,
    "client/consumer/fetcher.py ask": USER,
    "client/consumer/group/member.py self._keep_membership": USER,
    "client/consumer/group/member.py self._watch_topics": USER,
    "client/consumer/prefetcher.py self._serve": USER,
    "client/consumer/prefetcher.py self._wait_for_metadata": USER,
    "client/network/connection.py connection.run": CONNECTION,
    "client/network/connection.py self._log_in_again": CONNECTION,
    "client/network/connection.py self._receive_all": CONNECTION,
    "client/network/connection.py self._send_all": CONNECTION,
    "client/network/network.py connection.run": CONNECTION,
    "client/network/network.py self._run_link": CONNECTION,
    "client/producer/producer.py self._add_partitions": USER,
    "client/producer/producer.py self._get_identity": USER,
    "client/producer/producer.py self._run": USER,
    "controller/channel/channel_manager.py queue.run": KEPT,
    "controller/controller.py self._keep_session": KEPT,
    "replication/alter_log_dirs/future_replica_tasks.py self._run": NEXT,
    "replication/fetcher/task.py task.run": KEPT,
    "runtime/supervisor.py runner": STARTER,
    "testing/control/server.py self._serve": KEPT,
    "testing/control/server.py watch": CONNECTION,
    "testing/control/target.py function": STARTER,
    "testing/outages/disks.py _write_soon": TESTS,
    "security/authenticator/sasl_listeners.py keys.run": KEPT,
}
"""By module and function: every task that is started, and what becomes of it should it fail."""

KEPT_PLACES = {place for place, fate in TASKS.items() if fate is KEPT}

ON_ALL = {
    "Broker._hold_producer_ids",
    "Broker._start_log_cleaner",
    "ChannelManager.run",
    "ChangeNotifications._follow",
    "Controller._keep_session",
    "Controller._run_events",
    "Controller.run",
    "EpollTransport.run",
    "FeatureFollower._follow",
    "LogCleanerTask._run",
    "LogMaintenance._every.<locals>.work_and_go_on",
    "Server.serve",
}
"""What fails on every broker of the cluster below; of the others, those that have such a task."""
CONTROLLER, FOLLOWER = 1, 2


USERS_CLIENTS = re.compile(r"client\.(client|network\.network|producer|consumer|admin)\b")
"""Modules of `client` whose tasks reach their user."""


class Start(NamedTuple):
    """A place where a task is started.

    Attributes:
        function: what is run: behind the supervisor's `run`, if that is what is started.
        is_kept: whether the supervisor begins it again.
    """

    function: str
    is_kept: bool


def test_every_task_that_is_started_is_in_the_table() -> None:
    found: dict[str, set[bool]] = {}
    for path in modules():
        source = path.read_text()
        if any(starter in source for starter in STARTERS):
            for start in starts(ast.parse(source)):
                place = f"{path.relative_to(ROOT)} {start.function}"
                found.setdefault(place, set()).add(start.is_kept)
    assert set(found) == set(TASKS)
    assert {place for place in found if found[place] == {True}} == KEPT_PLACES
    assert {place for place in found if found[place] == {False}} == set(TASKS) - KEPT_PLACES


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def starts(module: ast.Module) -> Iterator[Start]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            starter = ast.unparse(node.func).rpartition(".")[2]
            if starter in STARTERS:
                names = [ast.unparse(argument) for argument in node.args]
                is_run = names[0] in RUNNERS
                yield Start(names[is_run], is_run or starter in SUPERVISED)


def test_no_broker_has_tasks_that_reach_a_user() -> None:
    importing = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path.relative_to(ROOT).parts[0] != "client"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and USERS_CLIENTS.match(node.module or "")
    ]
    assert importing == []


class Injected(Exception):
    """The fault that every task has once."""


class FailingCluster(InProcessCluster):
    """Each task that is kept fails at its first run, on each broker."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: set[tuple[int, str]] = set()
        self.begun_again: set[tuple[int, str]] = set()
        self._news = trio.Event()

    async def something_begun_again(self) -> None:
        self._news = trio.Event()
        await self._news.wait()

    def prepare(self, broker: Broker) -> None:
        run = broker.supervisor.run

        async def run_failing(function: Callable[..., Awaitable[None]], *arguments: object) -> None:
            async def fail_first(*arguments: object) -> None:
                key = (broker.broker_id, task_name(function))
                if key not in self.failed:
                    self.failed.add(key)
                    raise Injected
                self.begun_again.add(key)
                self._news.set()
                await function(*arguments)

            fail_first.__qualname__ = task_name(function)
            await run(fail_first, *arguments)

        broker.supervisor.run = run_failing  # type: ignore[method-assign]  # the fault


async def test_a_cluster_works_whose_tasks_have_all_failed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "BACKOFF_SECONDS_MIN", 0.01)
    started_once = note_what_is_started_once(monkeypatch)
    cluster = FailingCluster()
    expected = {(broker_id, name) for broker_id in (1, 2, 3) for name in ON_ALL}
    expected |= {(CONTROLLER, "BrokerQueue.run"), (FOLLOWER, "FetcherTask.run")}
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            await cluster.start(nursery, tmp_path)
            await cluster.create(1, 2, 3)
            await write_and_read(cluster)
            changed = trio.Event()
            cluster.brokers[CONTROLLER].config.subscribe(["log.cleaner.threads"], changed.set)
            broker = cluster.brokers[FOLLOWER]
            await broker.config_manager.alter(
                "brokers", "<default>", lambda _: {"log.cleaner.threads": "2"}
            )
            await broker.metadata_store.create(FEATURE, encode_feature(FeatureNode({})))
            while not expected <= cluster.begun_again:
                await cluster.something_begun_again()
            await changed.wait()
            assert cluster.brokers[CONTROLLER].config["log.cleaner.threads"] == 2
            await write_and_read(cluster)
            nursery.cancel_scope.cancel()
    counted = {
        (broker_id, name)
        for broker_id, broker in cluster.brokers.items()
        for name in broker.supervisor.failures
    }
    assert counted == cluster.failed
    assert started_once.isdisjoint(function_and_module(place) for place in KEPT_PLACES)


def note_what_is_started_once(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """What is given another name than `keep_running` may not stand for it."""
    noted: set[tuple[str, str]] = set()
    start_task = Supervisor.start_task

    def start_noted(
        supervisor: Supervisor, function: Callable[..., Awaitable[None]], *arguments: object
    ) -> None:
        module = function.__module__.removeprefix("odradek.").replace(".", "/")
        noted.add((task_name(function).rpartition(".")[2], f"{module}.py"))
        start_task(supervisor, function, *arguments)

    monkeypatch.setattr(Supervisor, "start_task", start_noted)
    return noted


def function_and_module(place: str) -> tuple[str, str]:
    module, function = place.split(" ")
    return function.rpartition(".")[2], module


async def write_and_read(cluster: InProcessCluster) -> None:
    """A record for acks=all comes back."""
    async with KafkaClient(cluster.bootstrap(FOLLOWER)) as client:
        producer, fetcher = BatchProducer(client), Fetcher(client)
        now_ms = cluster.brokers[FOLLOWER].clock.now_ms()
        written = await producer.send("t", 0, [(None, b"1", now_ms, ())])
        fetcher.assign({("t", 0): written.base_offset})
        while not await fetcher.poll():
            pass
