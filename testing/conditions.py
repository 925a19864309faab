"""What a test can wait for, and what it says when that does not come about.

    from odradek.testing.conditions import group_stable, no_lag

    broker.wait_until(group_stable("shippers", members=2), no_lag("shippers"), timeout=5)

A condition looks at a broker or a cluster, and says what it saw; so a wait that comes to nothing
explains itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from .control.client import ControlError
from .inspection.records import ConsumerRecord
from .inspection.states import InspectedGroup, InspectedSharePartition, InspectedTopic
from .waiting import NotReached, refuse_in_event_loop, wait_until, wait_until_async

__all__ = [
    "Condition",
    "NotReached",
    "delivery_count_reached",
    "group_empty",
    "group_gone",
    "group_in_state",
    "group_stable",
    "isr_is",
    "lag_is",
    "leader_is",
    "no_lag",
    "offset_reached",
    "record_matching",
    "records_in",
    "records_in_flight",
    "requests",
    "share_group_settled",
    "topic_exists",
    "topic_gone",
    "transaction_is",
]

RECORDS_SHOWN = 3
PARTITIONS_SHOWN = 8


class Condition:
    """Something that becomes true of a broker or a cluster.

    Args:
        text: what that is, in words.
        look: what `look` does, unless a class of one's own says that.
    """

    def __init__(self, text: str, look: Callable[[Any], tuple[bool, str]] | None = None) -> None:
        self._text = text
        self._look = look

    def look(self, subject: Any) -> tuple[bool, str]:
        """Whether it is true of a broker or cluster now, and what was seen, in words."""
        assert self._look is not None, "a condition needs a function, or a method `look`"
        return self._look(subject)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{self._text}>"


def wait_for_conditions(
    subject: Any, conditions: Sequence[Condition | Callable[[Any], object]], timeout: float
) -> None:
    """Wait until all conditions hold at once.

    Args:
        subject: the broker or cluster that they are about.
        timeout: in seconds.

    Raises:
        NotReached: they do not.
        RuntimeError: an event loop runs this code, and would stand still.
        ValueError: there is no condition.
    """
    __tracebackhide__ = True
    refuse_in_event_loop("await ....wait_until_async(...)")
    look, explain = _looking(subject, conditions, timeout)
    wait_until(look, timeout, explain)


async def wait_for_conditions_async(
    subject: Any, conditions: Sequence[Condition | Callable[[Any], object]], timeout: float
) -> None:
    """The same in a coroutine of asyncio or trio."""
    __tracebackhide__ = True
    look, explain = _looking(subject, conditions, timeout)
    await wait_until_async(look, timeout, explain)


def _looking(
    subject: Any, conditions: Sequence[Condition | Callable[[Any], object]], timeout: float
) -> tuple[Callable[[], bool], Callable[[], str]]:
    """Whether all conditions hold, and what to say if they do not in time."""
    if not conditions:
        raise ValueError("say what to wait for: wait_until(group_stable(...))")
    outcomes: list[tuple[bool, str]] = []

    def look() -> bool:
        outcomes[:] = [_look(condition, subject) for condition in conditions]
        return all(holds for holds, _ in outcomes)

    return look, lambda: _explain(conditions, outcomes, timeout)


def _look(condition: Condition | Callable[[Any], object], subject: Any) -> tuple[bool, str]:
    """Whether a condition holds, and what was seen."""
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


# -- groups -------------------------------------------------------------------------------------


def group_stable(group: str, members: int | None = None) -> Condition:
    """A group's members share its partitions, and nothing is on its way.

    Args:
        members: how many of them there are to be; None: any number from 1 on.
    """

    def look(subject: Any) -> tuple[bool, str]:
        found: InspectedGroup = subject.group(group)
        count = len(found.members)
        enough = count > 0 if members is None else count == members
        return found.state == "Stable" and enough, _describe(found)

    of = "" if members is None else f" with {members} members"
    return Condition(f"group {group} is stable{of}", look)


def group_in_state(group: str, state: str) -> Condition:
    """A group is in a state, such as "Empty" or "PreparingRebalance"; "Dead": there is none."""

    def look(subject: Any) -> tuple[bool, str]:
        found: InspectedGroup = subject.group(group)
        return found.state == state, _describe(found)

    return Condition(f"group {group} is {state}", look)


def group_empty(group: str) -> Condition:
    """Nobody is in a group, and it may have offsets."""
    return group_in_state(group, "Empty")


def group_gone(group: str) -> Condition:
    """There is no such group."""
    return group_in_state(group, "Dead")


def lag_is(group: str, most: int = 0) -> Condition:
    """A group has committed something, and is no more than so many offsets behind."""

    def look(subject: Any) -> tuple[bool, str]:
        found: InspectedGroup = subject.group(group)
        seen = f"it is {found.lag} behind: " + (
            ", ".join(f"{tp} by {behind}" for tp, behind in found.lags.items() if behind) or "none"
        )
        if not found.offsets:
            seen = f"it has committed no offsets; {_describe(found)}"
        return bool(found.offsets) and found.lag <= most, seen

    return Condition(f"group {group} is {f'at most {most} behind' if most else 'not behind'}", look)


def no_lag(group: str) -> Condition:
    """A group has committed the end of all partitions that it has committed."""
    return lag_is(group, 0)


def _describe(group: InspectedGroup) -> str:
    names = ", ".join(member.client_id or member.member_id for member in group.members)
    return (
        f"it is {group.state}, generation {group.generation}, with {len(group.members)} members"
        + (f" ({names})" if names else "")
    )


# -- records and topics ---------------------------------------------------------------------------


def record_matching(
    topic: str,
    *,
    key: bytes | str | None = None,
    value: bytes | str | None = None,
    partition: int | None = None,
    where: Callable[[ConsumerRecord], object] | None = None,
    committed_only: bool = False,
) -> Condition:
    """A topic has a record that is like this.

    Args:
        key: None: any; a text stands for its bytes in UTF-8.
        value: likewise.
        partition: None: in any.
        where: must be true of it as well.
        committed_only: whether it must be part of no open or aborted transaction.
    """
    key_bytes, value_bytes = _as_bytes(key), _as_bytes(value)

    def look(subject: Any) -> tuple[bool, str]:
        records: list[ConsumerRecord] = subject.read(
            topic, partition, committed_only=committed_only
        )
        found = any(
            (key_bytes is None or record.key == key_bytes)
            and (value_bytes is None or record.value == value_bytes)
            and (where is None or where(record))
            for record in records
        )
        return found, _describe_records(topic, records)

    words = [f"key={key!r}"] if key is not None else []
    words += [f"value={value!r}"] if value is not None else []
    words += [getattr(where, "__name__", "where")] if where is not None else []
    like = f" with {', '.join(words)}" if words else ""
    return Condition(f"{_place(topic, partition)} has a record{like}", look)


def records_in(
    topic: str, at_least: int, *, partition: int | None = None, committed_only: bool = False
) -> Condition:
    """A topic has so many records, or more."""

    def look(subject: Any) -> tuple[bool, str]:
        records: list[ConsumerRecord] = subject.read(
            topic, partition, committed_only=committed_only
        )
        return len(records) >= at_least, _describe_records(topic, records)

    return Condition(f"{_place(topic, partition)} has at least {at_least} records", look)


def offset_reached(topic: str, offset: int, *, partition: int = 0) -> Condition:
    """Consumers can read a partition up to an offset: its high watermark is there, or beyond."""

    def look(subject: Any) -> tuple[bool, str]:
        partitions = {each.partition: each for each in subject.topic(topic).partitions}
        if partition not in partitions:
            return False, f"topic {topic} has no partition {partition}"
        high_watermark = partitions[partition].high_watermark
        return high_watermark >= offset, f"its high watermark is {high_watermark}"

    return Condition(f"partition {topic}-{partition} has reached offset {offset}", look)


def _as_bytes(text: bytes | str | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _place(topic: str, partition: int | None) -> str:
    return f"topic {topic}" if partition is None else f"partition {topic}-{partition}"


def _describe_records(topic: str, records: list[ConsumerRecord]) -> str:
    if not records:
        return f"{topic} has no records to read"
    last = ", ".join(
        f"{record.key!r}: {record.value!r}"[:80] for record in records[-RECORDS_SHOWN:]
    )
    return f"{topic} has {len(records)} records, the last ones {last}"


def topic_exists(topic: str) -> Condition:
    """There is a topic of this name."""

    def look(subject: Any) -> tuple[bool, str]:
        return _topics(subject, topic, exists=True)

    return Condition(f"there is a topic {topic}", look)


def topic_gone(topic: str) -> Condition:
    """There is no topic of this name."""

    def look(subject: Any) -> tuple[bool, str]:
        return _topics(subject, topic, exists=False)

    return Condition(f"there is no topic {topic}", look)


def _topics(subject: Any, topic: str, *, exists: bool) -> tuple[bool, str]:
    names: list[str] = subject.topics(internal=True)
    return (topic in names) is exists, f"the topics are {', '.join(names) or 'none'}"


# -- share groups -------------------------------------------------------------------------------


def records_in_flight(
    group: str,
    at_least: int,
    *,
    topic: str | None = None,
    partition: int | None = None,
    state: str | None = None,
) -> Condition:
    """A share group has so many records in flight, or more.

    Args:
        topic: None: of all topics.
        partition: None: of all partitions.
        state: "Acquired": only those that members have; "Available", "Acknowledged" or "Archived";
            None: in any.
    """

    def look(subject: Any) -> tuple[bool, str]:
        found = _share_partitions(subject, group, topic, partition)
        count = sum(each.in_flight(state) for each in found)
        return count >= at_least, f"{count}: {_describe_share(found)}"

    which = f"{state.lower()} " if state else ""
    return Condition(f"group {group} has at least {at_least} {which}records in flight", look)


def delivery_count_reached(
    group: str, topic: str, offset: int, count: int, *, partition: int = 0
) -> Condition:
    """A share group was given a record so often, or more; it is not done with yet."""

    def look(subject: Any) -> tuple[bool, str]:
        found = _share_partitions(subject, group, topic, partition)
        counts = [each.delivery_count(offset) for each in found]
        return any((each or 0) >= count for each in counts), _describe_share(found)

    return Condition(
        f"group {group} was given {topic}-{partition} offset {offset} {count} times", look
    )


def share_group_settled(group: str, topic: str | None = None) -> Condition:
    """A share group is done with all records there are: acknowledged or archived, and stored so.

    Args:
        topic: None: of all topics that it reads.
    """

    def look(subject: Any) -> tuple[bool, str]:
        found = _share_partitions(subject, group, topic, None)
        return bool(found) and all(each.is_settled for each in found), _describe_share(found)

    return Condition(
        f"group {group} is done with all records{f' of {topic}' if topic else ''}", look
    )


def _share_partitions(
    subject: Any, group: str, topic: str | None, partition: int | None
) -> list[InspectedSharePartition]:
    found: list[InspectedSharePartition] = subject.share_partitions(group)
    return [
        each
        for each in found
        if topic in (None, each.topic) and partition in (None, each.partition)
    ]


def _describe_share(found: Sequence[InspectedSharePartition]) -> str:
    return "; ".join(map(str, found[:PARTITIONS_SHOWN])) or "no share group reads there"


# -- partitions of a cluster ----------------------------------------------------------------------


def leader_is(topic: str, partition: int, broker: int) -> Condition:
    """A broker leads a partition."""

    def look(subject: Any) -> tuple[bool, str]:
        found: InspectedTopic = subject.topic(topic)
        leader = found.partitions[partition].leader
        return leader == broker, f"broker {leader} leads it"

    return Condition(f"broker {broker} leads {topic}-{partition}", look)


def isr_is(topic: str, partition: int, brokers: Collection[int]) -> Condition:
    """Just these brokers are in sync."""

    def look(subject: Any) -> tuple[bool, str]:
        isr = subject.topic(topic).partitions[partition].isr
        return set(isr) == set(brokers), f"its ISR is {sorted(isr)}"

    return Condition(f"the ISR of {topic}-{partition} is {sorted(brokers)}", look)


# -- requests and transactions --------------------------------------------------------------------


def requests(api: str, at_least: int = 1, **named: Any) -> Condition:
    """The broker was sent so many requests of an API, or more.

    Args:
        named: what they name, as of `broker.requests.of`.
    """

    def look(subject: Any) -> tuple[bool, str]:
        count = subject.requests.of(api, **named).count()
        return count >= at_least, f"{count} came"

    words = "".join(f", {name}={value!r}" for name, value in named.items())
    return Condition(f"at least {at_least} {api} requests came{words}", look)


def transaction_is(transactional_id: str, state: str) -> Condition:
    """A transactional id is in a state, such as "Ongoing" or "CompleteCommit"."""

    def look(subject: Any) -> tuple[bool, str]:
        found = subject.transaction(transactional_id)
        if found is None:
            return False, "the broker does not know it"
        return found.state == state, f"it is {found.state}"

    return Condition(f"transactional id {transactional_id} is {state}", look)
