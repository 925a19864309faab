"""The sticky task assignor: tasks stay where they are, as far as all members get as many.

Active tasks go to who had them, then to who had them as standby tasks, then to the process with
the least load: tasks by threads. Standby tasks go to other processes than the task they stand by
for, as far as there are any. Threads of one process count as members of their own, but share what
the process has. As Kafka 4.3's, it assigns no warm-up tasks. Source: KIP-1071; Kafka 4.3's
StickyTaskAssignor and ProcessState.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

from .tasks import Tasks, TaskSets, task_sets

logger = logging.getLogger(__name__)


class TaskId(NamedTuple):
    """One task."""

    subtopology_id: str
    partition: int


class AssignedMember(NamedTuple):
    """What the assignor is told of a member.

    Attributes:
        process_id: of its instance.
        former: its target before this one.
    """

    process_id: str
    former: Tasks


class AssignedSubtopology(NamedTuple):
    """What the assignor is told of a subtopology."""

    task_count: int
    is_stateful: bool


def assign_tasks(
    members: Mapping[str, AssignedMember],
    subtopologies: Mapping[str, AssignedSubtopology],
    standby_count: int,
) -> dict[str, Tasks]:
    """The target of each member.

    Args:
        members: by member id.
        subtopologies: by id.
        standby_count: how many standby tasks each stateful task is to have.
    """
    if not members:
        return {}
    assignment = _Assignment(members, subtopologies, standby_count)
    assignment.assign_active()
    if standby_count:
        assignment.assign_standby(standby_count)
    return {member_id: assignment.tasks_of(member_id) for member_id in members}


class _Process:
    """One process, and its members' tasks.

    Attributes:
        counts: how many tasks each member has.
        tasks: those that its members have.
        order: its place among processes with as much load.
    """

    __slots__ = ("_by_load", "_task_count", "counts", "order", "tasks")

    def __init__(self, order: int) -> None:
        self._task_count = 0
        self.counts: dict[str, int] = {}
        self.tasks: set[TaskId] = set()
        self.order = order
        self._by_load: list[tuple[int, int, str]] | None = None

    @property
    def load(self) -> float:
        """Tasks for each member."""
        return self._task_count / len(self.counts)

    def take(self, member_id: str, task: TaskId) -> int:
        """Give a task to a member; returns how many it has."""
        self._task_count += 1
        self.tasks.add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]

    def forget_order(self) -> None:
        """Tasks were given to members by their names."""
        self._by_load = None

    def least_loaded(self) -> str:
        """The member with the fewest tasks, which is about to get one more."""
        if self._by_load is None:
            self._by_load = [
                (count, place, member_id)
                for place, (member_id, count) in enumerate(self.counts.items())
            ]
            heapq.heapify(self._by_load)
        count, place, member_id = self._by_load[0]
        heapq.heapreplace(self._by_load, (count + 1, place, member_id))
        return member_id


class _Quota:
    """How many tasks a member may have, so that all get as many: those that are full no longer
    count.

    Args:
        tasks: how many there are.
        members: how many are to share them.
    """

    __slots__ = ("_members", "_tasks", "each")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.each = self._share()

    def note(self, count: int) -> None:
        """A member has so many now."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self.each = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


