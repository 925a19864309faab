"""What a scenario is, and the list of all of them.

    @scenario(ApiKey.DELETE_TOPICS)
    def deleted_topic_is_unknown(talk: Talk) -> None: ...

is one scenario, played in every version of DeleteTopics. With `cases` a function is several
scenarios, one for each: it gets the case as its second argument.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from ...protocol.api_keys import ApiKey
from .talk import Talk, served_versions

ScriptT = TypeVar("ScriptT", bound=Callable[..., None])
NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9._-]+")

NEWEST = "newest"
WORDS_CHARS_MAX = 150
"""A topic's name may have 249, and more than this goes into it."""


class Scenario(NamedTuple):
    """One script.

    Attributes:
        api_key: the API that it is about.
        family: the file that it stands in.
        title: what it shows.
        versions: of the API, in which it is played.
        script: says it to a broker.
        needs_authorizer: whether it is for brokers of which ACLs say who may do what.
    """

    api_key: ApiKey
    family: str
    title: str
    versions: Sequence[int]
    script: Callable[[Talk], None]
    needs_authorizer: bool = False

    def name(self, version: int) -> str:
        """The name of the scenario in one version, which is good for a topic."""
        words = NOT_IN_A_NAME.sub("-", self.title)[:WORDS_CHARS_MAX]
        return f"{self.api_key.name.lower()}-{words}-v{version}"


SCENARIOS: list[Scenario] = []


def scenario(
    api_key: ApiKey,
    versions: str | None = None,
    *,
    cases: Mapping[str, Any] | None = None,
    needs_authorizer: bool = False,
) -> Callable[[ScriptT], ScriptT]:
    """Register the decorated function as a scenario, or one for each of its cases.

    Args:
        api_key: the API that it is about.
        versions: in which it is played, such as "0-4", "2,5" or `NEWEST`; by default every one
            that odradek serves.
        cases: what the function gets as its second argument, by a title for each.
        needs_authorizer: whether it is for brokers of which ACLs say who may do what.
    """

    def register(script: ScriptT) -> ScriptT:
        family = script.__module__.rpartition(".")[2]
        base = script.__name__.replace("_", " ")
        played = _parse(api_key, versions)
        scripts: dict[str, Callable[[Talk], None]] = {base: script}
        if cases is not None:
            scripts = {f"{base}: {title}": _bound(script, case) for title, case in cases.items()}
        for title, each in scripts.items():
            SCENARIOS.append(Scenario(api_key, family, title, played, each, needs_authorizer))
        return script

    return register


def _bound(script: Callable[[Talk, Any], None], case: Any) -> Callable[[Talk], None]:
    return lambda talk: script(talk, case)


def _parse(api_key: ApiKey, versions: str | None) -> Sequence[int]:
    served = served_versions()[api_key]
    if versions is None:
        return served
    if versions == NEWEST:
        return served[-1:]
    return tuple(_numbers(versions, served))


def _numbers(text: str, served: range) -> Iterator[int]:
    for part in text.split(","):
        first, dash, last = part.partition("-")
        end = int(last) if last else served[-1] if dash else int(first)
        yield from range(int(first), end + 1)


@cache
def all_scenarios(*, needs_authorizer: bool = False) -> list[Scenario]:
    """Every scenario, in the order of the files' names and within a file as written.

    Args:
        needs_authorizer: those for brokers with an authorizer, in place of those without.
    """
    package = import_module(".scenarios", __package__)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
    chosen = [each for each in SCENARIOS if each.needs_authorizer == needs_authorizer]
    return sorted(chosen, key=lambda each: each.family)
