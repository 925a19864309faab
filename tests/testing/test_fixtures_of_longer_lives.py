"""Fixtures of a module or a run, async tests, and what a user is told when something is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pytest_runs import PytestRun

from odradek import testing
from odradek.testing import Cluster, NotReached
from odradek.testing.conditions import topic_exists

APP = """
@pytest.fixture(scope="session")
def app(kafka_factory, kafka_topic_factory):
    broker = kafka_factory()
    return broker, kafka_topic_factory(partitions=3)

@pytest.fixture(scope="module")
def of_module(kafka_factory):
    return kafka_factory(config={"num.partitions": 5})
"""


def test_an_app_that_lives_as_long_as_the_run_has_the_broker_of_its_tests(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        APP
        + """
@pytest.mark.parametrize("number", range(2))
def test_it(app, kafka, kafka_group, number):
    broker, topic = app
    note(broker)
    assert broker.bootstrap_servers == kafka.bootstrap_servers
    assert len(kafka.topic(topic).partitions) == 3
    assert broker.requests.of("Produce", topic=topic).count() == number
    talk(kafka.bootstrap_servers, topic, kafka_group)

@pytest.mark.kafka(config={"num.partitions": "5"})
def test_another(app, of_module, kafka):
    assert of_module.bootstrap_servers == kafka.bootstrap_servers != app[0].bootstrap_servers
""",
    )
    assert "3 passed" in run.finish()
    assert run.left_over() == []


def test_a_failure_shows_the_requests_to_the_broker_of_an_app(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        APP
        + """
def test_it(app):
    talk(app[0].bootstrap_servers, app[1], "readers")
    assert False
""",
    )
    _, _, shown = run.finish().partition("last requests to the Kafka broker")
    assert re.search(r"#\d+ .* Produce v\d+ from kafka-python", shown), shown


ADVICE = {
    "kafka": "take kafka_factory: kafka_factory() is the same broker",
    "kafka_topic": "take kafka_topic_factory: kafka_topic_factory() is the name of a new topic",
    "kafka_group": "give it a name that nobody else uses",
    "kafka_broker": "write `with odradek.testing.Broker() as broker:` in the fixture",
    "kafka_cluster": "write `with odradek.testing.Cluster(3) as cluster:` in the fixture",
}


def test_a_fixture_that_lives_longer_than_ours_is_told_what_to_take(tmp_path: Path) -> None:
    cases = [
        (each, scope) for each in ADVICE for scope in ("class", "module", "package", "session")
    ]
    run = PytestRun(
        tmp_path,
        "import pytest\n"
        + "".join(
            f"""
@pytest.fixture(scope="{scope}")
def {scope}_{fixture}({fixture}):
    pass

def test_{scope}_{fixture}({scope}_{fixture}):
    pass

def test_{scope}_{fixture}_again({scope}_{fixture}):
    pass

@pytest.fixture(scope="{scope}")
def {scope}_late_{fixture}(request):
    request.getfixturevalue("{fixture}")

def test_{scope}_late_{fixture}({scope}_late_{fixture}):
    pass
"""
            for fixture, scope in cases
        ),
        # Where `CI` is set, pytest's summary tells every error whole once more.
        ("--maxfail=0", "-rN"),
        head="",
    )
    printed = run.finish()
    assert f"{3 * len(cases)} errors" in printed
    _, *errors = re.split(r"^_+ ERROR at setup of ", printed, flags=re.M)
    for fixture, scope in cases:
        names = {
            f"test_{scope}_{each}" for each in (fixture, f"{fixture}_again", f"late_{fixture}")
        }
        own = [each for each in errors if each.split()[0] in names]
        assert len(own) == len(names)
        for error in own:
            assert f"scoped fixture {fixture} with a {scope} scoped" in error
            assert error.count(ADVICE[fixture]) == 1


def test_a_mismatch_of_a_fixture_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
import pytest

@pytest.fixture
def kafka():
    return "a Kafka of my own"

@pytest.fixture(scope="module")
def app(kafka):
    pass

def test_it(app):
    pass
""",
        head="",
    )
    printed = run.finish()
    assert "ScopeMismatch" in printed
    assert "kafka_factory" not in printed


