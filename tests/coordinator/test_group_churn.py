"""A group under churn: members come, go, crash and return, the log stalls, the broker restarts.

One seed is one history; a failure names the seed, and the same seed tells it again.
"""

import random
from collections import Counter

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.group.classic.messages import LeavingMember
from odradek.coordinator.group.classic.states import ClassicGroupState

SEEDS = range(60)
STEPS = 300
SESSION_MS = 10_000
REBALANCE_MS = 30_000
REJOIN_WITH_ID = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED)
PARTITIONS = [("orders", 0), ("orders", 1), ("bills", 0)]


class Client:
    """A consumer as the protocol has it: it remembers what it was told, and nothing else."""

    def __init__(self, instance: str | None) -> None:
        self.instance = instance
        self.forget()

    def forget(self) -> None:
        """Crash, or begin anew."""
        self.member_id = ""
        self.generation_id = -1
        self.is_synced = False
        self.leads: list[str] = []
        self.joining = None
        self.syncing = None
        self.committing = None

    @property
    def is_waiting(self) -> bool:
        return bool(self.joining or self.syncing or self.committing)

    def must_rejoin(self, error: ErrorCode) -> None:
        """What a client does about an error: rejoin with its id, or without."""
        self.generation_id = -1
        self.is_synced = False
        if error not in REJOIN_WITH_ID:
            self.member_id = ""


class Churn:
    """Clients 0 to 3 are dynamic, 4 and 5 static. What rng picks is `ACTIONS`."""

    def __init__(self, bench, seed: int) -> None:
        self.bench = bench
        self.rng = random.Random(seed)
        self.seen: Counter[str] = Counter()
        self.clients = [Client(f"i-{n}" if n >= 4 else None) for n in range(6)]
        self.leaders: dict[tuple[int, int], str] = {}
        self.runs = 0
        self.generation_id = 0
        self.acknowledged: dict[tuple[str, int], int] = {}
        self.attempted: dict[tuple[str, int], set[int]] = {key: set() for key in PARTITIONS}
        self.offset = 0

    def step(self) -> None:
        """Let something happen, and see that what must always be so is so."""
        action = self.rng.choices(list(ACTIONS), ACTIONS.values())[0]
        getattr(self, action)()
        self.hear()
        self.check()

    # -- clients ----------------------------------------------------------------------------

    def let_a_client_go_on(self) -> None:
        client = self.rng.choice(self.clients)
        if client.is_waiting:
            return
        if client.generation_id < 0:
            self.join(client)
        elif not client.is_synced:
            self.sync(client)
        elif self.rng.random() < 0.5:
            self.commit(client)
        else:
            self.heartbeat(client)

    def let_a_client_rejoin(self) -> None:
        client = self.rng.choice(self.clients)
        if not client.is_waiting:
            self.join(client)

    def let_a_client_leave(self) -> None:
        client = self.rng.choice(self.clients)
        if not client.is_waiting and client.member_id:
            self.bench.leave(LeavingMember(client.member_id, client.instance))
            client.forget()

    def crash_a_client(self) -> None:
        self.rng.choice(self.clients).forget()

    def join(self, client: Client) -> None:
        changed = self.rng.random() < 0.1
        client.is_synced = False
        client.joining = self.bench.join(
            client.member_id,
            instance=client.instance,
            protocols={"range": b"changed" if changed else b"usual", "sticky": b""},
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
        )

    def sync(self, client: Client) -> None:
        made_for = f"{self.runs}/{client.generation_id}".encode()
        client.syncing = self.bench.sync(
            client.member_id,
            client.generation_id,
            dict.fromkeys(client.leads, made_for),
            instance=client.instance,
        )

    def heartbeat(self, client: Client) -> None:
        error = self.bench.heartbeat(
            client.member_id, client.generation_id, instance=client.instance
        )
        self.seen[f"heartbeat {error.name}"] += 1
        if error:
            client.must_rejoin(error)

    def commit(self, client: Client) -> None:
        key = self.rng.choice(PARTITIONS)
        self.offset += 1
        try:
            pending = self.bench.commit(
                (*key, self.offset),
                member_id=client.member_id,
                generation_id=client.generation_id,
                instance=client.instance,
            )
        except KafkaError as refusal:
            self.seen[f"commit {refusal.code.name}"] += 1
            client.must_rejoin(refusal.code)
            return
        self.attempted[key].add(self.offset)
        client.committing = (key, self.offset, pending)

    # -- the world --------------------------------------------------------------------------

    def let_time_pass(self) -> None:
        self.bench.advance(self.rng.choice([1, 100, 1_000, 3_000]))

    def let_much_time_pass(self) -> None:
        self.bench.advance(self.rng.choice([SESSION_MS, REBALANCE_MS]))

    def stall_the_log(self) -> None:
        self.bench.log.is_held = True

    def release_the_log(self) -> None:
        self.bench.log.is_held = False
        self.bench.log.release()

    def let_appends_fail(self) -> None:
        self.bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS

    def let_appends_succeed(self) -> None:
        self.bench.log.fail_with = ErrorCode.NONE

    def restart_the_broker(self) -> None:
        self.bench.log.is_held = False
        self.bench.log._waiting.clear()  # nobody is left to be told
        self.bench.restart()
        for group in self.bench.coordinator._shards.groups.values():
            self.seen[f"loaded {group.state.value}"] += 1
        self.runs += 1
        self.generation_id = 0
        for client in self.clients:
            client.joining = client.syncing = client.committing = None

    # -- what clients hear ------------------------------------------------------------------

    def hear(self) -> None:
        """Give clients the answers that came meanwhile, and hold these to the promises."""
        for client in self.clients:
            if client.joining is not None and not client.joining.is_waiting:
                answer, client.joining = client.joining.answer, None
                self.hear_join(client, answer)
            if client.syncing is not None and not client.syncing.is_waiting:
                answer, client.syncing = client.syncing.answer, None
                self.hear_sync(client, answer)
            if client.committing is not None and not client.committing[2].is_waiting:
                (key, offset, pending), client.committing = client.committing, None
                (error,) = pending.answer
                self.seen[f"commit {error.name}"] += 1
                if not error:
                    self.acknowledged[key] = max(offset, self.acknowledged.get(key, 0))

    def hear_join(self, client: Client, answer) -> None:
        self.seen[f"join {answer.error.name}"] += 1
        client.member_id = answer.member_id
        if answer.error:
            client.must_rejoin(answer.error)
            return
        client.generation_id = answer.generation_id
        client.leads = [member.member_id for member in answer.members]
        is_leader = answer.leader == answer.member_id
        assert bool(client.leads) == is_leader
        self.seen["leads"] += is_leader
        self.seen["skips assignment"] += answer.skip_assignment
        if client.instance is not None:
            return
        # Within a generation no dynamic member is told of two leaders: a static one may
        # change its id, but not its instance.
        leader = answer.leader[: -len("-00000000-0000-0000-0000-000000000000")]
        if leader == "client":
            leader = answer.leader
        known = self.leaders.setdefault((self.runs, answer.generation_id), leader)
        assert leader == known, "two leaders in one generation"

    def hear_sync(self, client: Client, answer) -> None:
        self.seen[f"sync {answer.error.name}"] += 1
        if answer.error:
            client.must_rejoin(answer.error)
            return
        client.is_synced = True
        if answer.assignment:
            made_for = int(answer.assignment.decode().split("/")[1])
            assert made_for == client.generation_id, "an assignment of another generation"
            self.seen["assigned"] += 1

    # -- what is always so ------------------------------------------------------------------

    def check(self) -> None:
        groups = self.bench.coordinator._shards.groups
        for group in groups.values():
            self.seen[group.state.value] += 1
            self.check_membership(group)
        if "group" in groups:
            assert groups["group"].generation_id >= self.generation_id
            self.generation_id = groups["group"].generation_id
        found = self.bench.offsets()
        for key, offset in self.acknowledged.items():
            later = {other for other in self.attempted[key] if other > offset}
            assert found.get(key) in {offset} | later, "an acknowledged commit is lost"

    def check_membership(self, group) -> None:
        members = group.members
        waiting = [member for member in members.values() if member.is_awaiting_join]
        assert group.members_awaiting_join == len(waiting)
        supported = Counter(p.name for member in members.values() for p in member.protocols)
        assert group.supported_protocols == supported
        assert group.pending_sync_members <= members.keys()
        assert not group.pending_members.keys() & members.keys()
        assert (group.leader_id in members) == bool(members)
        for instance, member_id in group.static_members.items():
            assert members[member_id].group_instance_id == instance
        assert not (group.state is ClassicGroupState.EMPTY and members)
        if group.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
            assert members
            assert group.protocol_name is not None
        for member in members.values():
            assert (member.session and member.session.is_running) or member.keeps_session_by_waiting

    def end(self) -> None:
        """Nobody who waits is forgotten, and a group without living members becomes empty."""
        self.let_appends_succeed()
        self.release_the_log()
        self.bench.advance(1_000_000)
        self.hear()
        self.check()
        assert not [client for client in self.clients if client.is_waiting]
        if "group" in self.bench.coordinator._shards.groups:
            assert self.bench.state() == "Empty"
        assert len(self.bench.timers) == 1, "the look for expired offsets, and nothing else"


