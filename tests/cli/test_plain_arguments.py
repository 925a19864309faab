"""Command lines that are read without typer: typer must give the same arguments."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from unittest.mock import patch

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.cli.app import typed
from odradek.cli.commands import COMMANDS, load_command
from odradek.cli.declarations import CommandGroup
from odradek.cli.plain_arguments import declared_parameters, plain_call


def functions() -> dict[tuple[str, ...], Callable[..., object]]:
    """Every command by the words that name it."""
    found: dict[tuple[str, ...], Callable[..., object]] = {}
    for name in COMMANDS:
        command = load_command(name)
        if isinstance(command, CommandGroup):
            found |= {(name, each): function for each, function in command.commands.items()}
        else:
            found[name,] = command
    return found


FUNCTIONS = functions()


@functools.cache
def by_typer(words: tuple[str, ...]) -> Any:
    """A command of typer's that gives back what it would call the function with."""

    @functools.wraps(typed(FUNCTIONS[words]))
    def record(**arguments: object) -> dict[str, object]:
        return arguments

    app = typer.Typer(add_completion=False)
    app.command()(record)
    return typer.main.get_command(app)


def read_by_typer(words: tuple[str, ...], rest: list[str]) -> object:
    return by_typer(words)(args=rest, prog_name="odradek", standalone_mode=False)


ODD_WORDS = (
    *("", " ", "-", "--", "-1", "-10", "--help", "-h", "--no-such", "-nx", "-n5", "--partition=3"),
    *("x=y", "5", "0", "1_000", "\u0663", " 5", "+5", "5.5", "1e3", "nan", "true", "a:0,1", "PT1H"),
)


def values_of(type_: Any) -> tuple[str, ...]:
    """Words that may stand for a value of this type."""
    if get_origin(type_) is Literal:
        return (*get_args(type_), "LINES")
    return {
        int: ("0", "1", "17", "12345678901234567890"),
        float: ("0", "2.5", "100"),
        str: ("events", "a=b", "none"),
        Path: ("/nowhere", "file.txt", "."),
    }.get(type_, ())


@st.composite
def command_lines(draw: st.DrawFn) -> tuple[tuple[str, ...], list[str]]:
    """A command, and words after it that are often, but not always, as declared."""
    words = draw(st.sampled_from(sorted(FUNCTIONS)))
    declared = declared_parameters(FUNCTIONS[words])
    line: list[str] = []
    for each in draw(st.lists(st.sampled_from(declared), max_size=6)):
        value = draw(st.sampled_from((*values_of(each.type) * 4, *ODD_WORDS)))
        if each.flags:
            line.append(draw(st.sampled_from(sorted(each.flags))))
        elif each.words:
            name = draw(st.sampled_from(list(each.words)))
            line += draw(st.sampled_from([[name, value], [name, value], [f"{name}={value}"]]))
        else:
            line.append(value)
    for each in declared:  # so that most lines have what must be given
        if each.info.default is ... and draw(st.integers(0, 9)):
            value = draw(st.sampled_from(values_of(each.type)))
            line += [each.words[0], value] if each.words else [value]
    line += draw(st.one_of(st.just([]), st.lists(st.sampled_from(ODD_WORDS), max_size=1)))
    return words, line


def checked(examples: int) -> Callable[[], None]:
    """A test of so many command lines."""

    @settings(max_examples=examples, deadline=None)
    @given(command_lines(), st.sampled_from([None, "", "host:1", "-x"]))
    def test(command: tuple[tuple[str, ...], list[str]], in_environment: str | None) -> None:
        words, rest = command
        variables = {} if in_environment is None else {"ODRADEK_BOOTSTRAP_SERVER": in_environment}
        with patch.dict(os.environ, variables):
            plain = plain_call([*words, *rest])
            if plain is None:
                return  # typer reads it in any case
            assert plain.function is FUNCTIONS[words]
            assert plain.arguments == read_by_typer(words, rest)

    return test


test_what_is_read_without_typer_is_what_typer_reads = checked(examples=100)

test_many_lines_are_read_without_typer_as_typer_reads_them = pytest.mark.slow(checked(600))


def examples_in_help() -> list[str]:
    """The command lines that the help of commands shows, but for those of several programs."""
    lines = [
        line.strip()
        for function in FUNCTIONS.values()
        for line in (function.__doc__ or "").splitlines()
    ]
    return [
        line for line in lines if line.startswith("odradek ") and not set(line) & set("|>\\'\"")
    ]


@pytest.mark.parametrize("line", examples_in_help())
def test_examples_of_the_help_are_plain(line: str) -> None:
    words = line.split()[1:]
    plain = plain_call(words)
    assert plain is not None
    name = next(name for name, each in FUNCTIONS.items() if each is plain.function)
    assert plain.arguments == read_by_typer(name, words[len(name) :])


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["serve"], ["frobnicate"], ["topics"], ["topics", "frobnicate"]]
)
def test_what_names_no_command_is_left_to_typer(words: list[str]) -> None:
    assert plain_call(words) is None