def test_coroutines_of_every_kind_wait_without_blocking_their_loop(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
import anyio, asyncio, trio
from odradek.testing.conditions import NotReached, records_in

async def wait_beside(kafka, topic, sleep):
    with pytest.raises(RuntimeError, match="wait_until_async"):
        kafka.wait_until(records_in(topic, 1))
    with pytest.raises(NotReached, match="has no records to read"):
        await kafka.wait_until_async(records_in(topic, 1), timeout=0.1)
    KafkaProducer(bootstrap_servers=kafka.bootstrap_servers).send(topic, b"hello").get(60)
    await kafka.wait_until_async(records_in(topic, 1), lambda broker: topic in broker.topics())
    await sleep(0)

@pytest.mark.asyncio
async def test_asyncio(kafka, kafka_topic):
    await wait_beside(kafka, kafka_topic, asyncio.sleep)

@pytest.mark.trio
async def test_trio(kafka, kafka_topic):
    await wait_beside(kafka, kafka_topic, trio.sleep)

@pytest.mark.anyio
async def test_anyio(kafka, kafka_topic):
    await wait_beside(kafka, kafka_topic, anyio.sleep)
""",
    )
    assert "4 passed" in run.finish()


def test_others_go_on_while_a_coroutine_waits(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
import aiokafka, asyncio
from odradek.testing.conditions import records_in

def test_it(kafka, kafka_topic):
    async def produce_meanwhile():
        waits = asyncio.create_task(kafka.wait_until_async(records_in(kafka_topic, 1)))
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            await producer.send_and_wait(kafka_topic, b"hello")
        await waits
    asyncio.run(produce_meanwhile())
""",
    )
    assert "1 passed" in run.finish()


@pytest.mark.parametrize(
    ("marked", "said"),
    [
        ('config={"num.partitons": 1}', "num.partitions"),
        ('config={"log.dirs": "/elsewhere"}', "a folder of its own"),
        ("brokrs=3", "it has brokers"),
    ],
)
@pytest.mark.parametrize("fixture", ["kafka", "kafka_cluster"])
def test_a_wrong_marker_fails_at_the_line_of_the_test(
    tmp_path: Path, marked: str, said: str, fixture: str
) -> None:
    run = PytestRun(
        tmp_path,
        f"import pytest\n\n@pytest.mark.kafka({marked})\ndef test_it({fixture}):\n    pass\n",
        head="",
    )
    printed = run.finish()
    assert "1 error" in printed
    assert "test_users.py:3: " in printed
    assert said in printed
    assert "running_broker.py" not in printed
    assert "marker_options.py" not in printed
    assert "During handling of" not in printed, "the error is shown once"


