"""Tasks: a subtopology and a partition number, and who is to run or runs them.

Assignments are shared between images of groups and are not to be changed. Source: KIP-1071;
Kafka's TasksTuple and TasksTupleWithEpochs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

TaskSets = Mapping[str, frozenset[int]]
"""Subtopology id to partitions; no subtopology is there without any."""

TaskEpochs = Mapping[str, Mapping[int, int]]
"""Subtopology id to partition to the member epoch in which it was assigned."""

NO_TASKS: TaskSets = {}

NO_TASK_EPOCHS: TaskEpochs = {}


class Tasks(NamedTuple):
    """What a member is to run, or says that it runs."""

    active: TaskSets = NO_TASKS
    standby: TaskSets = NO_TASKS
    warmup: TaskSets = NO_TASKS


class OwnedTasks(NamedTuple):
    """What a member runs, or has to give up; active tasks with their epochs."""

    active: TaskEpochs = NO_TASK_EPOCHS
    standby: TaskSets = NO_TASKS
    warmup: TaskSets = NO_TASKS

    @property
    def is_empty(self) -> bool:
        """Whether it is nothing at all."""
        return not (self.active or self.standby or self.warmup)

    def without_epochs(self) -> Tasks:
        """The tasks alone."""
        return Tasks(task_sets(self.active), self.standby, self.warmup)


NOTHING_OWNED = OwnedTasks()

NOTHING = Tasks()


def task_sets(tasks: Mapping[str, Iterable[int]]) -> dict[str, frozenset[int]]:
    """The partitions of each subtopology as a set."""
    return {subtopology: frozenset(numbers) for subtopology, numbers in tasks.items() if numbers}


def is_within(tasks: TaskSets, others: Mapping[str, Iterable[int]]) -> bool:
    """Whether `others` has all of the tasks."""
    return all(
        subtopology in others and numbers.issubset(others[subtopology])
        for subtopology, numbers in tasks.items()
    )


def have_common(one: Tasks, other: Tasks) -> bool:
    """Whether a task is in both, of the same kind."""
    return any(
        not numbers.isdisjoint(others[subtopology])
        for tasks, others in zip(one, other, strict=True)
        for subtopology, numbers in tasks.items()
        if subtopology in others
    )
