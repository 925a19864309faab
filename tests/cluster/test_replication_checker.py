"""The checker of replicated partitions finds each kind of broken promise, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.replication_checker import Replica, ReplicationChecker, Token

pytestmark = pytest.mark.short


def sound() -> ReplicationChecker:
    """Two senders sent three records each to partition 0, all acknowledged and read."""
    checker = ReplicationChecker()
    for offset in range(6):
        token = checker.sent("ab"[offset % 2], 0)
        checker.acknowledged(token, 0, offset)
        checker.read("reader", 0, offset, token)
        checker.listed("poller", 0, "end", offset + 1)
    return checker


CONTENTS = {offset: Token("ab"[offset % 2], offset // 2) for offset in range(6)}
BATCHES = {0: b"first", 3: b"second"}


def found_at_the_end(contents: dict[int, Token]) -> set[str]:
    checker = sound()
    checker.finish(0, contents)
    return checker.kinds()


def test_a_history_without_faults_breaks_no_promise() -> None:
    checker = sound()
    checker.finish(0, CONTENTS)
    checker.compare_replicas(0, [Replica(1, 0, BATCHES), Replica(2, 0, BATCHES)], 6)
    assert not checker.violations
    assert checker.counts == {
        "sent": 6,
        "acknowledged": 6,
        "read": 6,
        "listed": 6,
        "kept": 6,
        "compared": 2,
    }


def test_records_that_were_not_acknowledged_may_be_there_or_not() -> None:
    for contents in (CONTENTS, {**CONTENTS, 6: Token("a", 3)}):
        checker = sound()
        checker.sent("a", 0)
        checker.finish(0, contents)
        assert not checker.violations


def test_an_acknowledged_record_that_is_gone_or_elsewhere_is_lost() -> None:
    cut = {offset: token for offset, token in CONTENTS.items() if offset < 5}
    assert "lost" in found_at_the_end(cut)
    assert "lost" in found_at_the_end({**cut, 6: CONTENTS[5]})


def test_a_record_acknowledged_without_its_offset_must_be_somewhere() -> None:
    checker = ReplicationChecker()
    token = checker.sent("a", 0)
    checker.acknowledged(token, 0, None)
    checker.finish(0, {7: token})
    assert not checker.violations
    checker.finish(0, {7: checker.sent("b", 0)})
    assert checker.kinds() == {"lost"}


def test_two_records_acknowledged_at_one_offset_are_a_loss() -> None:
    checker = ReplicationChecker()
    for sender in "ab":
        checker.acknowledged(checker.sent(sender, 0), 0, 7)
    assert checker.kinds() == {"lost"}


def test_a_record_that_was_read_and_is_gone_has_vanished() -> None:
    checker = ReplicationChecker()
    checker.read("reader", 0, 0, checker.sent("a", 0))
    checker.finish(0, {})
    assert checker.kinds() == {"vanished"}


def test_what_was_deleted_on_purpose_is_not_missed() -> None:
    checker = sound()
    checker.finish(0, {5: CONTENTS[5]}, log_start_offset=5)
    assert not checker.violations


def test_an_offset_that_holds_another_record_for_another_reader_has_changed() -> None:
    checker = sound()
    checker.read("another", 0, 4, Token("b", 1))
    assert checker.kinds() == {"changed"}


def test_a_reader_that_misses_records_or_gets_them_again_is_reported() -> None:
    checker = sound()
    checker.began_to_read("another", 0, 2)
    checker.read("another", 0, 3, CONTENTS[3])
    assert checker.kinds() == {"skipped"}
    checker = sound()
    checker.read("reader", 0, 5, CONTENTS[5])
    assert checker.kinds() == {"repeated"}
    checker = sound()
    checker.began_to_read("reader", 0, 5)
    checker.read("reader", 0, 5, CONTENTS[5])
    assert not checker.violations


def test_a_record_that_is_there_twice_is_doubled() -> None:
    assert found_at_the_end({**CONTENTS, 6: CONTENTS[5]}) == {"doubled"}


def test_records_of_a_sender_in_another_order_are_reordered() -> None:
    checker = ReplicationChecker()
    first, second = checker.sent("a", 0), checker.sent("a", 0)
    checker.finish(0, {0: second, 1: first})
    assert checker.kinds() == {"reordered"}


def test_a_record_that_nobody_sent_is_invented() -> None:
    assert found_at_the_end({**CONTENTS, 6: Token("c", 0)}) == {"invented"}
    assert found_at_the_end({**CONTENTS, 6: Token("a", 3)}) == {"invented"}


def test_an_end_or_a_start_that_goes_back_is_reported() -> None:
    for which in ("start", "end"):
        checker = ReplicationChecker()
        checker.listed("poller", 0, which, 5)
        checker.listed("poller", 1, which, 4)
        checker.listed("poller", 0, which, 5)
        assert not checker.violations
        checker.listed("poller", 0, which, 4)
        assert checker.kinds() == {"went back"}


@pytest.mark.parametrize(
    "other",
    [
        {0: b"first"},
        {0: b"first", 3: b"secone"},
        {0: b"first", 2: b"x", 3: b"second"},
        {0: b"first", 4: b"second"},
    ],
)
def test_replicas_whose_bytes_differ_below_the_high_watermark_have_diverged(
    other: dict[int, bytes],
) -> None:
    checker = ReplicationChecker()
    checker.compare_replicas(0, [Replica(1, 0, BATCHES), Replica(2, 0, other)], 6)
    assert checker.kinds() == {"diverged"}


def test_replicas_may_differ_before_a_log_start_and_from_the_high_watermark_on() -> None:
    checker = ReplicationChecker()
    ahead = {3: b"second", 6: b"not replicated yet"}
    checker.compare_replicas(0, [Replica(1, 0, BATCHES), Replica(2, 3, ahead)], 6)
    assert not checker.violations
    assert checker.counts["compared"] == 1


def refuse(checker: ReplicationChecker) -> None:
    checker.refused(Token("a", 0), 0, "timed out")


def fall_silent(checker: ReplicationChecker) -> None:
    checker.silent("for a minute")


@pytest.mark.parametrize(("happen", "kind"), [(refuse, "refused"), (fall_silent, "silent")])
def test_a_record_given_up_and_a_long_silence_are_violations(
    happen: Callable[[ReplicationChecker], None], kind: str
) -> None:
    checker = sound()
    happen(checker)
    assert checker.kinds() == {kind}
    assert kind in checker.report()


def test_a_record_sent_again_in_another_epoch_is_counted_and_no_fault() -> None:
    checker = ReplicationChecker()
    token = checker.sent("a", 0)
    contents = {0: token, 1: token}
    checker.finish(0, contents, producers={0: (7, 0), 1: (7, 1)})
    assert checker.violations == []
    assert checker.counts["sent again in another epoch"] == 1
    checker.finish(0, contents, producers={0: (7, 1), 1: (7, 1)})
    assert checker.kinds() == {"doubled"}
