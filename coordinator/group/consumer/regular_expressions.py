"""Subscriptions by regular expression: checked, resolved to topics, and resolved again.

RE2 takes time linear in the name whatever a client sends, which Python's own expressions do not;
and it is the syntax that KIP-848 names. It is imported when the first such subscription comes.

An expression is resolved once for all members of a group that subscribe by it, a while after the
heartbeat that brought it; the group's epoch counts up if that changes what it reads. It is
resolved again when topics have come, and from time to time, but not more often than each
`BATCH_INTERVAL_MS`, which takes a heartbeat to notice. Source: KIP-848; Kafka's
`GroupMetadataManager.maybeUpdateRegularExpressions` and `TopicRegexResolver`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

from ....common.errors import ErrorCode, KafkaError
from ..runtime import GroupRuntime
from .group import ConsumerGroup
from .group_write import GroupWrite
from .heartbeat_request import HeartbeatRequest
from .member import ConsumerGroupMember, ResolvedExpression
from .topics import TopicsImage

COMPILED_MAX = 128
"""How many compiled expressions are kept."""

SHOWN_CHARACTERS_MAX = 1000
"""An answer cannot hold an error text of more than 32,767 bytes."""

COMPILED_BYTES_MAX = 1 << 20
"""What one may take, with what it has learnt of the names it saw; common ones take kilobytes."""


KAFKAS_REASONS: Mapping[str, str] = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""What RE2/J, which Kafka uses, says in place of RE2; of what is not here they say the same."""


