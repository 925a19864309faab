"""What may stand where the cursor is: commands, options, choices, and names of the cluster."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args, get_origin

from ..commands import COMMANDS, load_command
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, with_client
from ..declarations import CommandGroup
from ..plain_arguments import Declared, declared_parameters

if TYPE_CHECKING:
    from ...client.client import KafkaClient

SECONDS_MAX = 1.5
"""A shell waits no longer."""

BASH_WORD_BREAKS = ":="
"""Where bash begins another word: what is in front of it is not repeated."""

TOPICS = frozenset({"topic", "topics", "partitions"})
GROUPS = frozenset({"group", "groups"})
SETTINGS = frozenset({"config", "unset", "settings", "names"})
"""The parameters of commands that name these."""

Names = Callable[["KafkaClient"], Awaitable[list[str]]]
"""Finds names by a client."""


def complete(shell: str, line: str) -> int:
    """Print what may complete a line, each in a line of its own; returns the exit code.

    Whatever goes wrong, nothing is printed: there is no place for an error.

    Args:
        shell: bash, zsh or fish.
        line: from its beginning to the cursor.
    """
    signal.signal(signal.SIGALRM, lambda number, frame: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
    try:
        words = _words(line)
        last = words.pop()
        found = [each for each in candidates(words[1:], last) if each.startswith(last)]
    except Exception:  # a completion has nowhere to say what went wrong
        return 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    cut = 0
    if shell == "bash":
        cut = max(last.rfind(character) for character in BASH_WORD_BREAKS) + 1
    for each in sorted(set(found)):
        print(each[cut:])
    return 0


def _words(line: str) -> list[str]:
    """The words of a line; the last is the one that is being typed, and may be empty."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # within quotes
        words = line.split(" ")
    return [*words, ""] if not words or line[-1:].isspace() else words


def candidates(words: Sequence[str], last: str) -> list[str]:
    """What may stand for the last word of a command line.

    Args:
        words: before it, without the program's name.
        last: what there is of it.
    """
    if not words:
        return ["serve", "--help", "--version", *COMMANDS]
    command = load_command(words[0]) if words[0] in COMMANDS else None
    rest = list(words[1:])
    if isinstance(command, CommandGroup):
        if not rest:
            return ["--help", *command.commands]
        command = command.commands.get(rest.pop(0))
    if command is None:
        return []
    declared = declared_parameters(command)
    by_word = {word: each for each in declared if not each.flags for word in each.words}
    if rest and rest[-1] in by_word:
        return _values(by_word[rest[-1]], rest, by_word)
    if last.startswith("-"):
        return ["--help", *by_word, *(word for each in declared for word in each.flags)]
    place = sum(
        not word.startswith("-") and (not index or rest[index - 1] not in by_word)
        for index, word in enumerate(rest)
    )
    arguments = [each for each in declared if not each.words]
    if not arguments:
        return []
    return _values(arguments[min(place, len(arguments) - 1)], rest, by_word)


def _values(parameter: Declared, words: Sequence[str], by_word: dict[str, Declared]) -> list[str]:
    """The values that a parameter may have, as far as they can be known."""
    if get_origin(parameter.type) is Literal:
        return list(get_args(parameter.type))
    if parameter.type is not str:
        return []
    if parameter.name in TOPICS:
        return _of_cluster(_topics, words, by_word)
    if parameter.name in GROUPS:
        return _of_cluster(_groups, words, by_word)
    if parameter.name in SETTINGS:
        names = _of_cluster(_settings(words, by_word), words, by_word)
        is_pair = "=" in (parameter.info.metavar or "")
        return [f"{name}=" if is_pair else name for name in names]
    return []


def _given(name: str, words: Sequence[str], by_word: dict[str, Declared]) -> str | None:
    """The value that the words before give an option."""
    for option, value in pairwise(words):
        if option in by_word and by_word[option].name == name:
            return value
    return None


def _of_cluster(work: Names, words: Sequence[str], by_word: dict[str, Declared]) -> list[str]:
    config = _given("command_config", words, by_word) or os.environ.get("ODRADEK_COMMAND_CONFIG")
    bootstrap = _given("bootstrap_server", words, by_word)
    bootstrap = bootstrap or os.environ.get("ODRADEK_BOOTSTRAP_SERVER") or DEFAULT_BOOTSTRAP_SERVER
    return with_client(bootstrap, work, Path(config) if config else None)


async def _topics(client: KafkaClient) -> list[str]:
    from ...client.admin.admin import Admin

    return await Admin(client).list_topics()


async def _groups(client: KafkaClient) -> list[str]:
    from ...client.admin.group_admin import GroupAdmin

    return [each.group_id for each in await GroupAdmin(client).list_groups()]


def _settings(words: Sequence[str], by_word: dict[str, Declared]) -> Names:
    """The names of a topic's settings, or of those of whatever else the words name."""

    async def ask(client: KafkaClient) -> list[str]:
        from ...client.admin.admin import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE, Admin

        admin = Admin(client)
        broker, group = (_given(name, words, by_word) for name in ("broker", "group"))
        if broker is not None or "--broker-defaults" in words:
            node = broker if broker is not None else str(min(client.cluster.nodes))
            return list(await admin.describe_configs(node, BROKER_RESOURCE))
        if group is not None:
            return list(await admin.describe_configs(group, GROUP_RESOURCE))
        named = _given("topic", words, by_word) or next(
            (word for word in words if not re.match("-", word)), None
        )
        topics = await admin.list_topics()
        topic = named if named in topics else topics[0]
        return list(await admin.describe_configs(topic, TOPIC_RESOURCE))

    return ask
