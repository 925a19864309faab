"""One regular expression in RE2's syntax, as a test of topic names.

RE2 takes time linear in the name whatever a client sends, which Python's own expressions do
not; and it is the syntax that clients were told of (KIP-848). It is imported when the first
such subscription comes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from .....common.errors import ErrorCode, KafkaError

COMPILED_MAX = 128
"""How many compiled expressions are kept."""

COMPILED_BYTES_MAX = 1 << 20
"""What one may take, with what it has learnt of the names it saw; common ones take kilobytes."""


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
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex {expression!r} is no regular expression of RE2: {reason}.",
        ) from None
    return lambda name: fullmatch(name) is not None
