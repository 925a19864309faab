"""What commands declare of their options and arguments, for whatever reads it.

Typer has the same, but takes longer to import than most commands take to run, so it is left to
command lines that only it can read: `app` declares to it what is declared here.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from inspect import Parameter, signature
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


class Declaration:
    """What is declared of a parameter beside its type, in `Annotated`.

    Args:
        names: of an option, such as "--config" and "-c"; without any it is called as the parameter.
        help: what it is for.
        metavar: what stands for a value.
        min: the least that a number may be.
        max: the most that it may be.
        envvar: a variable of the environment that gives the value where the command line does not.
        show_default: whether the help shows the default, or what it shows in its place.

    Attributes:
        default: the parameter's; `...` where a value must be given.
    """

    def __init__(
        self,
        *names: str,
        help: str | None = None,
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        envvar: str | None = None,
        show_default: bool | str = True,
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.min = min
        self.max = max
        self.envvar = envvar
        self.show_default = show_default
        self.default: Any = ...


class Option(Declaration):
    """A parameter that is given by a name."""


class Argument(Declaration):
    """A parameter that is given by its place."""


class DeclaredParameter(NamedTuple):
    """A parameter of a command's function."""

    name: str
    type: Any
    declaration: Declaration


def parameters_of(function: Callable[..., object]) -> list[DeclaredParameter]:
    """The parameters of a command's function, each with its type as it was declared."""
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in signature(function).parameters.items():
        type_, declaration = get_args(hints[name])
        declaration = copy(declaration)
        if parameter.default is not Parameter.empty:
            declaration.default = parameter.default
        found.append(DeclaredParameter(name, type_, declaration))
    return found


class CommandGroup:
    """Commands under one name, such as `odradek topics`.

    Args:
        help: what they are for.

    Attributes:
        commands: their functions by their names.
    """

    def __init__(self, *, help: str) -> None:
        self.help = help
        self.commands: dict[str, Callable[..., object]] = {}

    def command(self, name: str) -> Callable[[FunctionT], FunctionT]:
        """Have a function be a command, as a decorator does."""

        def add(function: FunctionT) -> FunctionT:
            self.commands[name] = function
            return function

        return add


class Exit(Exception):
    """Ends a command without a word.

    Args:
        exit_code: of the process.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code
