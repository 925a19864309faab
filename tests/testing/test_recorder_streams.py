"""What a proxy makes of bytes: answers cut anywhere, requests and answers put together."""

from __future__ import annotations

import random
import struct

import pytest

from odradek.protocol import encode_body
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.headers import request_header
from odradek.protocol.messages import ProduceRequest
from odradek.testing.recorder.conversation import (
    UNDER_WAY_MAX,
    AnswerStream,
    Conversation,
    TooManyRequests,
    is_answered,
)
from odradek.testing.recorder.recording import NO_API, FrameKind


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


class Answers:
    """Holds answers that begin with `hold`, and gives `HELD!` with the rest in their place."""

    def __init__(self, frame_bytes_max: int = 1000) -> None:
        self.begun: list[bytes] = []
        self.whole: list[bytes] = []
        self.stream = AnswerStream(frame_bytes_max, self.begin, self.finish)

    def begin(self, start: bytes) -> bool:
        self.begun.append(bytes(start))
        return bytes(start) == b"hold"

    def finish(self, frame: bytes) -> bytes | None:
        self.whole.append(bytes(frame))
        return b"HELD!" + bytes(frame[4:]) if bytes(frame[:4]) == b"hold" else b"never sent"

    def feed(self, *pieces: bytes) -> bytes:
        sent = b""
        for piece in pieces:
            sent += b"".join(map(bytes, self.stream.feed(memoryview(piece))))
        return sent


CONTENTS = [b"pass", b"", b"ab", b"hold me", b"pass" * 50, b"hold" + b"x" * 300, b"hold", b"abc"]
WIRE = b"".join(map(framed, CONTENTS))
SENT = b"".join(
    framed(b"HELD!" + each[4:] if each.startswith(b"hold") else each) for each in CONTENTS
)


def test_answers_come_through_however_they_are_cut() -> None:
    rng = random.Random(4)
    for _ in range(300):
        cuts = sorted(rng.sample(range(len(WIRE) + 1), rng.randrange(0, 12)))
        pieces = [WIRE[a:b] for a, b in zip([0, *cuts], [*cuts, len(WIRE)], strict=True)]
        answers = Answers()
        assert answers.feed(*pieces) == SENT
        assert answers.whole == CONTENTS
        assert answers.begun == [each[:4] for each in CONTENTS]


def test_answers_come_through_byte_by_byte() -> None:
    answers = Answers()
    assert answers.feed(*(WIRE[n : n + 1] for n in range(len(WIRE)))) == SENT
    assert answers.whole == CONTENTS


def test_what_need_not_be_whole_is_passed_on_before_it_is() -> None:
    answers = Answers()
    assert answers.feed(framed(b"p" * 100)[:50]) == framed(b"p" * 100)[:50]
    assert answers.feed(framed(b"hold" + b"x" * 100)[:0]) == b""
    assert answers.whole == []


@pytest.mark.parametrize("size", [-1, 1001, 0x16030100])
def test_an_answer_of_impossible_size_is_a_failure(size: int) -> None:
    for pieces in ([struct.pack(">i", size) + b"x"], [struct.pack(">i", size)[:3], b"\xff" * 8]):
        answers = Answers()
        sent = answers.feed(framed(b"pass"), *pieces)
        assert sent == framed(b"pass")
        assert answers.stream.failure is not None
        assert answers.feed(framed(b"pass")) == b""


def test_the_largest_answer_is_allowed() -> None:
    assert Answers(frame_bytes_max=8).feed(framed(b"p" * 8)) == framed(b"p" * 8)


# --- Conversations --------------------------------------------------------------------------


def request(api_key: int, version: int, correlation_id: int, body: bytes = b"") -> bytes:
    return request_header(api_key, version, correlation_id, "c") + body


def number(correlation_id: int) -> bytes:
    return struct.pack(">i", correlation_id)


def test_an_answer_finds_its_request() -> None:
    conversation = Conversation()
    first = conversation.add_request(request(ApiKey.FETCH, 12, 1), 10)
    second = conversation.add_request(request(ApiKey.HEARTBEAT, 4, 2), 20)
    assert conversation.answered_by(number(1)) is first
    conversation.settle(first)
    assert conversation.answered_by(number(2)) is second
    conversation.settle(second)
    assert conversation.answered_by(number(2)) is None


def test_an_answer_to_nothing_is_distinguished() -> None:
    conversation = Conversation()
    conversation.add_request(request(ApiKey.FETCH, 12, 1), 0)
    assert conversation.answered_by(number(7)) is None
    assert conversation.answered_by(b"\0\0") is None


@pytest.mark.parametrize("version", ProduceRequest.versions)
@pytest.mark.parametrize("transactional_id", [None, "payments"])
@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_produce_without_acks_waits_for_no_answer(
    version: int, transactional_id: str | None, acks: int
) -> None:
    if version < 3 and transactional_id is not None:
        return  # such a version cannot say it
    message = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=0)
    frame = request(ApiKey.PRODUCE, version, 1, encode_body(message, version))
    assert is_answered(frame, version) == (acks != 0)
    conversation = Conversation()
    requested = conversation.add_request(frame, 0)
    assert conversation.answered_by(number(1)) is (requested if acks else None)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0\x09\0\0\0\1\0\x01c", b"\0\0\0\3\0\0\0\1\xff\xff"])
def test_a_broken_produce_is_taken_for_one_that_is_answered(frame: bytes) -> None:
    assert is_answered(frame, 9)


def test_what_follows_the_old_handshake_are_tokens_until_a_request_comes() -> None:
    conversation = Conversation()
    handshake = conversation.add_request(request(ApiKey.SASL_HANDSHAKE, 0, 1), 0)
    conversation.settle(handshake)
    for token in (b"\0alice\0secret", b"\0A\0p", b"n,,n=alice,r=x", b"", b"\0\0\0"):
        requested = conversation.add_request(token, 0)
        assert (requested.kind, requested.api_key) == (FrameKind.TOKEN, NO_API)
        assert conversation.answered_by(b"") is requested
        conversation.settle(requested)
    requested = conversation.add_request(request(ApiKey.METADATA, 9, 2), 0)
    assert requested.kind is FrameKind.REQUEST
    assert conversation.add_request(request(999, 0, 3), 0).kind is FrameKind.REQUEST


def test_requests_without_answers_are_bounded() -> None:
    conversation = Conversation()
    for correlation_id in range(UNDER_WAY_MAX):
        conversation.add_request(request(ApiKey.FETCH, 12, correlation_id), 0)
    with pytest.raises(TooManyRequests):
        conversation.add_request(request(ApiKey.FETCH, 12, 0), 0)
