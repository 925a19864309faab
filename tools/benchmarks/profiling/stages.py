"""Which step of a request's way a function belongs to.

A sample is a stack of functions; the innermost one that the table knows decides. A name that is
not in the table belongs to whoever called it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

RECEIVE = "receive"
FRAMES = "frames and order"
DISPATCH = "dispatch"
DECODE = "decode, or shortcut"
CHECKS = "append: checks"
CRC = "append: CRC"
WRITE = "write"
PUBLISH = "publish"
READ = "read: look up"
WAIT = "wait and wake"
ANSWER = "answer"
SEND = "send"
EPOLL = "epoll"
TRIO = "trio"
REST = "everything else"

STAGES = (
    RECEIVE,
    FRAMES,
    DISPATCH,
    DECODE,
    CHECKS,
    CRC,
    WRITE,
    PUBLISH,
    READ,
    WAIT,
    ANSWER,
    SEND,
    EPOLL,
    TRIO,
    REST,
)
"""In the order of a request's way."""

KERNEL = frozenset(
    {
        "__libc_recv",
        "__libc_send",
        "clock_nanosleep",
        "epoll_ctl",
        "epoll_pwait",
        "epoll_wait",
        "fstat",
        "ftruncate",
        "pread",
        "pread64",
        "preadv",
        "preadv2",
        "preadv64",
        "preadv64v2",
        "pwrite",
        "pwritev",
        "read",
        "recv",
        "recvfrom",
        "recvmsg",
        "send",
        "sendfile",
        "sendfile64",
        "sendmsg",
        "sendto",
        "write",
        "writev",
    }
)
"""Where the innermost frame is one of libc's functions that do nothing but enter the kernel, the
time is the kernel's."""

RULES: tuple[tuple[str, str], ...] = (
    (r"crc32c", CRC),
    (r"(epoll_wait|epoll_pwait|epoll_ctl) ", EPOLL),
    (r"EpollTransport\.(run|_park|_set_events) ", EPOLL),
    (r"_others_are_runnable |broker/network/adaptive_poller", EPOLL),
    (
        r"broker/(network/)?send_buffers|(_send_\w+|EpollTransport\._send\w*) broker/network/epoll",
        SEND,
    ),
    (r"send_buffers broker/network/epoll_transport", SEND),
    (r"broker/(network/)?epoll_transport", RECEIVE),
    (r"storage/io/file_slice", SEND),
    (r"protocol/frames", FRAMES),
    (r"(Connection\.note_answered|Request\.(answer|send)\w*|Request\._\w+) broker/", ANSWER),
    (r"broker/request/request_metrics", ANSWER),
    (r"FastProduce\.(complete|answer|response)|\.fill_answer|encode_|note_flushed", ANSWER),
    (r"<odradek encoder|WaitingFetch\.complete|_answer broker/handlers", ANSWER),
    (r"metadata_store/|sqlite", REST),
    (r"broker/network/connection", FRAMES),
    (r"FastProduce", DECODE),
    (r"shortcut|fast_path|<odradek decoder|protocol/headers", DECODE),
    (r"broker/", DISPATCH),
    (r"protocol/messages|protocol/(codec|decod|encod)", DECODE),
    (r"ReplicaManager\.(progressed|_later|_complete)\b", WAIT),
    (r"replication/purgatory/|partition/partition_table|runtime/timers", WAIT),
    (r"replication/read/|ReplicaManager\.fetch_messages", READ),
    (r"storage/segment/segment_reader|Log\.(_?read|_upper_bound_of)", READ),
    (r"LogSegment\.(position_to_read|_scan_for|start_position|batch_size_at)", READ),
    (r"(writev \(|RealFile\.append )|flush_appends|_flush_staged|ReplicaManager\.flush", WRITE),
    (r"publish|maybe_increment_high_watermark|_move_high_watermark", PUBLISH),
    (r"_append_index_entries|Index\.(maybe_)?append|in_sync_replicas", PUBLISH),
    (r"append_records_to_leader|note_staged|storage/log/log_validator|Log\.append_as", CHECKS),
    (r"protocol/records/(validation|layouts)", CHECKS),
    (r" (trio|outcome)/", TRIO),
)
"""Patterns of `function file`, the first that is found counts."""
_RULES = tuple((re.compile(pattern), stage) for pattern, stage in RULES)


def stage_of_frame(frame: str) -> str | None:
    """The stage a `function file` belongs to; None where its caller decides."""
    for pattern, stage in _RULES:
        if pattern.search(frame):
            return stage
    return None


def stage_of(stack: Sequence[str]) -> str:
    """The stage of a stack, given from the outermost frame to the innermost."""
    for frame in reversed(stack):
        stage = stage_of_frame(frame)
        if stage is not None:
            return stage
    return REST


def is_kernel(stack: Sequence[str]) -> bool:
    """Whether the time of a stack passes inside the kernel."""
    return stack[-1].partition(" ")[0] in KERNEL


def in_microseconds(
    stacks: Mapping[tuple[str, ...], int], user_us: float, kernel_us: float
) -> dict[tuple[str, ...], float]:
    """What each stack cost: samples outside the kernel share one time, those inside the other."""
    inside = sum(count for stack, count in stacks.items() if is_kernel(stack))
    outside = sum(stacks.values()) - inside
    return {
        stack: count * (kernel_us / inside if is_kernel(stack) else user_us / outside)
        for stack, count in stacks.items()
    }


def by_stage(costs: Mapping[tuple[str, ...], float]) -> dict[str, list[float]]:
    """What each stage cost, outside the kernel and inside it."""
    found: dict[str, list[float]] = {}
    for stack, cost in costs.items():
        found.setdefault(stage_of(stack), [0.0, 0.0])[is_kernel(stack)] += cost
    return found
