"""An operation: what a request may say, read from the function that carries it out.

    @operation("POST", "/topics/{topic}/partitions/{partition}/move-leader", "nothing")
    def move_leader(served: ServedCluster, topic: str, partition: int, to: int) -> None:
        \"\"\"Have another broker of the ISR lead a partition.\"\"\"

The names in the path, and the other parameters, are what a request gives: in the path, in the query
of a GET or DELETE, or as the fields of a JSON object. Their types are checked here, before anything
is done, and the documentation says the same, since it is written from the same table.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import NoneType
from typing import Any, NamedTuple, get_args, get_type_hints
from urllib.parse import parse_qsl, unquote

from ..faults.matcher import nearest

IN_PATH = re.compile(r"\{(\w+)\}")
REQUIRED = inspect.Parameter.empty
HAS_BODY = frozenset({"POST"})


class RequestRefused(Exception):
    """A request that is none of the table's; the text is a sentence for whoever sent it.

    Attributes:
        status: of the answer.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Kind(NamedTuple):
    """A type that an argument may have.

    Attributes:
        words: as documentation and refusals name it.
        includes: whether a value of JSON is one.
        parse: makes one of a text in a path or query; raises ValueError.
    """

    words: str
    includes: Callable[[object], bool]
    parse: Callable[[str], object]


