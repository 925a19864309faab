"""The pytest plugin: `kafka`, `kafka_broker`, `kafka_cluster`, `kafka_topic`, `kafka_group`.

    def test_hello(kafka, kafka_topic):
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)

It is loaded into every pytest run of an environment that has odradek, so it imports nothing of
odradek, and nothing slow, before a fixture of it is used. The fixtures are plain functions:
tests of asyncio and of trio use them as any others do.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from .cluster import Cluster
    from .control.controlled_broker import ControlledBroker
    from .failure_report import Watched
    from .marker_options import Options
    from .running_broker import Broker
    from .shared_broker import SharedBroker
    from .shared_brokers import SharedBrokers

MARKER = (
    "kafka(brokers=3, tls=False, partitions=1, config={...}): what the Kafka of a test is like: "
    "how many brokers kafka_cluster has, whether they speak TLS, how many partitions kafka_topic "
    "has, and settings by Kafka's names"
)
SETTING_HELP = "a setting of the brokers that tests use, by Kafka's name"
BOOTSTRAP_HELP = "have tests use this Kafka, which runs already, in place of a broker of their own"
POOL = pytest.StashKey["SharedBrokers"]()
RUNS: list[pytest.Config] = []
"""Those under way in this process: a test may run pytest itself."""
WATCHED = pytest.StashKey[list["Watched"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and ini settings."""
    group = parser.getgroup("kafka", "a Kafka broker for tests (odradek)")
    group.addoption(
        "--kafka-setting",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help=f"{SETTING_HELP}; may be given many times",
    )
    group.addoption("--kafka-bootstrap-servers", metavar="HOST:PORT", help=BOOTSTRAP_HELP)
    parser.addini("kafka_settings", f"KEY=VALUE: {SETTING_HELP}", type="linelist", default=[])
    parser.addini("kafka_bootstrap_servers", BOOTSTRAP_HELP, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)
    RUNS.append(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the brokers of the run, if this process is the one that runs it all."""
    if config in RUNS:
        RUNS.remove(config)
    if RUNS:  # it was a run within a test of another, whose brokers these are, too
        return
    has_workers = config.getoption("dist", "no") != "no"  # of xdist: they may have used brokers
    if hasattr(config, "workerinput") or not (has_workers or POOL in config.stash):
        return
    import os

    from .run_folder import run_folder

    if run_folder(os.getpid()).exists():
        _pool(config).close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure what the brokers have been asked and have logged since the test began."""
    report = yield
    if report.failed and WATCHED in item.stash:
        from .failure_report import sections_of

        for watched in item.stash[WATCHED]:
            report.sections.extend(sections_of(watched))
    return report


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[SharedBroker]:
    """A broker that all tests of the run share, with settings alike; xdist's workers, too.

    `@pytest.mark.kafka(config={...}, tls=True)` has the test use one that is so. Use topics and
    groups of fresh names (`kafka_topic`, `kafka_group`). What would meet other tests is refused:
    a test that stops brokers or breaks more than its own topics and groups uses `kafka_broker` or
    `kafka_cluster`.
    """
    options = _options(request)
    shared = _pool(request.config).broker(options.settings, tls=options.tls)
    broker = shared.for_test(request.node.nodeid)
    if broker.log_path is not None:
        _watch(request, "the Kafka broker", broker, broker.log_path)
    yield broker
    broker.lift_faults()


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker of its own for the test, which may stop it and break it; marked as `kafka` is."""
    from .running_broker import Broker

    options = _options(request)
    with Broker(options.settings, tls=options.tls) as broker:
        _watch(request, "the test's own Kafka broker", broker, broker.log_path)
        yield broker


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of its own for the test: three brokers, or `@pytest.mark.kafka(brokers=N)`."""
    from .cluster import Cluster

    options = _options(request)
    with Cluster(options.brokers, options.settings, tls=options.tls) as cluster:
        for number, broker in enumerate(cluster.brokers, start=1):
            _watch(request, f"Kafka broker {number}", broker, broker.log_path)
        yield cluster


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest) -> str:
    """The name of a new topic, with one partition or `@pytest.mark.kafka(partitions=N)`.

    It is made on what the test uses: `kafka_cluster`, `kafka_broker`, or else `kafka`.
    """
    name = _fresh_name("topic")
    partitions = _options(request).partitions
    used = {"kafka_cluster", "kafka_broker"}.intersection(request.fixturenames)
    for fixture in used or {"kafka"}:
        request.getfixturevalue(fixture).create_topic(name, partitions)
    return name


@pytest.fixture
def kafka_group() -> str:
    """The name of a group that nobody has used."""
    return _fresh_name("group")


def _fresh_name(kind: str) -> str:
    import secrets

    return f"{kind}-{secrets.token_hex(4)}"


def _options(request: pytest.FixtureRequest) -> Options:
    """What holds for the brokers of a test; the command line stands before the ini file."""
    from .marker_options import MarkerError, options_of

    config = request.config
    lines = [*config.getini("kafka_settings"), *config.getoption("--kafka-setting")]
    try:
        return options_of(request.node.iter_markers("kafka"), lines)
    except MarkerError as error:
        why = str(error)
    pytest.fail(why, pytrace=False)


def _pool(config: pytest.Config) -> SharedBrokers:
    """The brokers of this run."""
    pool = config.stash.get(POOL, None)
    if pool is None:
        import os

        from .shared_brokers import SharedBrokers

        owner = os.getppid() if hasattr(config, "workerinput") else os.getpid()
        external = config.getoption("--kafka-bootstrap-servers")
        pool = SharedBrokers(owner, external or config.getini("kafka_bootstrap_servers"))
        config.stash[POOL] = pool
    return pool


def _watch(
    request: pytest.FixtureRequest, name: str, broker: ControlledBroker, log_path: Path | str
) -> None:
    """Have the test's report show what the broker is asked and logs from now on."""
    from .failure_report import watch

    watched = request.node.stash.setdefault(WATCHED, [])
    watched.append(watch(name, broker, log_path))