def test_a_broker_made_by_a_test_fails_at_the_line_that_makes_it(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
from odradek.testing import Broker

def test_it():
    Broker({"num.partitons": "1"})
""",
        head="",
    )
    printed = run.finish()
    assert re.search(r'^> +Broker\(\{"num.partitons": "1"\}\)$', printed, re.M), printed
    assert "num.partitions" in printed
    assert "running_broker.py" not in printed
    assert "broker_process.py" not in printed


@pytest.mark.parametrize(
    ("called", "said"),
    [
        ('kafka_factory(config={"num.partitons": 1})', "did you mean num.partitions"),
        ('kafka_factory(config={"log.dirs": "/elsewhere"})', "a folder of its own"),
        ('kafka_factory(tls="yes")', "kafka_factory(tls='yes'): tls is True or False"),
        ('kafka_topic_factory(config={"retention.mss": "1"})', "retention.mss"),
    ],
)
def test_a_wrong_call_of_a_factory_fails_at_the_line_that_calls_it(
    tmp_path: Path, called: str, said: str
) -> None:
    run = PytestRun(
        tmp_path,
        f"""
import pytest

@pytest.fixture(scope="session")
def app(kafka_factory, kafka_topic_factory):
    return {called}

def test_it(app):
    pass
""",
        head="",
    )
    printed = run.finish()
    assert "1 error" in printed
    assert re.search(rf"^> +return {re.escape(called)}$", printed, re.M), printed
    assert said in printed
    for ours in ("pytest_plugin.py", "shared_broker.py", "verbs.py", "client.py", "contextlib.py"):
        assert ours not in printed, "no line of ours is shown"
    assert "@pytest.mark.kafka" not in printed
    assert "During handling of" not in printed, "the error is shown once"


def test_every_exception_is_where_the_broker_is() -> None:
    for name in testing.__all__:
        assert isinstance(getattr(testing, name), type)
    assert issubclass(testing.ControlTimeout, testing.ControlError)
    assert issubclass(NotReached, AssertionError)


@pytest.fixture
def pair() -> Cluster:
    with Cluster(2, {"default.replication.factor": "1"}) as cluster:
        yield cluster


def test_brokers_come_and_go(pair: Cluster) -> None:
    third = pair.add_broker()
    assert third.broker_id == 3
    assert repr(pair).startswith("<Kafka cluster of brokers 1, 2, 3 at 127.0.0.1:")
    pair.create_topic("t", replication_factor=3)
    assert sorted(pair.topic("t").partitions[0].isr) == [1, 2, 3]
    pair.remove_broker(2)
    assert repr(third) == f"<Kafka broker 3 at {third.bootstrap_servers}, pid {third.pid}>"
    assert [each.broker_id for each in pair.brokers] == [1, 3]
    pair.wait_until(lambda cluster: 2 not in cluster.topic("t").partitions[0].isr)
    assert pair.add_broker().broker_id == 4
    with pytest.raises(ValueError, match="the brokers are 1, 3, 4: there is no 2"):
        pair.remove_broker(2)
    with pair.link_cut(1, 4):
        pair.wait_until(topic_exists("t"))


def test_a_broker_itself_does_where_its_id_does(pair: Cluster) -> None:
    first, second = pair.brokers
    third = pair.add_broker()
    assert pair.broker(third) is third
    pair.create_topic("t", replication_factor=3)
    with pair.link_cut(first, third):
        assert pair.cut_links() == [(1, 3)]
    pair.isolate(second)
    assert pair.cut_links() == [(1, 2), (2, 3)]
    pair.heal(second)
    assert pair.cut_links() == []
    pair.move_leader("t", 0, to=third)
    assert pair.leader_of("t") is third
    assert sorted(pair.shrink_isr("t", 0, without=first)) == [2, 3]
    pair.restore_isr("t", 0, first)
    pair.remove_broker(second)
    assert pair.brokers == [first, third]
    with pytest.raises(ValueError, match="the brokers are 1, 3: there is no <Kafka broker 2 at "):
        pair.remove_broker(second)


def test_a_groups_coordinator_is_known_before_its_first_request(pair: Cluster) -> None:
    coordinator = pair.coordinator_of("g")
    assert coordinator in pair.brokers
    assert pair.topics(internal=True) == ["__consumer_offsets"]
    assert pair.transaction_coordinator_of("x") in pair.brokers


def test_a_clusters_report_has_brokers_that_were_added(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
@pytest.mark.kafka(brokers=1)
def test_it(kafka_cluster):
    added = kafka_cluster.add_broker()
    kafka_cluster.create_topic("t", 1, 2)
    kafka_cluster.move_leader("t", 0, to=added)
    talk(kafka_cluster.bootstrap_servers, "t", "readers")
    assert False
""",
    )
    printed = run.finish()
    _, _, shown = printed.partition("last requests to Kafka broker 1 and Kafka broker 2")
    assert re.search(r"^Kafka broker 2: #1 ", shown, re.M), "all that it was sent since it came"
    assert re.search(r"^Kafka broker 2: #\d+ \S+ Produce v\d+ from kafka-python", shown, re.M), (
        shown
    )
    _, _, log = shown.partition("log of Kafka broker 2")
    assert "(nothing logged)" not in log
    assert "(its log is gone)" not in log


def test_a_clusters_report_has_the_requests_of_all_brokers_in_their_order(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
@pytest.mark.kafka(brokers=2)
def test_it(kafka_cluster):
    for name in ("a", "b"):
        kafka_cluster.create_topic(name, 2)
        for _ in range(3):
            talk(kafka_cluster.bootstrap_servers, name, f"readers of {name}")
    assert False
""",
    )
    printed = run.finish()
    assert printed.count("last requests to ") == 1
    _, _, shown = printed.partition("last requests to Kafka broker 1 and Kafka broker 2")
    lines = re.findall(r"^(Kafka broker \d): #\d+ (\S+) (\S+) v\d+ from (\S+)", shown, re.M)
    assert {broker for broker, *_ in lines} == {"Kafka broker 1", "Kafka broker 2"}
    assert [time for _, time, *_ in lines] == sorted(time for _, time, *_ in lines)
    assert [each for each in lines if each[2] == "Fetch" and "kafka-python" not in each[3]] == []
    assert [each for each in lines if "-fetcher-" in each[3]] == []