def _parse_boolean(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def _is_object_of_strings(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _is_list_of_integers(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_integer, value))


KINDS: dict[object, Kind] = {
    bool: Kind("boolean", lambda value: isinstance(value, bool), _parse_boolean),
    int: Kind("integer", _is_integer, int),
    float: Kind("number", _is_number, float),
    str: Kind("string", lambda value: isinstance(value, str), str),
    dict[str, str]: Kind("object of strings", _is_object_of_strings, json.loads),
    Collection[int]: Kind("array of integers", _is_list_of_integers, json.loads),
}
"""By the annotation. Others of a union are for Python only, such as bytes."""


class Argument(NamedTuple):
    """What a request may give.

    Attributes:
        kinds: it is of one of these.
        default: `REQUIRED` where there is none.
    """

    name: str
    kinds: tuple[Kind, ...]
    default: object

    @property
    def words(self) -> str:
        """Its type."""
        return " or ".join(kind.words for kind in self.kinds)

    @property
    def is_required(self) -> bool:
        """Whether a request must give it."""
        return self.default is REQUIRED

    def check(self, value: object) -> object:
        """A value of JSON, if it is one of this argument's.

        Raises:
            RequestRefused: it is not.
        """
        if value is None and self.default is None:
            return None
        if any(kind.includes(value) for kind in self.kinds):
            return value
        shown = json.dumps(value)[:80]
        raise RequestRefused(400, f"{self.name} is a value of type {self.words}, not {shown}")

    def parse(self, text: str) -> object:
        """A value from a path or query.

        Raises:
            RequestRefused: it is none of this argument's.
        """
        for kind in self.kinds:
            try:
                value = kind.parse(text)
            except (ValueError, KeyError, RecursionError):
                continue
            if kind.includes(value):
                return value
        raise RequestRefused(400, f"{self.name} is a value of type {self.words}, not {text[:80]!r}")


class Choice(NamedTuple):
    """An argument that names one of several functions, each of which has arguments of its own.

    Attributes:
        field: the argument's name; the operation's function is given what the chosen one returns.
        functions: by the names that requests have for them.
    """

    field: str
    functions: Mapping[str, Callable[..., Any]]


class Operation(NamedTuple):
    """An entry of the table.

    Attributes:
        name: its function's.
        method: of HTTP.
        path: with the names of arguments in braces.
        answers: what the answer holds, in words.
        function: takes the `ServedCluster` first.
        arguments: of the function, but for a choice.
        choice: what it is to do, where that is one of several things.
        changes_processes: whether only one such operation may be under way.
    """

    name: str
    method: str
    path: str
    answers: str
    function: Callable[..., Any]
    arguments: dict[str, Argument]
    choice: Choice | None
    changes_processes: bool

    @property
    def summary(self) -> str:
        """What it does: its function's docstring."""
        return inspect.getdoc(self.function) or ""

    @property
    def pattern(self) -> re.Pattern[str]:
        """What paths are its own."""
        return re.compile(IN_PATH.sub(r"(?P<\1>[^/]+)", self.path))

    def read_arguments(self, in_path: Mapping[str, str], query: str, body: bytes) -> dict[str, Any]:
        """What the function is to be given.

        Args:
            in_path: what `pattern` has found.
            query: what follows the question mark.
            body: a JSON object; empty: no arguments.

        Raises:
            RequestRefused: it is nothing that the operation takes.
            ValueError, TypeError: what was chosen refuses its arguments.
        """
        given = _object_of(body) if self.method in HAS_BODY else {}
        if self.method not in HAS_BODY and body:
            raise RequestRefused(400, f"{self.method} {self.path} takes its arguments in the query")
        chosen, theirs = self._choose(given)
        known = {**theirs, **self.arguments}
        if self.method in HAS_BODY:
            if query:
                raise RequestRefused(
                    400, f"{self.method} {self.path} takes its arguments as a JSON object"
                )
            self._require_known(given, known)
            values = {name: known[name].check(value) for name, value in given.items()}
        else:
            pairs = dict(parse_qsl(query, keep_blank_values=True))
            self._require_known(pairs, known)
            values = {name: known[name].parse(text) for name, text in pairs.items()}
        values |= {name: known[name].parse(unquote(text)) for name, text in in_path.items()}
        missing = [each.name for each in known.values() if each.is_required]
        for name in missing:
            if name not in values:
                raise RequestRefused(400, f"{self.name} needs {name}, of type {known[name].words}")
        if self.choice is None or chosen is None:
            return values
        made = chosen(**{name: value for name, value in values.items() if name in theirs})
        return {name: value for name, value in values.items() if name not in theirs} | {
            self.choice.field: made
        }

    def _choose(
        self, given: dict[str, Any]
    ) -> tuple[Callable[..., Any] | None, dict[str, Argument]]:
        """Take out of a request what it chooses; returns the function and its arguments."""
        if self.choice is None:
            return None, {}
        field, functions = self.choice
        name = given.pop(field, None)
        if not isinstance(name, str) or name not in functions:
            near = f"; did you mean {nearest(name, functions)!r}?" if isinstance(name, str) else ""
            shown = "nothing" if name is None else json.dumps(name)[:80]
            raise RequestRefused(
                400, f"{field} is one of {', '.join(functions)}, not {shown}{near}"
            )
        return functions[name], arguments_of(functions[name])

    def _require_known(self, given: Iterable[str], known: Mapping[str, Argument]) -> None:
        taken = [name for name in known if f"{{{name}}}" not in self.path]
        for name in given:
            if name in taken:
                continue
            if not taken:
                raise RequestRefused(400, f"{self.name} takes no arguments, and so no {name!r}")
            raise RequestRefused(
                400,
                f"unknown field {name[:80]!r}: did you mean {nearest(name[:80], taken)!r}? "
                f"{self.name} takes {', '.join(taken)}",
            )


class OperationTable:
    """The operations, in the order in which they are declared."""

    def __init__(self) -> None:
        self._operations: list[tuple[Operation, re.Pattern[str]]] = []

    def __iter__(self) -> Iterator[Operation]:
        return (operation for operation, _ in self._operations)

    def operation(
        self,
        method: str,
        path: str,
        answers: str,
        choice: Choice | None = None,
        *,
        changes_processes: bool = False,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Have a function carry out requests; see `Operation`."""

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            arguments = arguments_of(function, {"served", *([choice.field] if choice else [])})
            made = Operation(
                function.__name__,
                method,
                path,
                answers,
                function,
                arguments,
                choice,
                changes_processes,
            )
            self._operations.append((made, made.pattern))
            return function

        return add

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]]:
        """The operation of a request, and what its path gives.

        Raises:
            RequestRefused: there is none; the sentence names what there is.
        """
        others = []
        for operation, pattern in self._operations:
            found = pattern.fullmatch(path)
            if found is not None and operation.method == method:
                return operation, found.groupdict()
            if found is not None:
                others.append(operation.method)
        if others:
            raise RequestRefused(405, f"{path[:80]} takes {', '.join(others)}, not {method[:20]}")
        near = nearest(path[:80], [operation.path for operation, _ in self._operations])
        raise RequestRefused(404, f"there is nothing at {path[:80]}: did you mean {near}?")


def arguments_of(
    function: Callable[..., Any], but: Collection[str] = frozenset()
) -> dict[str, Argument]:
    """What a function takes, by name; what JSON cannot say is left out.

    Args:
        function: annotated.
        but: parameters that requests do not give.
    """
    hints = get_type_hints(function)
    found: dict[str, Argument] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in but:
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            (named,) = get_args(
                hints[name]
            )  # Unpack of a TypedDict, all of whose keys are optional
            for key, hint in get_type_hints(named).items():
                if key not in but:
                    found[key] = Argument(key, _kinds(hint), None)
        elif kinds := _kinds(hints[name]):
            found[name] = Argument(name, kinds, parameter.default)
    return found


def _kinds(hint: Any) -> tuple[Kind, ...]:
    """The kinds of an annotation, in the order of `KINDS`."""
    members = {hint, *get_args(hint)} if hint not in KINDS else {hint}
    members.discard(NoneType)
    kinds = [kind for member, kind in KINDS.items() if member in members]
    return tuple(kinds)


def _object_of(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(400, f"the body is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise RequestRefused(400, 'the body is a JSON object, such as {"seconds": 60}')
    return given