class _Assignment:
    """The assignment as it comes about."""

    def __init__(
        self,
        members: Mapping[str, AssignedMember],
        subtopologies: Mapping[str, AssignedSubtopology],
        standby_count: int,
    ) -> None:
        self._subtopologies = subtopologies
        self._processes: dict[str, _Process] = {}
        self._process_of: dict[str, _Process] = {}
        self._former_active: dict[TaskId, str] = {}
        self._former_standby: dict[TaskId, list[str]] = {}
        self._active: dict[str, dict[str, list[int]]] = {}
        self._standby: dict[str, dict[str, list[int]]] = {}
        for member_id, member in sorted(members.items()):
            process = self._processes.get(member.process_id)
            if process is None:
                process = self._processes[member.process_id] = _Process(len(self._processes))
            process.counts[member_id] = 0
            self._process_of[member_id] = process
            for task in _task_ids(member.former.active):
                self._former_active[task] = member_id
            for task in _task_ids(member.former.standby):
                self._former_standby.setdefault(task, []).append(member_id)
        active_count = sum(each.task_count for each in subtopologies.values())
        stateful_count = sum(each.task_count for each in subtopologies.values() if each.is_stateful)
        self._active_quota = _Quota(active_count, len(members))
        self._quota = _Quota(active_count + stateful_count * standby_count, len(members))

    def tasks_of(self, member_id: str) -> Tasks:
        """What a member got."""
        return Tasks(
            task_sets(self._active.get(member_id, {})), task_sets(self._standby.get(member_id, {}))
        )

    # -- active tasks -----------------------------------------------------------------------

    def assign_active(self) -> None:
        """Give every task to a member."""
        tasks = [
            TaskId(subtopology_id, number)
            for subtopology_id, each in self._subtopologies.items()
            for number in range(each.task_count)
        ]
        # What was dealt out range by range is kept so, if tasks of one partition go together.
        tasks.sort(key=lambda task: (task.partition, task.subtopology_id))
        left = []
        for task in tasks:
            member_id = self._former_active.get(task)
            if member_id is None or not self._keep_active(member_id, task):
                left.append(task)
        tasks, left = left, []
        for task in tasks:
            member_id = self._least_loaded_of(self._former_standby.get(task, ()))
            if member_id is None or not self._keep_active(member_id, task):
                left.append(task)
        queue = self._by_load()
        for task in sorted(left):
            _, _, process = heapq.heappop(queue)
            count = self._give(process.least_loaded(), task, self._active)
            self._active_quota.note(count)
            self._quota.note(count)
            heapq.heappush(queue, (process.load, process.order, process))

    def _keep_active(self, member_id: str, task: TaskId) -> bool:
        """Give a task to who had it, unless it has its share."""
        process = self._process_of[member_id]
        if process.counts[member_id] >= self._active_quota.each:
            return False
        process.forget_order()
        count = self._give(member_id, task, self._active)
        self._active_quota.note(count)
        self._quota.note(count)
        return True

    # -- standby tasks ----------------------------------------------------------------------

    def assign_standby(self, standby_count: int) -> None:
        """Give every stateful task its standby tasks, as far as there are processes for them."""
        tasks = [
            TaskId(subtopology_id, number)
            for subtopology_id, each in self._subtopologies.items()
            if each.is_stateful
            for number in range(each.task_count)
        ]
        tasks.sort(key=lambda task: (task.partition, task.subtopology_id), reverse=True)
        left: list[tuple[TaskId, int]] = []
        for task in tasks:
            for number in range(standby_count):
                if not self._keep_standby(task):
                    left.append((task, standby_count - number))
                    break
        queue = self._by_load()
        for task, count in sorted(left, reverse=True):
            for number in range(count):
                if not self._give_standby(queue, task):
                    logger.info(
                        "%d of %d standby tasks of %s-%d have no process to be in",
                        count - number,
                        standby_count,
                        *task,
                    )
                    break

    def _keep_standby(self, task: TaskId) -> bool:
        """Give a standby task to who had the task in either way, if it has not its share."""
        former = self._former_active.get(task)
        if former is not None and self._may_stand_by(former, task):
            self._stand_by(former, task)
            return True
        former = self._least_loaded_of(self._former_standby.get(task, ()), task)
        if former is not None and self._may_stand_by(former, task):
            self._stand_by(former, task)
            return True
        return False

    def _may_stand_by(self, member_id: str, task: TaskId) -> bool:
        process = self._process_of[member_id]
        return task not in process.tasks and process.counts[member_id] < self._quota.each

    def _stand_by(self, member_id: str, task: TaskId) -> None:
        self._process_of[member_id].forget_order()
        self._quota.note(self._give(member_id, task, self._standby))

    def _give_standby(self, queue: list[tuple[float, int, _Process]], task: TaskId) -> bool:
        """Give a standby task to the least loaded process that has the task in no way."""
        passed = []
        found = False
        while queue and not found:
            entry = heapq.heappop(queue)
            process = entry[2]
            if task in process.tasks:
                passed.append(entry)
                continue
            self._quota.note(self._give(process.least_loaded(), task, self._standby))
            passed.append((process.load, process.order, process))
            found = True
        for entry in passed:
            heapq.heappush(queue, entry)
        return found

    # -- both -------------------------------------------------------------------------------

    def _by_load(self) -> list[tuple[float, int, _Process]]:
        queue = [(process.load, process.order, process) for process in self._processes.values()]
        heapq.heapify(queue)
        return queue

    def _give(self, member_id: str, task: TaskId, given: dict[str, dict[str, list[int]]]) -> int:
        given.setdefault(member_id, {}).setdefault(task.subtopology_id, []).append(task.partition)
        return self._process_of[member_id].take(member_id, task)

    def _least_loaded_of(
        self, member_ids: Collection[str], task: TaskId | None = None
    ) -> str | None:
        """Who of some has the least load, where its process has not the task in any way."""
        free = [
            member_id
            for member_id in member_ids
            if task is None or task not in self._process_of[member_id].tasks
        ]
        return min(
            free,
            key=lambda member_id: (
                self._process_of[member_id].load,
                self._process_of[member_id].counts[member_id],
            ),
            default=None,
        )


def _task_ids(tasks: TaskSets) -> list[TaskId]:
    return [
        TaskId(subtopology_id, number)
        for subtopology_id, numbers in tasks.items()
        for number in numbers
    ]
