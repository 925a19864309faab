"""The quickly made `NamedTuple` is what that of `typing` is."""

from __future__ import annotations

import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

from odradek.common.named_tuple import NamedTuple

ItemT = TypeVar("ItemT")


class Quick(NamedTuple):
    """A class with all that a body may hold."""

    name: str
    sizes: list[int]
    rest: Quick | None = None
    """Of the same class, which is not made yet."""

    @property
    def total(self) -> int:
        """Of the sizes, and of the rest's."""
        return sum(self.sizes) + (0 if self.rest is None else self.rest.total)

    @classmethod
    def empty(cls) -> Quick:
        """One without sizes."""
        return cls("", [])


class Slow(typing.NamedTuple):
    """A class with all that a body may hold."""

    name: str
    sizes: list[int]
    rest: Slow | None = None
    """Of the same class, which is not made yet."""

    @property
    def total(self) -> int:
        """Of the sizes, and of the rest's."""
        return sum(self.sizes) + (0 if self.rest is None else self.rest.total)

    @classmethod
    def empty(cls) -> Slow:
        """One without sizes."""
        return cls("", [])


class QuickPair(NamedTuple, Generic[ItemT]):
    item: ItemT
    make: Callable[[], ItemT]


def seen(made: Any) -> list[object]:
    """What can be told of a class, but for its own name."""
    value = made("a", [1, 2], rest=made("b", [3]))
    name, sizes, _ = value
    return [
        made._fields,
        made._field_defaults,
        made.__match_args__,
        made.__doc__,
        made.__annotations__.keys(),
        made.__module__,
        made.__mro__[-2:],
        (name, sizes, value[0], len(value), value.total),
        made.empty() == ("", [], None),
        value._replace(name="c")[:2],
        value._asdict().keys(),
        repr(value).replace(made.__name__, "X"),
        hasattr(value, "__dict__"),
        type(made._make(["a", [], None])) is made,
    ]


def test_a_class_is_as_one_of_typing() -> None:
    assert seen(Quick) == seen(Slow)


@pytest.mark.parametrize("arguments", [(), ("a",), ("a", [], None, 1)])
def test_a_call_that_does_not_fit_the_fields_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Quick(*arguments)


def test_values_are_pickled_by_their_class() -> None:
    value = Quick("a", [1], Quick.empty())
    assert type(pickle.loads(pickle.dumps(value))) is Quick
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_class_may_be_generic() -> None:
    pair = QuickPair[int](1, lambda: 2)
    assert (pair.item, pair.make()) == (1, 2)
    assert QuickPair.__orig_bases__[1] == Generic[ItemT]  # type: ignore[attr-defined]


def test_a_start_makes_no_other() -> None:
    """Each class by that of `typing` takes 0.1 ms more; `runtime` knows no other."""
    code = (
        "import typing; make = typing.NamedTupleMeta.__new__; made = []; "
        "typing.NamedTupleMeta.__new__ = lambda cls, name, bases, body: ("
        "made.append(body['__module__']), make(cls, name, bases, body))[1]; "
        "import odradek.cli.serve.command, odradek.broker.start; "
        "ours = {each for each in made if each.startswith('odradek.')}; "
        "assert ours == {'odradek.runtime.descriptors'}, ours"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
