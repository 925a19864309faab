"""A follower whose log ends just where its leader's begins, within one of the leader's batches."""

from __future__ import annotations

from pathlib import Path

from support.scripted_leader import NOW_MS, Followers, Replica, ScriptedLeader, batch, tp

T0 = tp(0)


def test_one_that_diverged_begins_anew_where_its_leader_deleted_within_a_batch(
    tmp_path: Path,
) -> None:
    """Deleted records took the leader's epochs with them, so no answer can say where they part."""
    leader, follower = Replica(tmp_path / "leader", T0), Replica(tmp_path / "follower", T0)
    follower.lead(1, b"never", b"replicated")
    leader.log.assign_epoch_start(2, 0)
    leader.log.append_as_leader(batch(b"a", b"b", b"c"), leader_epoch=2, now_ms=NOW_MS)
    leader.log.flush_appends()
    leader.lead(3, b"d")
    leader.commit(4)
    leader.log.advance_log_start_offset(2)
    returned = Followers({T0: follower})
    returned.follow(3)
    returned.catch_up(ScriptedLeader({T0: leader}, 3))
    assert not returned.fetcher.failed
    assert follower.values == [b"c", b"d"]
    assert follower.log.log_start_offset == 2
    assert follower.partition.high_watermark == 4


def test_one_in_sync_keeps_its_log_where_its_leader_deleted_everything(tmp_path: Path) -> None:
    leader, follower = Replica(tmp_path / "leader", T0), Replica(tmp_path / "follower", T0)
    leader.lead(1, b"a", b"b")
    leader.replicate_to(follower)
    for each in (leader, follower):
        each.commit(2)
    leader.log.advance_log_start_offset(2)
    leader.lead(1, b"c")
    kept = follower.log.segments.first.size
    still = Followers({T0: follower})
    still.follow(1)
    still.catch_up(ScriptedLeader({T0: leader}, 1))
    assert follower.values == [b"c"]
    assert follower.log.segments.first.size > kept
