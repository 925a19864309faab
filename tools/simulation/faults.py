"""What goes wrong in a run, and what is allowed to go wrong at the same time.

Processes die, freeze, and lose their sessions at random. Power is another thing: see
`may_lose_power`.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Protocol

from ...metadata_store import znodes
from ...metadata_store.store import Delete
from .checkers.log_checker import LogChecker
from .checkers.store_checker import StoreChecker
from .disks.memory_files import MemoryFiles
from .kernel import Kernel
from .network import Network
from .node import Node
from .store import STORE, StoreServer

OPERATIONS_TO_GO_MAX = 60
AWAY_SESSIONS_MAX = 2
"""For so many sessions at most a broker is dead or frozen."""
CUT_MS_MAX = 10_000
CLOCK_STEP_MS = 3_000_000
"""Less than the hour by which Kafka lets a record's timestamp be ahead of its leader's clock."""
DRIFT_PERMILLE = 50
"""By how much a clock runs fast or slow: far more than any does."""
SLOW_US = 400_000
FULL_MS_MAX = 4_000


class FaultyCluster(Protocol):
    """What faults need of the simulation.

    Attributes:
        nodes: all brokers' machines.
        is_peace: whether no fault may happen.
    """

    kernel: Kernel
    network: Network
    store: StoreServer
    random: Random
    nodes: Sequence[Node]
    log_checker: LogChecker
    store_checker: StoreChecker
    is_peace: bool

    def trace(self, text: str) -> None:
        """Add a line to the trace of the run."""


class Faults:
    """Lets faults happen.

    Args:
        cluster: the cluster.
        weights: how often each happens, in relation to the others, by its name in `FAULTS`.
        skipped: numbers of faults that do not happen, counted from the first.

    Attributes:
        counts: how often each happened.
        numbered: how many were drawn, whether they could happen or not.
        may_start: whether the dead come back.
    """

    def __init__(
        self,
        cluster: FaultyCluster,
        weights: Mapping[str, int],
        skipped: frozenset[int] = frozenset(),
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.numbered = 0
        self.may_start = True
        self._cluster = cluster
        self._random = cluster.random
        self._names = list(weights)
        self._weights = list(weights.values())
        self._skipped = skipped
        self._armed: Node | None = None
        self._away_ms_max = AWAY_SESSIONS_MAX * cluster.store.session_timeout_ms

    def let_one_happen(self) -> None:
        """One of them, or a broker that failed comes back."""
        cluster = self._cluster
        if cluster.is_peace:
            return
        (name,) = self._random.choices(self._names, self._weights)
        self.numbered += 1
        node = self._victim()
        if self.numbered - 1 in self._skipped:
            return
        if node.is_alive and FAULTS[name](self, node):
            self.counts[name] += 1

    def _victim(self) -> Node:
        """Often the controller."""
        controllers = [node for node in self._cluster.nodes if node.is_controller]
        if controllers and self._random.random() < 0.3:
            return self._random.choice(controllers)
        return self._random.choice(self._cluster.nodes)

    def _after_ms(self, ms_max: int, function: Callable[[], None]) -> None:
        share = self._random.random()
        self._cluster.kernel.after(int(share * share * ms_max * 1000) + 1000, function)

    def _say(self, text: str) -> None:
        self._cluster.trace(text)

    # -- what may happen -----------------------------------------------------------------------

    @property
    def _is_fragile(self) -> bool:
        """Whether someone in an ISR may have lost records, or soon will: nobody else may go."""
        checker = self._cluster.log_checker
        return not checker.allows_unclean and (bool(checker.damaged) or self._armed is not None)

    def _may_end(self, node: Node) -> bool:
        """Whether a broker may die or lose its session, so that it leaves ISRs."""
        return not self._is_fragile

    def may_lose_power(self, node: Node) -> bool:
        """Whether what a broker has not synced may go.

        Kafka acknowledges what is in the memory of the ISR's machines, so they must not all
        lose power. Here one does at a time, and whoever else is in its ISRs stays alive and
        registered until the controller has noticed, and has taken it from them: that is, it is
        not the last one in sync, nobody is about to let it in, and the controller knows the others
        (Kafka's own limit before KIP-966; article 001). A controller that loses power itself would
        be followed by one that does not see that it was away.
        """
        cluster = self._cluster
        checker = cluster.log_checker
        if checker.allows_unclean:
            return True
        if checker.damaged or node.is_controller or self._is_anybody_out_of_reach(node):
            return False
        controllers = [each for each in cluster.nodes if each.is_controller]
        if len(controllers) != 1 or controllers[0].session.loses_next:
            return False
        broker = controllers[0].broker
        assert broker is not None
        known = {
            each: live.epoch for each, live in broker.controller.active.context.live_brokers.items()
        }
        if known != self._registered() or node.broker_id not in known:
            return False
        who = node.broker_id
        # One that is dead, or back and not registered yet, is known by a session that will end; one
        # whose disk fails will not have in the end what it is in sync with.
        staying = {
            each.broker_id
            for each in cluster.nodes
            if each is not node
            and each.broker is not None
            and each.broker.controller.broker_epoch == known.get(each.broker_id)
            and not (
                each.files.faults or each.broker.replica_manager.log_manager.directories.has_trouble
            )
        }
        for held in cluster.store_checker.all_held():
            if held.state is None:
                continue
            if who in held.state.isr and staying.isdisjoint(held.state.isr):
                return False
        return not cluster.store_checker.is_moving and not any(
            who in partition.pending_isr_change.isr
            for each in cluster.nodes
            if each is not node
            for partition in each.partitions.values()
            if partition.pending_isr_change is not None
        )

    def _registered(self) -> dict[int, int]:
        table = self._cluster.store.table
        found = {}
        for broker_id in self._cluster.store_checker.registered():
            stored = table.get(znodes.broker_path(broker_id))
            found[broker_id] = -1 if stored is None else stored.creation_id
        return found

    def _is_anybody_out_of_reach(self, node: Node) -> bool:
        """Whether another broker may lose its session soon, or give up what it is in sync with."""
        cluster = self._cluster
        return (
            cluster.store.slow_us > 0
            or any(STORE in route for route in cluster.network.cut)
            or any(
                each.process.is_frozen
                or (each.is_alive and (each.session.is_over or each.is_stopping))
                for each in cluster.nodes
                if each is not node
            )
        )

    # -- brokers -------------------------------------------------------------------------------

    def start(self, node: Node) -> None:
        """A process begins; it may crash before it is ready."""
        if node.is_alive or not self.may_start:
            return
        self._say(f"{node} starts")
        if not self._cluster.is_peace and self._random.random() < 0.1 and not self._is_fragile:
            self._arm(node)
        node.start()

    def strike(self, node: Node) -> None:
        """An armed disk has stopped in the middle of something."""
        self._armed = None
        if self.may_lose_power(node):
            self._lose_power(node, "loses power in the middle of something")
        else:
            self._die(node, "is killed in the middle of something")

    def _die(self, node: Node, how: str) -> None:
        self._say(f"{node} {how}")
        if self._armed is node:
            self._armed = None
        node.kill()
        self._start_later(node)

    def _lose_power(self, node: Node, how: str) -> None:
        self._say(f"{node} {how}")
        if self._armed is node:
            self._armed = None
        node.lose_power()
        self._cluster.log_checker.lost_power(node.broker_id)
        self._start_later(node)

    def _start_later(self, node: Node) -> None:
        self._after_ms(self._away_ms_max, lambda: self.start(node))

    def _kill(self, node: Node) -> bool:
        if not self._may_end(node):
            return False
        self._die(node, "is killed")
        return True

    def _restart(self, node: Node) -> bool:
        """It is back before its session is over."""
        if not self._may_end(node):
            return False
        self._die(node, "is killed, and starts at once")
        node.start()
        return True

    def _cut_power(self, node: Node) -> bool:
        if node.process.is_frozen or not self._may_end(node):
            return False
        if self._random.random() < 0.5:
            self._arm(node)
        elif self.may_lose_power(node):
            self._lose_power(node, "loses power")
        else:
            return False
        return True

    def _arm(self, node: Node) -> None:
        operations = self._random.randint(0, OPERATIONS_TO_GO_MAX)
        self._say(f"{node} is about to crash, after {operations} operations of its disk")
        self._armed = node
        node.files.cut_power_after(operations)
        files = node.files
        self._after_ms(self._away_ms_max, lambda: self._disarm(node, files))

    def _disarm(self, node: Node, files: MemoryFiles) -> None:
        if self._armed is node and node.files is files:
            self._armed = None
            files.cut_power_after(1 << 62)

    def _lose_disk(self, node: Node) -> bool:
        """The machine is replaced by an empty one of the same id."""
        if node.process.is_frozen or self._armed is not None or not self.may_lose_power(node):
            return False
        self._lose_power(node, "is replaced by an empty one")
        node.files = MemoryFiles()
        return True

    def _stop(self, node: Node) -> bool:
        """In good order: others lead before it goes."""
        if node.process.is_frozen or not self._may_end(node):
            return False
        self._say(f"{node} stops in good order")
        node.stop()
        return True

    def ended(self, node: Node, why: str) -> None:
        """A process has come to its end by itself."""
        self._say(f"{node} {why}")
        if self._armed is node:
            self._armed = None
        self._start_later(node)

    def _expire_session(self, node: Node) -> bool:
        """It lives, and counts as dead until it has registered again."""
        if not self._may_end(node) or node.session.is_over:
            return False
        self._say(f"{node}'s session expires")
        node.session.end()
        return True

    def _freeze(self, node: Node) -> bool:
        if node.process.is_frozen or self._is_fragile:
            return False
        self._say(f"{node} is frozen")
        process = node.process
        process.is_frozen = True
        self._after_ms(self._away_ms_max, lambda: self._thaw(node, process.name))
        return True

    def _thaw(self, node: Node, name: str) -> None:
        if node.process.name == name and node.process.is_frozen:
            self._say(f"{node} goes on")
            self._cluster.kernel.thaw(node.process)

    # -- clocks and disks ----------------------------------------------------------------------

    def _drift(self, node: Node) -> bool:
        """A broker's clocks begin to run fast or slow, or as they should."""
        permille = self._random.choice((-DRIFT_PERMILLE, 0, DRIFT_PERMILLE))
        node.clock.drift(permille)
        self._say(f"{node}'s clocks run {permille} permille fast")
        return True

    def _set_wall_clock(self, node: Node) -> bool:
        """Somebody sets a broker's clock wrong, or right again; nothing may go by it."""
        node.clock.ahead_ms = self._random.choice((-CLOCK_STEP_MS, 0, CLOCK_STEP_MS))
        self._say(f"{node}'s clock is {node.clock.ahead_ms} ms off")
        return True

    def _slow_disk(self, node: Node) -> bool:
        node.process.disk_delay_us = self._random.choice((0, SLOW_US))
        self._say(f"{node}'s disk takes {node.process.disk_delay_us} us longer")
        return True

    def _fill_disk(self, node: Node) -> bool:
        """A write fails for want of room, and with it the log directory; it has room again soon."""
        if not self._may_end(node):
            return False
        room = self._random.randint(0, 2_000)
        self._say(f"{node}'s disk has room for {room} bytes")
        files = node.files
        files.room_bytes = room
        self._after_ms(FULL_MS_MAX, lambda: setattr(files, "room_bytes", None))
        return True

    def _break_disk(self, node: Node) -> bool:
        """Operations of the disk fail; when the broker has ended, it gets another cable."""
        if not self._may_end(node):
            return False
        times = self._random.choice((1, 1, 3, None))
        self._say(f"{node}'s disk fails {times or 'all'} operations")
        files = node.files
        fault = files.fail(errno.EIO, after=self._random.randint(0, 20), times=times)
        self._after_ms(
            FULL_MS_MAX, lambda: files.faults.remove(fault) if fault in files.faults else None
        )
        return True

    # -- network and store ---------------------------------------------------------------------

    def _cut_link(self, node: Node) -> bool:
        """Two brokers do not hear each other, or one does not hear the other."""
        others = [each for each in self._cluster.nodes if each is not node]
        other = self._random.choice(others)
        routes = [(node.host, other.host)]
        if self._random.random() < 0.5:
            routes.append((other.host, node.host))
        self._cut(routes)
        return True

    def _isolate(self, node: Node) -> bool:
        """A broker hears nobody."""
        if self._is_fragile:
            return False
        others = [each.host for each in self._cluster.nodes if each is not node]
        self._cut(
            [route for each in (*others, STORE) for route in ((each, node.host), (node.host, each))]
        )
        return True

    def _cut_from_store(self, node: Node) -> bool:
        if self._is_fragile:
            return False
        self._cut([(node.host, STORE)])
        return True

    def _cut(self, routes: list[tuple[str, str]]) -> None:
        cluster = self._cluster
        self._say(f"cut: {', '.join(' to '.join(route) for route in routes)}")
        cluster.network.cut.update(dict.fromkeys(routes))
        self._after_ms(CUT_MS_MAX, lambda: self._mend(routes))

    def _mend(self, routes: list[tuple[str, str]]) -> None:
        if any(route in self._cluster.network.cut for route in routes):
            self._say(f"mended: {', '.join(' to '.join(route) for route in routes)}")
            self._cluster.network.mend(*routes)

    def _break_connection(self, _: Node) -> bool:
        broken = self._cluster.network.break_one()
        if broken is None:
            return False
        self._say(f"the connection from {broken} breaks")
        return True

    def _lose_answer(self, node: Node) -> bool:
        """A controller that does not know whether it has written resigns: see `_depose`."""
        if self._is_fragile and node.is_controller:
            return False
        node.session.loses_next = True
        self._say(f"{node} is not answered by the store")
        return True

    def _slow_store(self, _: Node) -> bool:
        if self._is_fragile:
            return False
        store = self._cluster.store
        store.slow_us = SLOW_US
        self._say("the store is slow")
        self._after_ms(CUT_MS_MAX, lambda: setattr(store, "slow_us", 0))
        return True

    def _depose(self, _: Node) -> bool:
        """A new controller does not see who was gone before it looked; see `may_lose_power`."""
        store = self._cluster.store
        if self._is_fragile or store.table.get(znodes.CONTROLLER) is None:
            return False
        self._say("/controller is removed by hand")
        store.change(lambda: store.table.apply([Delete(znodes.CONTROLLER)], 0))
        return True

    # -- the end -------------------------------------------------------------------------------

    def end(self) -> None:
        """No more faults, but who is dead stays so."""
        cluster = self._cluster
        self.may_start = False
        cluster.network.mend()
        cluster.store.slow_us = 0
        self._armed = None
        for node in cluster.nodes:
            node.session.loses_next = False
            node.process.disk_delay_us = 0
            node.files.cut_power_after(1 << 62)
            node.files.room_bytes = None
            node.files.faults.clear()
            if node.process.is_frozen:
                self._thaw(node, node.process.name)

    def revive(self) -> None:
        """Everybody is back."""
        self.may_start = True
        for node in self._cluster.nodes:
            if not node.is_alive:
                self.start(node)


FAULTS: Mapping[str, Callable[[Faults, Node], bool]] = {
    "kill": Faults._kill,
    "restart": Faults._restart,
    "power": Faults._cut_power,
    "empty": Faults._lose_disk,
    "stop": Faults._stop,
    "session": Faults._expire_session,
    "freeze": Faults._freeze,
    "drift": Faults._drift,
    "clock": Faults._set_wall_clock,
    "slow-disk": Faults._slow_disk,
    "full-disk": Faults._fill_disk,
    "broken-disk": Faults._break_disk,
    "link": Faults._cut_link,
    "isolate": Faults._isolate,
    "store-link": Faults._cut_from_store,
    "connection": Faults._break_connection,
    "answer": Faults._lose_answer,
    "slow-store": Faults._slow_store,
    "depose": Faults._depose,
}
"""All of them, by the names that reports have."""

WEIGHTS: Mapping[str, int] = {
    "kill": 12,
    "restart": 10,
    "power": 12,
    "empty": 2,
    "stop": 6,
    "session": 8,
    "freeze": 10,
    "drift": 3,
    "clock": 3,
    "slow-disk": 3,
    "full-disk": 2,
    "broken-disk": 2,
    "link": 12,
    "isolate": 3,
    "store-link": 3,
    "connection": 12,
    "answer": 8,
    "slow-store": 2,
    "depose": 5,
}
"""How often each happens, in relation to the others, unless a mix says otherwise."""
