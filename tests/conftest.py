"""Brokers for the suites that talk to one over TCP.

By default each is an odradek process of its own. Two variables let the same tests check
another Kafka: `ODRADEK_TEST_BOOTSTRAP` (HOST:PORT of a running one; tests that must start or
kill it are skipped) and `ODRADEK_TEST_KAFKA_LIBS` (a folder with Apache Kafka's jars, which
is then started in odradek's place).
"""

from __future__ import annotations

import gc
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from odradek.testing.process.broker_process import BrokerProcess

sys.path.insert(0, str(Path(__file__).parent))  # makes `support` importable

from support.external_broker import ExternalBroker
from support.file_seconds import SECONDS
from support.kafka_process import KafkaProcess
from support.run_guard import guard_this_run

# Every broker that a test starts imports the package anew: it is compiled once, and not each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Nothing of what is collected is ever garbage, and there are more than ten thousand tests: looking
# for some takes a second of each worker, and more later, each time that a test makes it look anew.
gc.disable()

# A shell without job control has its background jobs ignore Ctrl-C, and so all that they start: a
# test that sends it would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes on a busy machine is no property of what is tested. What lands is judged
# by the same examples each time; new ones are looked for wherever the tests are run besides.
hypothesis.settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
hypothesis.settings.load_profile("untimed")

EXTERNAL_BOOTSTRAP = os.environ.get("ODRADEK_TEST_BOOTSTRAP")
KAFKA_LIBS = os.environ.get("ODRADEK_TEST_KAFKA_LIBS")

QUICK_GROUPS = {
    "odradek.await.topic.creation": "true",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "100",
}
"""Topics that are made when they are first used are there at once. A group's first rebalance needs
no pause for members that come late, and those of a consumer group hear of a rebalance at once."""

NO_RETENTION = {"log.retention.check.interval.ms": str(24 * 3600 * 1000)}
"""For brokers that modules share: records with times of years ago stay there however long the run
takes, though the default retention is a week. The default interval of five minutes is shorter than
a run on a busy machine."""

StartBroker = Callable[..., BrokerProcess]
SharedBrokers = dict[frozenset[tuple[str, str]], BrokerProcess]
topic_numbers = itertools.count()

SLOW_FOLDERS = frozenset({"cluster", "crash", "floor", "interop", "spark"})
"""Folders whose tests are for `make test-all`, but for those that are marked as short."""
OF_PROCESSES = frozenset(
    {
        *("bench", "cli", "clients", "console", "deploy", "docs", "hostile", "testing", "tools"),
        *SLOW_FOLDERS,
    }
)
"""Folders whose tests start processes; state machines and units are in all the others."""
SHARE_A_PROCESS = ("tests/spark", "tests/interop")
"""Folders whose files are run by one worker: what they share is dear to start."""
OF_THEIR_OWN = frozenset(
    {
        *("tests/interop/test_login_matrix.py", "tests/interop/test_share_histories.py"),
        *("tests/spark/test_examples.py", "tests/spark/test_memory.py"),
        *("tests/spark/test_spark_commands.py", "tests/spark/test_standalone_cluster.py"),
    }
)
"""Those of their files that share little: they start processes of their own. What takes minutes and
stayed with the others would leave one worker alone in the end."""
SECOND_SPARK = "tests/spark, the second"
OF_THE_SECOND_SPARK = frozenset(
    f"tests/spark/test_{name}.py"
    for name in (
        *("archive_replay", "archive_tables", "audit", "maintain", "mirror", "odradek_log"),
        *("odradek_source", "pipelines_on_kafka", "transactions", "verify_replicas"),
    )
)
"""Those that share another Spark with each other: one worker would be the last by far with all. In
`make test` none of them runs."""


def together(file: str) -> str:
    """What is run by one worker, one after another: the tests of a file share a broker.

    Args:
        file: its path from the root of the checkout.
    """
    if file in OF_THE_SECOND_SPARK:
        return SECOND_SPARK
    folder = file.rpartition("/")[0]
    return folder if folder in SHARE_A_PROCESS and file not in OF_THEIR_OWN else file


def pytest_configure(config: pytest.Config) -> None:
    """Have nothing that the tests start outlive them."""
    if not hasattr(config, "workerinput"):  # workers of xdist belong to the run that started them
        guard_this_run()


