"""Work in steps: what it keeps its items in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.runtime import steps
from odradek.runtime.steps import DictInParts


@given(st.lists(st.tuples(st.integers(0, 20), st.integers())))
def test_a_dictionary_in_parts_holds_what_a_dictionary_does(items: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "ITEMS_PER_PART", 3)
        parts: DictInParts[int, int] = DictInParts()
        for key, item in items:
            parts[key] = item
    found = []
    while parts:
        found.append(parts.popitem())
    assert found[::-1] == list(dict(items).items())
    with pytest.raises(KeyError):
        parts.popitem()


def test_no_part_of_a_dictionary_grows_beyond_its_bound() -> None:
    parts: DictInParts[int, None] = DictInParts()
    for key in range(2 * steps.ITEMS_PER_PART + 1):
        parts[key] = None
    lengths = [len(part) for part in parts._parts]
    assert lengths == [steps.ITEMS_PER_PART, steps.ITEMS_PER_PART, 1]