@lru_cache(maxsize=COMPILED_MAX)
def compile_expression(expression: str) -> Callable[[str], bool]:
    """A function that tells whether a whole topic name matches.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION, with what is wrong with it.
    """
    # Only where such a subscription is made.
    import re2  # type: ignore[import-untyped]  # it has no stubs

    options = re2.Options()
    options.max_mem = COMPILED_BYTES_MAX
    options.log_errors = False  # a client's mistake is no line in our log
    options.never_capture = True  # where each of many groups matched would take seconds to find
    try:
        fullmatch = re2.compile(expression, options).fullmatch
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be compiled"
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        shown = expression[:SHOWN_CHARACTERS_MAX]
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{shown}` is not a valid regular expression: "
            f"{_kafkas_reason(reason)}.",
        ) from None
    return lambda name: fullmatch(name) is not None


def _kafkas_reason(reason: str) -> str:
    """RE2's reason, which has the place in the expression behind it, as Kafka words it."""
    what = reason.partition(": ")[0]
    return KAFKAS_REASONS.get(what, what)


class ExpressionUpdate(NamedTuple):
    """What a heartbeat changed about regular expressions.

    Attributes:
        is_changed: whether the member subscribes by another one than before.
        is_resolved: whether the topics of the new one are known already, so that the group's
            subscription changes with this heartbeat.
    """

    is_changed: bool = False
    is_resolved: bool = False


NO_UPDATE = ExpressionUpdate()


class Expressions(Protocol):
    """Resolves regular expressions to topics, at once or later."""

    def update(
        self,
        write: GroupWrite,
        before: ConsumerGroupMember,
        member: ConsumerGroupMember,
        request: HeartbeatRequest,
    ) -> ExpressionUpdate:
        """A member sent a heartbeat; it has been put into the group already.

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION.
        """

    def is_settled(self, group: ConsumerGroup) -> bool:
        """Whether a heartbeat that brings no other expression has nothing to be done for any."""

    def forget_unused(self, write: GroupWrite) -> None:
        """Members were removed: delete expressions that nobody subscribes by any more."""


logger = logging.getLogger(__name__)
BATCH_INTERVAL_MS = 10_000
"""A group's expressions are not resolved more often: many members may bring one at a time."""

MATCHES_PER_TURN = 2_000
"""How many names are held against one expression before others get their turn."""

NEVER_MS = -(2**63)
IsTopicAllowed = Callable[[str], bool]
"""Whether a client may know of a topic: expressions match no others."""


class _Resolution(NamedTuple):
    """One group's expressions being resolved."""

    group_id: str
    expressions: tuple[str, ...]
    image: TopicsImage
    is_allowed: IsTopicAllowed
    started_ms: int


class RegularExpressions:
    """The rules of such subscriptions.

    Args:
        runtime: time.
        topics: the cluster's topics as they are now.
        metadata_hash: of the topics that a group reads.
        find_group: a group by its id, None if it is not, or no longer, kept here.
        submit: hands a group's change to the log.
        refresh_interval_ms: group.consumer.regex.refresh.interval.ms.

    Attributes:
        new_topics_version: of the topics image in which topics came last.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        topics: Callable[[], TopicsImage],
        metadata_hash: Callable[[ConsumerGroup], int],
        find_group: Callable[[str], ConsumerGroup | None],
        submit: Callable[[GroupWrite, Callable[[ErrorCode], None]], None],
        refresh_interval_ms: int,
    ) -> None:
        self.new_topics_version = -1
        self._runtime = runtime
        self._topics = topics
        self._metadata_hash = metadata_hash
        self._find_group = find_group
        self._submit = submit
        self._refresh_interval_ms = refresh_interval_ms
        self._resolving: set[str] = set()

    def note_new_topics(self) -> None:
        """Topics have come: expressions are resolved again at their groups' next heartbeats."""
        self.new_topics_version = self._topics().version

    # -- at a heartbeat -------------------------------------------------------------------

    def update(
        self,
        write: GroupWrite,
        before: ConsumerGroupMember,
        member: ConsumerGroupMember,
        request: HeartbeatRequest,
    ) -> ExpressionUpdate:
        """A member sent a heartbeat: see to its expression, and whether any is out of date.

        Args:
            write: gets the end of an expression that nobody subscribes by any more.
            before: the member before the heartbeat.
            member: the member after it, which is in the group already.
            request: the heartbeat, which may say which topics the client may know of.

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION.
        """
        group = write.group
        old, new = before.subscribed_topic_regex, member.subscribed_topic_regex
        if old == new and not new and not group.expressions:
            return NO_UPDATE
        subscribed = group.subscribed_expressions
        is_needed = is_resolved = False
        if old != new:
            if new and subscribed[new] == 1:
                compile_expression(new)
                is_needed = True
            else:
                is_resolved = not new or new in group.expressions
            if old not in subscribed and old in group.expressions:
                write.remove_expression(old)
        if subscribed and self._is_due(group, is_needed=is_needed):
            self._resolve(group, request.is_topic_allowed)
        return ExpressionUpdate(old != new, is_resolved)

    def forget_unused(self, write: GroupWrite) -> None:
        """Members are gone: end the expressions that nobody subscribes by any more."""
        group = write.group
        if group.expressions:
            subscribed = group.subscribed_expressions
            for expression in [name for name in group.expressions if name not in subscribed]:
                write.remove_expression(expression)

    def is_settled(self, group: ConsumerGroup) -> bool:
        """Whether a heartbeat that brings no other expression has nothing to be done for any."""
        return not self._is_due(group, is_needed=False)

    def _is_due(self, group: ConsumerGroup, *, is_needed: bool) -> bool:
        if group.group_id in self._resolving:
            return False
        known = group.expressions.values()
        now_ms = self._runtime.clock.now_ms()
        last_ms = max((resolved.timestamp_ms for resolved in known), default=NEVER_MS)
        elapsed_ms = now_ms - last_ms
        if elapsed_ms < 0:  # the log holds wall time, and the clock was set back
            elapsed_ms = self._refresh_interval_ms + 1
        if elapsed_ms <= BATCH_INTERVAL_MS:
            return False
        version = min((resolved.version for resolved in known), default=0)
        return (
            is_needed
            or len(group.subscribed_expressions) != len(known)
            or version < self.new_topics_version
            or elapsed_ms > self._refresh_interval_ms
        )

    def _resolve(self, group: ConsumerGroup, is_allowed: IsTopicAllowed) -> None:
        self._resolving.add(group.group_id)
        resolution = _Resolution(
            group.group_id,
            tuple(sorted(group.subscribed_expressions)),
            self._topics(),
            is_allowed,
            self._runtime.clock.now_ms(),
        )
        self._runtime.schedule(0, partial(self._begin, resolution))

    # -- resolving ------------------------------------------------------------------------

    def _begin(self, resolution: _Resolution) -> None:
        matches: dict[str, set[str]] = {name: set() for name in resolution.expressions}
        names = list(resolution.image.names())
        # One expression in each: it may have to be compiled, which takes longer than it matches.
        turns = deque(
            (expression, names[start : start + MATCHES_PER_TURN])
            for expression in resolution.expressions
            for start in range(0, len(names), MATCHES_PER_TURN)
        )
        self._go_on(resolution, matches, turns)

    def _go_on(
        self,
        resolution: _Resolution,
        matches: dict[str, set[str]],
        turns: deque[tuple[str, list[str]]],
    ) -> None:
        if turns:
            expression, names = turns.popleft()
            matches[expression].update(
                name
                for name in names
                if self._is_match(expression, name) and resolution.is_allowed(name)
            )
        if turns:
            self._runtime.schedule(0, partial(self._go_on, resolution, matches, turns))
            return
        self._resolving.discard(resolution.group_id)
        group = self._find_group(resolution.group_id)
        if group is not None and not group.is_dead:
            self._apply(group, resolution, matches)

    def _is_match(self, expression: str, name: str) -> bool:
        try:
            return compile_expression(expression)(name)
        except KafkaError:
            return False  # kept by another broker that knows more than this one

    def _apply(
        self, group: ConsumerGroup, resolution: _Resolution, matches: Mapping[str, set[str]]
    ) -> None:
        write = GroupWrite(group)
        has_changed = False
        subscribed = group.subscribed_expressions
        for expression, topics in matches.items():
            if expression not in subscribed:
                continue
            resolved = ResolvedExpression(
                frozenset(topics), resolution.image.version, resolution.started_ms
            )
            before = group.expressions.get(expression)
            if resolved.topics != (frozenset() if before is None else before.topics):
                has_changed = True
            write.put_expression(expression, resolved)
        metadata_hash = self._metadata_hash(group)
        if has_changed or metadata_hash != group.metadata_hash:
            group.needs_metadata_refresh = False
            write.put_epoch(group.epoch + 1, metadata_hash)
        self._submit(write, partial(_log_failure, group.group_id))


def _log_failure(group_id: str, error: ErrorCode) -> None:
    if error:
        logger.warning(
            "could not store the resolved regular expressions of group %s: %s",
            group_id,
            error.name,
        )
