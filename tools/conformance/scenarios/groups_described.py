"""Groups described, and deleted: DescribeGroups, ListGroups and DeleteGroups."""

from __future__ import annotations

from typing import Any

from ....protocol.api_keys import ApiKey
from ....protocol.messages import DeleteGroupsRequest, ListGroupsRequest
from ..scenario import NEWEST, scenario
from ..talk import Talk
from .classic_groups import describing, join, leaving, stable


@scenario(ApiKey.DESCRIBE_GROUPS)
def stable_group_is_described(talk: Talk) -> None:
    stable(talk, talk.name())
    talk.ask(describing(talk.name()), talk.version)


@scenario(ApiKey.DESCRIBE_GROUPS, "4-")
def group_of_a_static_member_is_described(talk: Talk) -> None:
    stable(talk, talk.name(), "the-one")
    talk.ask(describing(talk.name()), talk.version)


@scenario(ApiKey.DESCRIBE_GROUPS)
def group_that_waits_for_its_leader_is_described(talk: Talk) -> None:
    join(talk, talk.name())
    talk.ask(describing(talk.name()), talk.version)


@scenario(ApiKey.DESCRIBE_GROUPS)
def empty_group_is_described(talk: Talk) -> None:
    member = stable(talk, talk.name())
    talk.ask(leaving(5, member.group, (member.id, None)))
    talk.ask(describing(talk.name()), talk.version)


@scenario(ApiKey.DESCRIBE_GROUPS, cases={"unknown": ["absent-group"], "empty": [""], "none": []})
def groups_to_describe_are(talk: Talk, groups: list[str]) -> None:
    talk.ask(describing(*groups), talk.version)


@scenario(ApiKey.DESCRIBE_GROUPS)
def one_group_is_described_twice(talk: Talk) -> None:
    stable(talk, talk.name())
    talk.ask(describing(talk.name(), "absent-group", talk.name()), talk.version)


@scenario(ApiKey.DESCRIBE_GROUPS, "3-")
def operations_on_a_group_are_requested(talk: Talk) -> None:
    stable(talk, talk.name())
    talk.ask(describing(talk.name(), "absent-group", operations=True), talk.version)


def only(answer: Any, group: str) -> Any:
    """The answer without the groups that other scenarios have left."""
    answer.groups = [each for each in answer.groups if each.group_id == group]
    return answer


@scenario(ApiKey.LIST_GROUPS)
def groups_are_listed(talk: Talk) -> None:
    stable(talk, talk.name())
    only(talk.ask(ListGroupsRequest(), talk.version), talk.name())


@scenario(
    ApiKey.LIST_GROUPS,
    "4-",
    cases={
        "stable": ["Stable"],
        "another case": ["sTABLE"],
        "others": ["Empty", "Dead"],
        "unknown": ["Asleep"],
        "empty": [""],
    },
)
def groups_are_listed_by_state(talk: Talk, states: list[str]) -> None:
    stable(talk, talk.name())
    only(talk.ask(ListGroupsRequest(states_filter=states), talk.version), talk.name())


@scenario(
    ApiKey.LIST_GROUPS,
    "5-",
    cases={
        "classic": ["classic"],
        "another case": ["CLASSIC"],
        "consumer": ["consumer"],
        "both": ["classic", "consumer"],
        "unknown": ["romantic"],
    },
)
def groups_are_listed_by_type(talk: Talk, types: list[str]) -> None:
    stable(talk, talk.name())
    only(talk.ask(ListGroupsRequest(types_filter=types), talk.version), talk.name())


@scenario(ApiKey.LIST_GROUPS, NEWEST, cases={"connect": "connect", "odd": "?"})
def group_of_another_protocol_is_listed(talk: Talk, protocol_type: str) -> None:
    stable(talk, talk.name(), protocol_type=protocol_type)
    only(talk.ask(ListGroupsRequest()), talk.name())
    talk.ask(describing(talk.name()))


@scenario(ApiKey.DELETE_GROUPS)
def empty_group_is_deleted(talk: Talk) -> None:
    member = stable(talk, talk.name())
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name()]), talk.version)
    talk.ask(leaving(5, member.group, (member.id, None)))
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name()]), talk.version)
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name()]), talk.version)
    talk.ask(describing(talk.name()))


@scenario(
    ApiKey.DELETE_GROUPS,
    cases={"unknown": ["absent-group"], "empty": [""], "none": [], "twice": ["absent", "absent"]},
)
def groups_to_delete_are(talk: Talk, groups: list[str]) -> None:
    talk.ask(DeleteGroupsRequest(groups_names=groups), talk.version)
