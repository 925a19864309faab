"""Command lines without anything unusual, read straight from the signatures of the commands.

Typer takes long to import, and builds validators of another library for every option before it
calls a command: together longer than the command itself. What is declared says all there is to know
about a command line such as `topics list --bootstrap-server HOST:PORT`, so that one is read here.
Whatever is not plain (a mistake, options joined in one word, values that begin with a dash) is left
to typer, which gives the same arguments where it finds no mistake: a test compares the two.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from .commands import COMMANDS, load_command
from .declarations import CommandGroup, Declaration, DeclaredParameter, Option, parameters_of

INTEGER = re.compile(r"-?[0-9]{1,18}")
NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


class NotPlainError(Exception):
    """This command line is typer's to read."""


class PlainCall(NamedTuple):
    """A command, and what to call it with."""

    function: Callable[..., object]
    arguments: dict[str, Any]


class Declared(NamedTuple):
    """One parameter of a command's function, and what a command line may say of it.

    Attributes:
        flags: for a switch, the words that set it, and to what.
        words: the option's names; empty for an argument.
    """

    name: str
    info: Declaration
    type: Any
    is_list: bool
    words: Sequence[str]
    flags: dict[str, bool]


def plain_call(arguments: Sequence[str]) -> PlainCall | None:
    """What a command line calls; None where typer has to read it.

    Args:
        arguments: without the program's name.
    """
    if not arguments or arguments[0] not in COMMANDS:
        return None
    rest = list(arguments[1:])
    function = load_command(arguments[0])
    if isinstance(function, CommandGroup):
        function = function.commands.get(rest.pop(0) if rest else "")
    if function is None:
        return None
    try:
        return PlainCall(function, _read(declared_parameters(function), rest))
    except NotPlainError:
        return None


def declared_parameters(function: Callable[..., object]) -> list[Declared]:
    """The parameters of a command."""
    return [_declare(each) for each in parameters_of(function)]


def _declare(parameter: DeclaredParameter) -> Declared:
    name, type_, info = parameter
    if NoneType in get_args(type_):
        (type_,) = (each for each in get_args(type_) if each is not NoneType)
    words: Sequence[str] = ()
    if isinstance(info, Option):
        option = name.replace("_", "-")
        words = info.names or (f"--{option}/--no-{option}" if type_ is bool else f"--{option}",)
    flags: dict[str, bool] = {}
    if type_ is bool:
        for word in words:
            on, slash, off = word.partition("/")
            flags |= {on: True, off: False} if slash else {on: True}
    is_list = get_origin(type_) is list
    return Declared(name, info, get_args(type_)[0] if is_list else type_, is_list, words, flags)


def _read(declared: Sequence[Declared], words: list[str]) -> dict[str, Any]:
    """The arguments of the function. Raises NotPlainError."""
    given: dict[str, list[Any]] = {each.name: [] for each in declared}
    flags = {word: (each, value) for each in declared for word, value in each.flags.items()}
    options = {word: each for each in declared if not each.flags for word in each.words}
    values: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("-"):
            values.append(word)
        elif word in flags:
            option, value = flags[word]
            given[option.name].append(value)
        else:
            name, equals, text = word.partition("=")
            found = options.get(name)
            if found is None or (equals and not name.startswith("--")):
                raise NotPlainError
            given[found.name].append(_value(found, text if equals else next(remaining, "-")))
    _place(values, [each for each in declared if not each.words], given)
    return {each.name: _taken(each, given[each.name]) for each in declared}


def _place(values: list[str], arguments: list[Declared], given: dict[str, list[Any]]) -> None:
    """Give words that are no options to arguments; the last may take several."""
    for each in arguments:
        count = len(values) if each.is_list else 1
        given[each.name] += [_value(each, text) for text in values[:count]]
        del values[:count]
    if values:
        raise NotPlainError


def _taken(parameter: Declared, values: list[Any]) -> Any:
    """The value of a parameter: the last that was given, all of a list's, or the default."""
    variable = parameter.info.envvar
    if variable is not None and not values:
        if parameter.is_list:
            raise NotPlainError
        text = os.environ.get(variable)
        values = [_value(parameter, text)] if text else []
    if values:
        return values if parameter.is_list else values[-1]
    if parameter.info.default is ...:  # it must be given
        raise NotPlainError
    return parameter.info.default


def _value(parameter: Declared, text: str) -> Any:
    """A value of the declared type. Raises NotPlainError for what is none, or not simply one."""
    type_, info = parameter.type, parameter.info
    value: Any
    if type_ in (int, float):
        if not (INTEGER if type_ is int else NUMBER).fullmatch(text):
            raise NotPlainError
        value = type_(text)
        if (info.min is not None and value < info.min) or (
            info.max is not None and value > info.max
        ):
            raise NotPlainError
        return value
    if text.startswith("-"):
        raise NotPlainError
    if type_ is str:
        return text
    if type_ is Path:
        return Path(text)
    if get_origin(type_) is Literal and text in get_args(type_):
        return text
    raise NotPlainError
