import gc
from collections.abc import Iterator

import pytest

from odradek.runtime.collector import pause_collection, resume_collection


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    yield
    gc.enable()


def test_nothing_is_collected_while_it_is_paused() -> None:
    pause_collection()
    assert not gc.isenabled()
    resume_collection()
    assert gc.isenabled()


def test_what_was_made_meanwhile_is_old_and_is_still_collected_in_the_end() -> None:
    gc.collect()
    pause_collection()
    made: list[object] = []
    made.append(made)
    is_young = any(each is made for each in gc.get_objects(generation=0))
    resume_collection()
    is_old = any(each is made for each in gc.get_objects(generation=2))
    assert is_young
    assert is_old
    assert gc.get_freeze_count() == 0
