"""The pytest plugin: fixtures `kafka`, `kafka_cluster`, `kafka_topic` and `kafka_group`.

    def test_hello(kafka, kafka_topic):
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)

It is loaded into every pytest run of an environment that has odradek, so it imports nothing of
odradek, and nothing slow, before a fixture of it is used. The fixtures are plain functions:
tests of asyncio and of trio use them as any others do.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .cluster import Cluster
    from .shared_brokers import SharedBroker, SharedBrokers

MARKER = "kafka(brokers=3, config={...}): what the broker of a test that uses `kafka` is like"
SETTING_HELP = "a setting of the brokers that tests use, by Kafka's name"
BOOTSTRAP_HELP = "have tests use this Kafka, which runs already, in place of a broker of their own"
LOG_LINES_SHOWN = 200
"""How much of a broker's log is shown with a test that failed."""

POOL = pytest.StashKey["SharedBrokers"]()
USED = pytest.StashKey[bool]()
LOG_STARTS = pytest.StashKey[dict[str, int]]()


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


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the brokers of the run, if this process is the one that runs it all."""
    if not hasattr(config, "workerinput") and config.stash.get(USED, False):
        _pool(config).close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers of xdist may use brokers, and do not end them."""
    node.config.stash[USED] = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure what the broker has logged since the test began."""
    report = yield
    starts = item.stash.get(LOG_STARTS, None)
    if report.failed and starts:
        from pathlib import Path

        for path, start in starts.items():
            lines = Path(path).read_bytes()[start:].decode(errors="replace").splitlines()
            text = "\n".join(lines[-LOG_LINES_SHOWN:])
            report.sections.append(("log of the Kafka broker", text or "(nothing logged)"))
    return report


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> SharedBroker:
    """A broker that all tests of the run share, with settings alike; xdist's workers, too.

    `@pytest.mark.kafka(config={...})` has the test use one with these settings. Use topics and
    groups of fresh names (`kafka_topic`, `kafka_group`), and do not stop it: a test that breaks
    brokers makes its own, by `odradek.testing.Broker` or `kafka_cluster`.
    """
    marker = request.node.get_closest_marker("kafka")
    settings = _settings(request.config)
    if marker is not None:
        settings |= marker.kwargs.get("config", {})
    broker = _pool(request.config).broker(settings)
    _note_log(request.node, broker.log_path)
    return broker


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of its own for the test: three brokers, or `@pytest.mark.kafka(brokers=N)`."""
    from .cluster import Cluster

    marker = request.node.get_closest_marker("kafka")
    options = {} if marker is None else marker.kwargs
    settings = _settings(request.config) | options.get("config", {})
    with Cluster(options.get("brokers", 3), settings) as cluster:
        for broker in cluster.brokers:
            _note_log(request.node, str(broker.log_path))
        yield cluster


@pytest.fixture
def kafka_topic(kafka: SharedBroker) -> str:
    """The name of a new topic with one partition."""
    name = _fresh_name("topic")
    kafka.create_topic(name)
    return name


@pytest.fixture
def kafka_group() -> str:
    """The name of a group that nobody has used."""
    return _fresh_name("group")


def _fresh_name(kind: str) -> str:
    import secrets

    return f"{kind}-{secrets.token_hex(4)}"


def _settings(config: pytest.Config) -> dict[str, str]:
    """The settings that hold for all tests; the command line stands before the ini file."""
    lines: list[str] = [*config.getini("kafka_settings"), *config.getoption("--kafka-setting")]
    settings = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"kafka setting {line!r}: write it as KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


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
        config.stash[USED] = True
    return pool


def _note_log(item: pytest.Item, log_path: str | None) -> None:
    """Remember where the log of a test's broker stood when the test began."""
    import os

    if log_path is not None:
        starts = item.stash.setdefault(LOG_STARTS, {})
        starts[log_path] = os.path.getsize(log_path)
