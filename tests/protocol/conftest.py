"""What the tests of the protocol share: Kafka's own data, and made-up values of messages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import construct
import pytest
from hypothesis import strategies as st

from odradek.protocol.codec import wire
from odradek.protocol.codec.wire import ResolvedStruct

DATA = Path(__file__).parent / "data"

INTEGERS = {
    "b": st.integers(-(2**7), 2**7 - 1),
    "h": st.integers(-(2**15), 2**15 - 1),
    "H": st.integers(0, 2**16 - 1),
    "l": st.integers(-(2**31), 2**31 - 1),
    "L": st.integers(0, 2**32 - 1),
    "q": st.integers(-(2**63), 2**63 - 1),
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.just("x" * 130)
BLOB = st.binary(max_size=6) | st.just(b"\x01" * 130)


def strategy_of(wire_type: construct.Construct) -> st.SearchStrategy[Any]:
    """Values of a resolved type, of every kind that its bytes can say."""
    if isinstance(wire_type, construct.Renamed):
        return strategy_of(wire_type.subcon)
    if wire_type is construct.Flag:
        return st.booleans()
    if isinstance(wire_type, construct.Bytes):
        return st.binary(min_size=16, max_size=16)
    if isinstance(wire_type, construct.FormatField):
        form = wire_type.fmtstr[-1]
        return st.floats(allow_nan=False) if form == "d" else INTEGERS[form]
    if isinstance(wire_type, wire.Presence):
        return st.none() | strategy_of(wire_type.content)
    if isinstance(wire_type, ResolvedStruct):
        return struct_strategy(wire_type)
    assert isinstance(wire_type, wire.Sized)
    if isinstance(wire_type, wire.Text):
        content = TEXT
    elif isinstance(wire_type, wire.Repeated):
        content = st.lists(strategy_of(wire_type.element), max_size=2)
    else:
        content = BLOB
    return st.none() | content if wire_type.nullable else content


def struct_strategy(resolved: ResolvedStruct) -> st.SearchStrategy[Any]:
    """Values of a struct at one version, with tagged fields known and unknown."""
    fields = {}
    for subcon in resolved.subcons:
        if subcon.name == wire.TAGGED_FIELDS:
            for field in subcon.subcon.fields.values():
                fields[field.name] = strategy_of(field)
            unknown = st.dictionaries(st.integers(1000, 2**20), BLOB, min_size=1, max_size=2)
            fields["unknown_tags"] = st.none() | st.none() | unknown
        else:
            fields[subcon.name] = strategy_of(subcon)
    return st.builds(resolved.declaration, **fields)


@pytest.fixture(scope="session")
def value_strategy() -> Callable[[ResolvedStruct], st.SearchStrategy[Any]]:
    """A function from a message's version to the strategy of its values."""
    return struct_strategy


@pytest.fixture(scope="session")
def kafka_rows() -> Callable[[str], list[list[str]]]:
    """A function from the name of a data file to its rows of fields."""

    @cache
    def rows(name: str) -> list[list[str]]:
        lines = (DATA / name).read_text().splitlines()
        return [line.split("\t") for line in lines if not line.startswith("#")]

    return rows
