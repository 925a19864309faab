"""Reconciliation: what one member may have now, on the way to its target assignment.

A member first gives up what is no longer its own, and keeps its epoch while it does. Then it
takes the target's epoch and whatever of the target is free; what others have not given up yet
follows with later heartbeats. An active task is free when nobody has it; besides, a process has a
task in one way at a time, for its threads share the folder of its state. Source: KIP-1071; Kafka
4.3's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ....common.errors import ErrorCode, KafkaError
from .member import StreamsMember
from .states import STREAMS_MEMBER_TRANSITIONS, StreamsMemberEvent, StreamsMemberState
from .tasks import NOTHING_OWNED, OwnedTasks, Tasks, TaskSets, have_common


class Holders(NamedTuple):
    """Which processes have tasks now, in which way.

    Attributes:
        active: the process of each active task.
        passive: the processes of each standby or warm-up task.
    """

    active: Mapping[tuple[str, int], str]
    passive: Mapping[tuple[str, int], frozenset[str]]

    def is_active_taken(self, task: tuple[str, int], process_id: str) -> bool:
        """Whether a member of a process may not run a task yet."""
        return task in self.active or self._stands_by(task, process_id)

    def is_passive_taken(self, task: tuple[str, int], process_id: str) -> bool:
        """Whether a member of a process may not stand by for a task, or warm it up, yet."""
        return self.active.get(task) == process_id or self._stands_by(task, process_id)

    def _stands_by(self, task: tuple[str, int], process_id: str) -> bool:
        return process_id in self.passive.get(task, ())


class _Step(NamedTuple):
    """What is to become of tasks of one kind."""

    kept: dict[str, frozenset[int]]
    to_revoke: dict[str, frozenset[int]]
    to_assign: dict[str, frozenset[int]]
    must_wait: bool


def reconcile(
    member: StreamsMember, target_epoch: int, target: Tasks, owned: Tasks | None, holders: Holders
) -> StreamsMember:
    """The member after one step; the same one if it cannot go on yet.

    Args:
        member: as it is.
        target_epoch: the epoch that the target was computed for.
        target: what it is to have.
        owned: what the client says that it has; None if it did not say.
        holders: who has which tasks.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH, a newer broker left the member in a state that is not
            known here, and it still has tasks.
    """
    epoch = member.member_epoch
    if member.state is StreamsMemberState.STABLE:
        if epoch == target_epoch:
            return member
    elif member.state is StreamsMemberState.UNREVOKED_TASKS:
        if owned is None or have_common(owned, member.pending_revocation.without_epochs()):
            return member
        epoch += 1
    elif member.state is StreamsMemberState.UNKNOWN:
        if owned is None or any(owned):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The streams group member is in a unknown state. The member must abandon all its "
                "tasks and rejoin.",
            )
        epoch = target_epoch
    return _next(member._replace(member_epoch=epoch), member, target_epoch, target, owned, holders)


def _next(
    at_epoch: StreamsMember,
    before: StreamsMember,
    target_epoch: int,
    target: Tasks,
    owned: Tasks | None,
    holders: Holders,
) -> StreamsMember:
    """Give up what is not in the target; else take what is free of it."""
    process_id = before.process_id
    had = before.assigned
    active = _step(had.without_epochs().active, target.active, holders.is_active_taken, process_id)
    standby = _step(had.standby, target.standby, holders.is_passive_taken, process_id)
    warmup = _step(had.warmup, target.warmup, holders.is_passive_taken, process_id)
    kept = OwnedTasks(_epochs_of(had, active.kept), standby.kept, warmup.kept)
    to_revoke = OwnedTasks(_epochs_of(had, active.to_revoke), standby.to_revoke, warmup.to_revoke)
    if not to_revoke.is_empty and (owned is None or have_common(owned, to_revoke.without_epochs())):
        return before._replace(
            state=STREAMS_MEMBER_TRANSITIONS.next_state(
                before.state, StreamsMemberEvent.MUST_REVOKE
            ),
            member_epoch=at_epoch.member_epoch,
            previous_member_epoch=before.member_epoch,
            assigned=kept,
            pending_revocation=to_revoke,
        )
    must_wait = active.must_wait or standby.must_wait or warmup.must_wait
    event = StreamsMemberEvent.MUST_WAIT if must_wait else StreamsMemberEvent.COMPLETE
    return before._replace(
        state=STREAMS_MEMBER_TRANSITIONS.next_state(before.state, event),
        member_epoch=target_epoch,
        previous_member_epoch=before.member_epoch,
        assigned=OwnedTasks(
            _with_new(kept.active, active.to_assign, target_epoch),
            _united(standby),
            _united(warmup),
        ),
        pending_revocation=NOTHING_OWNED,
    )


def _step(
    current: TaskSets,
    target: TaskSets,
    is_taken: Callable[[tuple[str, int], str], bool],
    process_id: str,
) -> _Step:
    step = _Step({}, {}, {}, must_wait=False)
    must_wait = False
    for subtopology_id in sorted(current.keys() | target.keys()):
        had = current.get(subtopology_id, frozenset())
        targeted = target.get(subtopology_id, frozenset())
        missing = targeted - had
        free = frozenset(
            number for number in missing if not is_taken((subtopology_id, number), process_id)
        )
        must_wait = must_wait or len(free) < len(missing)
        for numbers, tasks in (
            (had & targeted, step.kept),
            (had - targeted, step.to_revoke),
            (free, step.to_assign),
        ):
            if numbers:
                tasks[subtopology_id] = numbers
    return step._replace(must_wait=must_wait)


def _epochs_of(had: OwnedTasks, tasks: TaskSets) -> dict[str, dict[int, int]]:
    return {
        subtopology_id: {number: had.active[subtopology_id][number] for number in numbers}
        for subtopology_id, numbers in tasks.items()
    }


def _with_new(
    kept: Mapping[str, Mapping[int, int]], new: TaskSets, epoch: int
) -> dict[str, dict[int, int]]:
    result = {subtopology_id: dict(epochs) for subtopology_id, epochs in kept.items()}
    for subtopology_id, numbers in new.items():
        result.setdefault(subtopology_id, {}).update(dict.fromkeys(numbers, epoch))
    return result


def _united(step: _Step) -> dict[str, frozenset[int]]:
    return {
        subtopology_id: step.kept.get(subtopology_id, frozenset())
        | step.to_assign.get(subtopology_id, frozenset())
        for subtopology_id in step.kept.keys() | step.to_assign.keys()
    }
