"""How long a rebalance of 50 members takes, from the last JoinGroup to the last SyncGroup answer.

    python -m odradek.tools.benchmarks.coordinator.group_rebalance [--runs 10] [--members 50]

One member leaves a stable group and comes back, so that everybody must rejoin: all others have
sent their JoinGroup and wait when the last one sends its own. The leader then assigns at once;
members speak by plain sockets.
"""

from __future__ import annotations

import argparse
import selectors
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ....bench.loads.wire import frame_of, wire_to
from ....bench.run.calibration import calibrate
from ....protocol import messages
from ....protocol.api_keys import ApiKey
from ....protocol.codec.message import Message
from ..measure import broker, machine, summary, verdict

SECONDS_GOAL = 0.2
REBALANCE_SECONDS_MAX = 60.0
REBALANCE_SESSION_MS = 45_000
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff"
ASSIGNMENT = (
    b"\x00\x00\x00\x00\x00\x01\x00\x06orders\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"
)
MEMBER_ID_REQUIRED = 79


class MemberConnection:
    """One connection, and what the group knows of who is behind it.

    Attributes:
        group: the id of its group.
        id: its member id, once it has one.
        generation: of the group, or the member's epoch.
        socket: of its connection.
    """

    def __init__(self, address: str, group: str) -> None:
        self.group = group
        self.id = ""
        self.generation = -1
        self.leads: list[str] = []
        self.wire = wire_to(address)
        self.socket = self.wire.socket
        self._sent = ApiKey.API_VERSIONS, 0

    def frame(self, request: Message) -> bytes:
        """A request of the newest version, as it is sent."""
        schema = type(request)
        assert schema.api_key is not None
        self._sent = ApiKey(schema.api_key), schema.versions[-1]
        return frame_of(request, schema.versions[-1])

    def send(self, request: Message) -> None:
        """Send a request; `receive` takes its answer."""
        self.wire.send(self.frame(request))

    def receive(self) -> Any:
        """The answer to the last request."""
        return self.wire.decode(self.wire.receive(), *self._sent)

    # -- a classic group -----------------------------------------------------------------------

    def send_join(self) -> None:
        """JoinGroup."""
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
        request = messages.JoinGroupRequest(
            group_id=self.group,
            member_id=self.id,
            protocol_type="consumer",
            session_timeout_ms=REBALANCE_SESSION_MS,
            rebalance_timeout_ms=60_000,
            protocols=[protocol(name="range", metadata=SUBSCRIPTION)],
        )
        self.send(request)

    def take_id(self) -> None:
        """Take the id that the coordinator gives to who has none yet."""
        answer = self.receive()
        check(answer.error_code == MEMBER_ID_REQUIRED, answer)
        self.id = answer.member_id

    def take_join(self) -> None:
        """Take the answer to JoinGroup."""
        answer = self.receive()
        check(answer.error_code == 0, answer)
        self.generation = answer.generation_id
        self.leads = [member.member_id for member in answer.members]

    def send_sync(self) -> None:
        """SyncGroup; the leader's has everybody's assignment."""
        one = messages.SyncGroupRequest.SyncGroupRequestAssignment
        request = messages.SyncGroupRequest(
            group_id=self.group,
            member_id=self.id,
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[one(member_id=each, assignment=ASSIGNMENT) for each in self.leads],
        )
        self.send(request)

    def take_sync(self) -> None:
        """Take the answer to SyncGroup."""
        answer = self.receive()
        check(answer.error_code == 0, answer)

    def leave(self) -> None:
        """LeaveGroup."""
        identity = messages.LeaveGroupRequest.MemberIdentity
        self.send(
            messages.LeaveGroupRequest(group_id=self.group, members=[identity(member_id=self.id)])
        )
        check(self.receive().error_code == 0, "cannot leave")
        self.id = ""


def check(holds: bool, otherwise: object) -> None:
    """End the benchmark with what went wrong, if something did."""
    if not holds:
        raise SystemExit(f"the broker answered: {otherwise}")


@contextmanager
def members_of(address: str, groups: Iterable[str]) -> Iterator[list[MemberConnection]]:
    """A connection for each group id named, where the groups' coordinator is ready."""
    with ExitStack() as stack:
        members = [MemberConnection(address, group) for group in groups]
        for member in members:
            stack.callback(member.socket.close)
        keys = sorted({member.group for member in members})
        request = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=keys)
        deadline = time.monotonic() + REBALANCE_SECONDS_MAX
        while True:
            members[0].send(request)
            if not any(each.error_code for each in members[0].receive().coordinators):
                break
            check(time.monotonic() < deadline, "there is no coordinator")
        yield members


def join_all(members: list[MemberConnection]) -> None:
    """Let members without ids join their groups, and sync."""
    for member in members:
        member.send_join()
    for member in members:
        member.take_id()
    for member in members:
        member.send_join()
    for member in members:
        member.take_join()
    for member in members:
        member.send_sync()
    for member in members:
        member.take_sync()


def rebalance(members: list[MemberConnection]) -> float:
    """Seconds from the last member's JoinGroup to the last answer to SyncGroup.

    The last member has left, and asks for an id: the others wait for it.
    """
    *others, last = members
    generation = last.generation
    last.leave()
    last.send_join()
    last.take_id()
    for member in others:
        member.send_join()
    wait_until_joining(last, {member.id for member in others})
    began = time.perf_counter()
    last.send_join()
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.socket, selectors.EVENT_READ, member)
        joining, syncing = set(members), set(members)
        while syncing:
            for key, _ in selector.select(REBALANCE_SECONDS_MAX):
                member = key.data
                if member in joining:
                    joining.remove(member)
                    member.take_join()
                    member.send_sync()
                else:
                    member.take_sync()
                    syncing.remove(member)
    seconds = time.perf_counter() - began
    (leader,) = (member for member in members if member.leads)
    check(set(leader.leads) == {member.id for member in members}, "not everybody joined")
    check(all(m.generation == generation + 1 for m in members), "there were two rebalances")
    return seconds


def wait_until_joining(member: MemberConnection, ids: set[str]) -> None:
    """Wait until the group rebalances, and all others of it wait for this member."""
    host, port = member.socket.getpeername()
    other = MemberConnection(f"{host}:{port}", member.group)
    deadline = time.monotonic() + REBALANCE_SECONDS_MAX
    while True:
        other.send(messages.DescribeGroupsRequest(groups=[member.group]))
        group = other.receive().groups[0]
        here = {each.member_id for each in group.members}
        if group.group_state == "PreparingRebalance" and here == ids:
            break
        check(time.monotonic() < deadline, f"the group is {group.group_state}")
    other.socket.close()


def main() -> int:
    """Run, print, and fail if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--members", type=int, default=50)
    options = parser.parse_args()
    print(machine(), f"calibration {calibrate():.3f} s")
    with (
        broker() as running,
        members_of(running.address, ["rebalanced"] * options.members) as members,
    ):
        join_all(members)
        seconds = [rebalance(members) for _ in range(options.runs)]
    print(f"last join to last sync {summary(seconds, 's')}")
    middle = sorted(seconds)[len(seconds) // 2]
    name = f"rebalance of {options.members} members"
    return 0 if verdict(name, middle, SECONDS_GOAL, "s", at_most=True) else 1


if __name__ == "__main__":
    raise SystemExit(main())