def pytest_collection_finish() -> None:
    """Look for garbage from now on, but not among the tests."""
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of a slow folder of which `make test` runs nothing: each worker would."""
    if "not slow" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    is_slow = collection_path.parent.name in SLOW_FOLDERS
    return True if is_slow and "mark.short" not in collection_path.read_text() else None


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """Make no cases of a test of which `make test` runs none."""
    if "not slow" not in collector.config.option.markexpr or not name.startswith("test_"):
        return None
    marks = {mark.name for mark in getattr(obj, "pytestmark", ())}
    return None if marks.isdisjoint({"slow", "soak"}) else []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark what is slow, have `-m` choose by that, and put files in the order of their turns."""
    for item in items:
        is_slow = folder_of(item) in SLOW_FOLDERS and not item.get_closest_marker("short")
        if is_slow or item.get_closest_marker("interop"):
            item.add_marker(pytest.mark.slow)
    yield
    turns = turns_of(dict.fromkeys(group_of(item) for item in items))
    items.sort(key=lambda item: turns[group_of(item)])


def turns_of(groups: Iterable[str]) -> dict[str, float]:
    """When each group of files has its turn, from 0 to 1.

    What one worker has to do by itself all the time begins at once. Then units, which keep the
    processors busy, come between what waits for processes most of the time; and of each, what
    takes long comes first, so that no worker is left alone with it.
    """
    kinds: dict[bool, list[str]] = {False: [], True: []}
    for group in sorted(groups, key=lambda group: -SECONDS.get(group, 0)):
        kinds[not OF_PROCESSES.isdisjoint(group.split("/"))].append(group)
    turns = {
        group: (number + 1) / len(kind)
        for kind in kinds.values()
        for number, group in enumerate(kind)
    }
    return turns | dict.fromkeys((*SHARE_A_PROCESS, SECOND_SPARK), 0.0)


def group_of(item: pytest.Item) -> str:
    """What is run by the same worker as this test."""
    return together(item.nodeid.partition("::")[0])


def folder_of(item: pytest.Item) -> str:
    """The folder of `tests/` that a test is in."""
    return item.nodeid.partition("/")[2].partition("/")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute what belongs together, in the order of the collection.

    Seeds of a soak belong to nothing: all workers take some of the same file.
    """
    if config.option.markexpr == "soak":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class TogetherByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid.partition("::")[0])

    return TogetherByFile(config, log)


@pytest.fixture(scope="session")
def shared_brokers() -> Iterator[SharedBrokers]:
    """The brokers that modules share, by their settings, which are stopped at the end."""
    brokers: SharedBrokers = {}
    yield brokers
    with ExitStack() as stack:
        for process in brokers.values():
            stack.enter_context(process)


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    shared_brokers: SharedBrokers,
) -> Iterator[BrokerProcess | ExternalBroker]:
    """A broker with default settings but for quick groups, or with the module's `BROKER_SETTINGS`.

    Modules share it, so a test uses topics and groups of its own. One that changes the broker, or
    looks at all that is in it, says `OWN_BROKER = True`.
    """
    if EXTERNAL_BOOTSTRAP:
        yield ExternalBroker(EXTERNAL_BOOTSTRAP)
        return
    settings = {**NO_RETENTION, **getattr(request.module, "BROKER_SETTINGS", QUICK_GROUPS)}
    if getattr(request.module, "OWN_BROKER", False):
        with _start(tmp_path_factory.mktemp("broker") / "data", settings) as process:
            yield process
        return
    key = frozenset(settings.items())
    if key not in shared_brokers:
        shared_brokers[key] = _start(tmp_path_factory.mktemp("broker") / "data", settings)
    elif not shared_brokers[key].is_running:
        shared_brokers[key].start()
    yield shared_brokers[key]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Start a broker: `start_broker(data_dir=..., settings={...})`; it is stopped at the end."""
    with _starting(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def start_module_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartBroker]:
    """The same for brokers that the tests of a module share."""
    with _starting(tmp_path_factory.mktemp("brokers")) as start:
        yield start


@contextmanager
def _starting(folder: Path) -> Iterator[StartBroker]:
    if EXTERNAL_BOOTSTRAP:
        pytest.skip("starts a broker of its own, and ODRADEK_TEST_BOOTSTRAP names a running one")
    numbers = itertools.count()
    with ExitStack() as stack:

        def start(
            data_dir: Path | None = None, settings: dict[str, str] | None = None
        ) -> BrokerProcess:
            data = data_dir or folder / f"data-{next(numbers)}"
            return stack.enter_context(_start(data, {**QUICK_GROUPS, **(settings or {})}))

        yield start


@pytest.fixture
def topic() -> str:
    """The name of a topic that does not exist yet."""
    return f"topic-{os.getpid()}-{next(topic_numbers)}"


def _start(data_dir: Path, settings: dict[str, str]) -> BrokerProcess:
    if KAFKA_LIBS:
        return KafkaProcess(Path(KAFKA_LIBS), data_dir, settings=settings)
    return BrokerProcess(data_dir, settings=settings)
