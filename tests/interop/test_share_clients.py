"""Share consumers of Kafka, franz-go and librdkafka: alone, together, they and brokers killed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.broker_cluster import BrokerCluster
from support.share_members import JAVA_CLASS, LibrdkafkaMember, ShareHistory, ShareMembers
from support.share_work import GROUP, SHARE_SETTINGS, TOPIC, ShareWork

from odradek.testing.process.broker_process import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SECONDS_MAX = 60.0
Start = Callable[[ShareHistory, str], ShareMembers]


@pytest.fixture
def start_java(java_command: list[str], tmp_path: Path) -> Iterator[Start]:
    """Start a process of members that are Kafka's own share consumers."""
    with ExitStack() as stack:
        yield starter(stack, [*java_command, JAVA_CLASS], tmp_path / "java.log")


@pytest.fixture
def start_go(go_program: str, tmp_path: Path) -> Iterator[Start]:
    """Start a process of members that are franz-go's."""
    with ExitStack() as stack:
        yield starter(stack, [go_program, "share"], tmp_path / "go.log")


@pytest.fixture(params=["java", "go"])
def start_members(request: pytest.FixtureRequest) -> Start:
    """Start a process of members, of one client and then of the other."""
    start: Start = request.getfixturevalue(f"start_{request.param}")
    return start


def starter(stack: ExitStack, program: Sequence[str], errors: Path) -> Start:
    """What starts processes that end with a stack."""

    def start(history: ShareHistory, bootstrap: str) -> ShareMembers:
        members = ShareMembers(program, history, bootstrap, TOPIC, GROUP, errors)
        return stack.enter_context(members)

    return start


@pytest.fixture
def share_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker of its own, which may be killed."""
    with BrokerProcess(tmp_path / "data", settings=SHARE_SETTINGS) as broker:
        ShareWork(broker.bootstrap).prepare(replicas=1)
        yield broker


def test_records_are_accepted_released_rejected_and_renewed(
    share_broker: BrokerProcess, start_members: Start
) -> None:
    values = [f"v{number}" for number in range(60)]
    work = ShareWork(share_broker.bootstrap)
    work.produce(*values, "release-1", "reject-1", "renew-1")
    history = ShareHistory()
    members = start_members(history, share_broker.bootstrap)

    members.join("a")
    members.join("b")
    history.wait(
        lambda heard: len(heard.counts()) == 63 and len(heard.counts()["release-1"]) == 5,
        "not all was delivered",
    )
    members.leave("a")
    members.leave("b")

    history.check()
    counts = history.counts()
    assert counts["release-1"] == [1, 2, 3, 4, 5]
    assert all(counts[value] == [1] for value in (*values, "reject-1", "renew-1"))


def test_records_of_a_killed_member_go_to_others(
    share_broker: BrokerProcess, start_members: Start
) -> None:
    ShareWork(share_broker.bootstrap).produce("hold-1")
    history = ShareHistory()
    killed = start_members(history, share_broker.bootstrap)
    killed.join("killed")
    history.wait(lambda heard: heard.counts() == {"hold-1": [1]}, "the record was not delivered")

    killed.kill()
    others = start_members(history, share_broker.bootstrap)
    others.join("other")

    history.wait(lambda heard: heard.counts() == {"hold-1": [1, 2]}, "it did not come again")
    history.wait(lambda heard: heard.acknowledged.total() == 1, "it was not acknowledged")
    history.check()


def test_a_killed_broker_remembers_what_was_acknowledged(
    share_broker: BrokerProcess, start_members: Start, java: Callable[..., str]
) -> None:
    history = ShareHistory()
    members = start_members(history, share_broker.bootstrap)
    members.join("a")
    members.join("b")
    work = ShareWork(share_broker.bootstrap)
    for life in range(3):
        work.produce(*(f"v{life}-{number}" for number in range(200)))
        # It is killed with some of them under way.
        work.wait_for_values(history, len(work.produced) - 150)
        share_broker.kill()
        share_broker.start()

    work.wait_until_done(history, java)
    history.check()


def test_members_go_on_when_leaders_and_coordinators_are_killed(
    tmp_path: Path, start_java: Start, start_go: Start, java: Callable[..., str]
) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(BrokerCluster(tmp_path, settings=SHARE_SETTINGS))
        bootstrap = ",".join(cluster.bootstrap)
        work = ShareWork(bootstrap)
        work.prepare(replicas=3)
        history = ShareHistory()
        members = {"java": start_java(history, bootstrap), "go": start_go(history, bootstrap)}
        for name, process in members.items():
            process.join(name)
        stack.enter_context(LibrdkafkaMember("librdkafka", history, bootstrap, TOPIC, GROUP))
        for victim in cluster.running:
            work.produce(*(f"v{victim}-{number}" for number in range(100)))
            work.wait_for_values(history, len(work.produced) - 80)
            cluster.brokers[victim].kill()
            work.produce(f"alone-{victim}")
            cluster.brokers[victim].start()
            cluster.wait_in_sync(TOPIC)

        work.wait_until_done(history, java)
        # While there is a broker that hears of it.
        for name, process in members.items():
            process.leave(name)
        history.check()


def test_three_clients_share_a_group(
    share_broker: BrokerProcess, start_java: Start, start_go: Start
) -> None:
    history = ShareHistory()
    bootstrap = share_broker.bootstrap
    start_java(history, bootstrap).join("java")
    start_go(history, bootstrap).join("go")
    work = ShareWork(bootstrap)
    deadline = time.monotonic() + 2 * SECONDS_MAX
    with LibrdkafkaMember("librdkafka", history, bootstrap, TOPIC, GROUP):
        # A little at a time, until each of them has got some.
        while {each.member for each in history.deliveries} != {"java", "go", "librdkafka"}:
            assert time.monotonic() < deadline, Counter(each.member for each in history.deliveries)
            work.produce(*(f"v{len(work.produced) + number}" for number in range(10)))
            work.wait_for_values(history, len(work.produced))
        history.wait(
            lambda heard: heard.acknowledged.total() == len(work.produced),
            "not all was acknowledged",
        )

    history.check()
    assert set(history.acknowledged.values()) == {1}
    assert history.counts() == {value: [1] for value in work.produced}
