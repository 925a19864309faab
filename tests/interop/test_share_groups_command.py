"""`odradek groups` on share groups, of odradek's brokers and of Apache Kafka's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType
from confluent_kafka.admin import AdminClient, NewTopic
from support.kafka_process import KafkaProcess
from support.share_consumers import (
    QUICK_SHARE_GROUPS,
    SECONDS_MAX,
    produce,
    set_group,
    share_member,
    take,
)

from odradek.cli.main import main
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

SETTINGS = {
    **QUICK_SHARE_GROUPS,
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
Groups = Callable[..., list[dict[str, object]]]


@pytest.fixture(scope="module", params=["odradek", "kafka"])
def bootstrap(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a broker of either kind."""
    data = tmp_path_factory.mktemp(request.param) / "data"
    with (
        KafkaProcess(request.getfixturevalue("kafka_libs"), data, settings=SETTINGS)
        if request.param == "kafka"
        else BrokerProcess(data, settings=SETTINGS)
    ) as process:
        yield process.bootstrap


@pytest.fixture
def name(bootstrap: str, request: pytest.FixtureRequest) -> str:
    """A topic of two partitions, with ten records in the first, and a group of the same name."""
    name = request.node.originalname.removeprefix("test_").replace("_", "-")
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    (made,) = admin.create_topics([NewTopic(name, 2, 1)]).values()
    made.result(SECONDS_MAX)
    set_group(bootstrap, name)
    produce(bootstrap, name, [f"v{number}" for number in range(10)])
    return name


@pytest.fixture
def failing(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run `odradek groups ...`, which fails; returns what it says of that."""

    def run(*arguments: str) -> str:
        capsys.readouterr()
        assert main(["groups", *arguments, "--bootstrap-server", bootstrap]) == 1
        return capsys.readouterr().err

    return run


@pytest.fixture
def groups(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Groups:
    """Run `odradek groups ...`; with --json, returns its objects."""

    def run(*arguments: str) -> list[dict[str, object]]:
        capsys.readouterr()
        code = main(["groups", *arguments, "--bootstrap-server", bootstrap])
        out, err = capsys.readouterr()
        assert code == 0, err
        return [json.loads(line) for line in out.splitlines()] if "--json" in arguments else []

    return run


def read(bootstrap: str, name: str, count: int) -> None:
    """Have a member accept the first records, and leave."""
    accept, release = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE
    with share_member(bootstrap, name, name) as member:
        take(member, 10, lambda each: accept if each.offset() < count else release)


def offsets(groups: Groups, name: str) -> dict[object, tuple[object, object, object]]:
    """Start, end and lag by partition."""
    rows = groups("describe", name, "--json")
    return {row["partition"]: (row["start"], row["end"], row["lag"]) for row in rows}


def test_it_lists_and_describes(
    bootstrap: str, name: str, groups: Groups, capsys: pytest.CaptureFixture[str]
) -> None:
    client_ids = iter("ab")

    def member() -> AbstractContextManager[Any]:
        return share_member(bootstrap, name, name, **{"client.id": next(client_ids)})

    with member() as one, ExitStack() as others:
        take(one, 10)
        others.enter_context(member())

        def assigned() -> list[dict[str, object]]:
            rows = groups("describe", name, "--members", "--json")
            counts = [len(each["assignment"]) for each in rows]  # type: ignore[arg-type]  # lists
            return rows if counts == [1, 1] else []

        members = wait_until(assigned, SECONDS_MAX)
        assert {each["client"] for each in members} == {"a", "b"}
        assert {each["type"] for each in members} == {"share"}

        (listed,) = [each for each in groups("list", "--json") if each["group"] == name]
        assert (listed["type"], listed["protocol"], listed["state"]) == ("share", "share", "Stable")
        assert name in {each["group"] for each in groups("list", "--type", "share", "--json")}
        assert name not in {each["group"] for each in groups("list", "--type", "classic", "--json")}
        (state,) = groups("describe", name, "--state", "--json")
        assert (state["type"], state["assignor"], state["members"]) == ("share", "simple", 2)
        described = groups("describe", name, "--json")
        assert {f"{name}:{row['partition']}": row["members"] for row in described} == {
            partition: [each["member"] for each in members if partition in each["assignment"]]  # type: ignore[operator]  # a list
            for partition in (f"{name}:0", f"{name}:1")
        }
        capsys.readouterr()
        assert main(["groups", "describe", name, "--bootstrap-server", bootstrap]) == 0
        assert f"{name}: Stable, 2 members" in capsys.readouterr().out


def test_offsets_are_reset_after_they_were_shown(bootstrap: str, name: str, groups: Groups) -> None:
    read(bootstrap, name, 4)
    assert offsets(groups, name)[0][2] == 6  # its start is stored with the next change
    options = ("reset-offsets", name, "--topic", f"{name}:0")

    groups(*options, "--to-offset", "4", "--execute")
    (row,) = groups(*options, "--to-earliest", "--json")
    assert (row["committed"], row["new"], row["executed"]) == (4, 0, False)
    assert offsets(groups, name)[0] == (4, 10, 6)
    groups(*options, "--shift-by", "3", "--execute")
    assert offsets(groups, name)[0] == (7, 10, 3)
    groups("reset-offsets", name, "--topic", name, "--to-earliest", "--execute")
    assert offsets(groups, name)[0] == (0, 10, 10)
    groups("reset-offsets", name, "--all-topics", "--to-latest", "--execute")
    assert offsets(groups, name)[0] == (10, 10, 0)
    groups(*options, "--to-offset", "8", "--execute")
    with share_member(bootstrap, name, name) as member:
        assert [each.value() for each in take(member, 2)] == [b"v8", b"v9"]


def test_offsets_of_topics_and_groups_are_deleted(
    bootstrap: str, name: str, groups: Groups, failing: Callable[..., str]
) -> None:
    read(bootstrap, name, 10)
    assert "share group, which forgets whole topics" in failing(
        "delete-offsets", name, "--topic", f"{name}:0"
    )
    groups("delete-offsets", name, "--topic", name)
    assert groups("describe", name, "--json") == []
    assert "the group has no offset of it" in failing("delete-offsets", name, "--topic", name)
    groups("delete", name)
    assert name not in {each["group"] for each in groups("list", "--json")}
    assert "there is no such group" in failing("describe", name)
    assert "there is no such group" in failing("delete-offsets", name, "--topic", name)


def test_a_group_with_members_is_left_alone(
    bootstrap: str, name: str, failing: Callable[..., str]
) -> None:
    with share_member(bootstrap, name, name) as member:
        take(member, 10)
        to_earliest = ("--topic", name, "--to-earliest", "--execute")
        for arguments in (
            ("reset-offsets", name, *to_earliest),
            ("delete-offsets", name, "--topic", name),
            ("delete", name),
        ):
            refusal = failing(*arguments)
            assert "has members" in refusal
            assert "stop its consumers" in refusal
            assert "Traceback" not in refusal
