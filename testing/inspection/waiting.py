"""Waiting for conditions, and saying what was seen where they do not come about."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..control.client import ControlError

if TYPE_CHECKING:
    from .conditions import Condition

FIRST_PAUSE_SECONDS = 0.002
PAUSE_SECONDS_MAX = 0.05


class NotReached(AssertionError, TimeoutError):
    """What a test waited for has not come about; the text says what was seen instead."""


def wait_until(
    subject: Any, conditions: Sequence[Condition | Callable[[Any], object]], timeout: float
) -> None:
    """Wait until all conditions hold at once.

    Args:
        subject: the broker or cluster that they are about.
        timeout: in seconds.

    Raises:
        NotReached: they do not.
        ValueError: there is no condition.
    """
    if not conditions:
        raise ValueError("say what to wait for: wait_until(group_stable(...))")
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE_SECONDS
    while True:
        outcomes = [_look(condition, subject) for condition in conditions]
        if all(holds for holds, _ in outcomes):
            return
        if time.monotonic() >= deadline:
            raise NotReached(_explain(conditions, outcomes, timeout))
        time.sleep(pause)
        pause = min(pause * 1.5, PAUSE_SECONDS_MAX)


def _look(condition: Condition | Callable[[Any], object], subject: Any) -> tuple[bool, str]:
    """Whether a condition holds, and what was seen."""
    from .conditions import Condition

    try:
        if isinstance(condition, Condition):
            return condition.look(subject)
        seen = condition(subject)
    except ControlError as error:  # such as a topic that is not there yet
        return False, str(error)
    return bool(seen), f"it returned {seen!r}"


def _explain(
    conditions: Sequence[Condition | Callable[[Any], object]],
    outcomes: Sequence[tuple[bool, str]],
    timeout: float,
) -> str:
    lines = [f"not reached within {timeout:g} s:"]
    for condition, (holds, seen) in zip(conditions, outcomes, strict=True):
        name = getattr(condition, "__name__", None) or str(condition)
        lines.append(f"  {'reached' if holds else 'NOT reached'}: {name}")
        if not holds:
            lines.append(f"    seen: {seen}")
    return "\n".join(lines)