ACTIONS = {
    "let_a_client_go_on": 60,
    "let_a_client_rejoin": 3,
    "let_a_client_leave": 2,
    "crash_a_client": 3,
    "let_time_pass": 20,
    "let_much_time_pass": 1,
    "stall_the_log": 1,
    "release_the_log": 4,
    "let_appends_fail": 0.5,
    "let_appends_succeed": 4,
    "restart_the_broker": 0.7,
}

MUST_HAVE_HAPPENED = [
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "join NONE",
    "join MEMBER_ID_REQUIRED",
    "join UNKNOWN_MEMBER_ID",
    "skips assignment",
    "sync NONE",
    "sync REBALANCE_IN_PROGRESS",
    "sync COORDINATOR_NOT_AVAILABLE",
    "assigned",
    "heartbeat NONE",
    "heartbeat REBALANCE_IN_PROGRESS",
    "heartbeat UNKNOWN_MEMBER_ID",
    "commit NONE",
    "commit COORDINATOR_NOT_AVAILABLE",
    "loaded Stable",
    "loaded Empty",
]


@pytest.mark.parametrize("initial_rebalance_delay_ms", [0, 3_000])
def test_a_group_keeps_its_promises_under_churn(
    make_bench, initial_rebalance_delay_ms: int
) -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        churn = Churn(make_bench(initial_rebalance_delay_ms=initial_rebalance_delay_ms), seed)
        try:
            for _ in range(STEPS):
                churn.step()
            churn.end()
        except BaseException as failure:
            failure.add_note(f"seed {seed}")
            raise
        seen += churn.seen
    assert [what for what in MUST_HAVE_HAPPENED if not seen[what]] == []
