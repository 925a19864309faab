"""What goes wrong in a replication run, and what is allowed to go wrong at the same time.

Processes die and return at random. Power is another thing: see
`may_lose_power`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ....common.sentinels import FOREVER_MS
from ..disks.disk_faults import PowerCut
from .broker import ReplicatingBroker
from .cluster import ReplicatedCluster

OPERATIONS_TO_GO_MAX = 40
CLOCK_STEP_MS = 3_590_000
"""Not quite the hour by which Kafka lets a record's timestamp be ahead of its leader's clock."""
DRIFT_PERMILLE = 50
"""By how much a clock runs fast or slow: far more than any does."""


class ReplicationFaults:
    """Lets faults happen.

    Args:
        cluster: the cluster.
    """

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self._cluster = cluster
        self._random = cluster.random
        self._armed: int | None = None
        """The broker whose power goes in the middle of something that it does next."""
        self._armed_at = 0

    def let_one_happen(self) -> None:
        """One of them."""
        rng = self._random
        broker = rng.choice(self._cluster.brokers)
        dice = rng.random()
        if not broker.alive:
            self.start(broker)
        elif dice < 0.2:
            self._kill(broker)
        elif dice < 0.4:
            self._cut_power(broker)
        elif dice < 0.45:
            self._stop(broker)
        elif dice < 0.55:
            self._expire_session(broker)
        elif dice < 0.7:
            self._freeze(broker)
        elif dice < 0.8:
            self._cut_link()
        elif dice < 0.86 and self._cluster.clocks_drift:
            self._drift(broker)
        elif dice < 0.9:
            self._set_wall_clock(broker)
        elif dice < 0.95:
            self._fail_over()
        else:
            self._move_leader()

    # -- what may happen ----------------------------------------------------------------

    @property
    def _is_anybody_damaged(self) -> bool:
        """Whether someone in an ISR may have lost records. Then nobody else may go."""
        invariants = self._cluster.invariants
        return bool(invariants.damaged) and not self._cluster.allows_unclean

    def _may_end(self, broker: ReplicatingBroker) -> bool:
        """Whether a broker may die or lose its session, so that it leaves ISRs."""
        if self._cluster.allows_unclean:
            return True
        return self._armed is None and not self._cluster.invariants.damaged - {broker.broker_id}

    def may_lose_power(self, broker: ReplicatingBroker) -> bool:
        """Whether what a broker has not synced may go.

        Kafka acknowledges what is in the memory of the ISR's machines, so they must not all
        lose power. Here one does at a time, and whoever else is in its ISRs stays alive and
        registered until the controller has noticed, and has taken it from them: that is, it is
        not the last one in sync, nobody is about to let it in, and the controller knows it
        (Kafka's own limit before KIP-966; article 001).
        """
        cluster = self._cluster
        if cluster.allows_unclean:
            return True
        if cluster.invariants.damaged:
            return False
        who, known, registered = (
            broker.broker_id,
            cluster.controller.alive,
            cluster.store.registrations,
        )
        if who not in known:
            return False
        for state in cluster.store.states.values():
            if who in state.isr and not any(
                each != who
                and cluster.brokers[each - 1].alive
                and each in known
                and known[each] == registered.get(each)
                for each in state.isr
            ):
                return False
        return not any(who in change.isr for change in cluster.proposed_isrs(except_by=who))

    # -- brokers ------------------------------------------------------------------------

    def _set_wall_clock(self, broker: ReplicatingBroker) -> None:
        """Somebody sets a broker's clock wrong, or right again; nothing may go by it."""
        broker.clock.ahead_ms = self._random.choice((-CLOCK_STEP_MS, 0, CLOCK_STEP_MS))
        self._cluster.trace(f"broker {broker.broker_id}'s clock is {broker.clock.ahead_ms} ms off")

    def _drift(self, broker: ReplicatingBroker) -> None:
        """A broker's clocks begin to run fast or slow, or as they should."""
        permille = self._random.choice((-DRIFT_PERMILLE, 0, DRIFT_PERMILLE))
        broker.clock.drift(permille)
        self._cluster.trace(f"broker {broker.broker_id}'s clocks run {permille} permille fast")

    def start(self, broker: ReplicatingBroker, *, is_at_risk: bool = True) -> None:
        """A process begins, and registers when it is ready; it may crash before."""
        cluster = self._cluster
        cluster.trace(f"broker {broker.broker_id} starts")
        if is_at_risk and self._random.random() < 0.1 and self._may_end(broker):
            self._arm(broker)
        try:
            broker.start()
        except PowerCut:
            self.strike(broker)
            return
        broker.epoch = cluster.store.register(broker.broker_id)

    def strike(self, broker: ReplicatingBroker) -> None:
        """An armed disk has stopped in the middle of something."""
        self._armed = None
        if self.may_lose_power(broker):
            self._end(broker, "loses power in the middle of something", power=True)
        else:
            self._end(broker, "is killed in the middle of something", power=False)

    def _end(self, broker: ReplicatingBroker, how: str, *, power: bool) -> None:
        cluster = self._cluster
        cluster.trace(f"broker {broker.broker_id} {how}")
        if self._armed == broker.broker_id:
            self._armed = None
        broker.end()
        cluster.forget_connections_of(broker, lost_power=power)
        if power:
            broker.files = broker.files.after_power_cut(self._random)
            cluster.invariants.lost_power(broker.broker_id)
        else:
            broker.files = broker.files.after_kill()
        if self._random.random() < 0.5:
            # Its session may outlive it for a while; or it is back before anybody has seen it.
            cluster.end_session_later(broker.broker_id)
        else:
            cluster.store.unregister(broker.broker_id)

    def _kill(self, broker: ReplicatingBroker) -> None:
        if self._may_end(broker):
            self._end(broker, "is killed", power=False)

    def _cut_power(self, broker: ReplicatingBroker) -> None:
        if not self._may_end(broker):
            return
        if self._random.random() < 0.5:
            if not broker.frozen:
                self._arm(broker)
        elif self.may_lose_power(broker):
            self._end(broker, "loses power", power=True)

    def _arm(self, broker: ReplicatingBroker) -> None:
        if self._armed is not None:
            return
        self._cluster.trace(f"broker {broker.broker_id} is about to crash")
        self._armed = broker.broker_id
        operations = self._random.randint(0, OPERATIONS_TO_GO_MAX)
        broker.files.cut_power_after(operations)
        self._armed_at = broker.files.operations + operations

    @contextmanager
    def undisturbed(self, broker: ReplicatingBroker) -> Iterator[None]:
        """While a broker's disk is looked at from outside, nothing happens to it."""
        if self._armed != broker.broker_id:
            yield
            return
        to_go = self._armed_at - broker.files.operations
        broker.files.cut_power_after(FOREVER_MS)
        yield
        broker.files.cut_power_after(to_go)
        self._armed_at = broker.files.operations + to_go

    def _stop(self, broker: ReplicatingBroker) -> None:
        """In good order: others lead before it goes."""
        cluster = self._cluster
        if self._armed is not None or not self._may_end(broker) or broker.frozen:
            return
        cluster.trace(f"broker {broker.broker_id} stops in good order")
        if broker.broker_id in cluster.controller.alive:
            cluster.controller.let_go(broker.broker_id)
        broker.close()
        broker.files = broker.files.after_kill()
        cluster.forget_connections_of(broker, lost_power=False)
        cluster.store.unregister(broker.broker_id)

    def _expire_session(self, broker: ReplicatingBroker) -> None:
        """It lives, and counts as dead until it has registered again."""
        if self._may_end(broker) and broker.epoch >= 0:
            self._cluster.trace(f"broker {broker.broker_id}'s session expires")
            self._cluster.store.unregister(broker.broker_id)
            broker.epoch = -1

    def _freeze(self, broker: ReplicatingBroker) -> None:
        broker.frozen = not broker.frozen
        how = "is frozen" if broker.frozen else "goes on"
        self._cluster.trace(f"broker {broker.broker_id} {how}")

    # -- links and the controller ---------------------------------------------------------

    def _cut_link(self) -> None:
        cut = self._cluster.network.cut
        if cut and self._random.random() < 0.6:
            self._cluster.trace("links are mended")
            cut.clear()
            return
        first, second = self._random.sample([each.broker_id for each in self._cluster.brokers], 2)
        self._cluster.trace(f"the link between {first} and {second} is cut")
        cut.add(frozenset((first, second)))

    def _fail_over(self) -> None:
        """A new controller does not see who was gone before it looked; see `may_lose_power`."""
        if not self._is_anybody_damaged and self._armed is None:
            self._cluster.controller.fail_over()
            self._cluster.trace(f"controller epoch {self._cluster.controller.epoch} begins")

    def _move_leader(self) -> None:
        partition = self._random.choice(self._cluster.partitions)
        if self._cluster.controller.move_leader(partition, self._random):
            self._cluster.trace(f"{partition} is to be led by another")

    # -- the end ------------------------------------------------------------------------

    def heal(self) -> None:
        """No more faults, and everybody is back."""
        cluster = self._cluster
        cluster.network.cut.clear()
        for broker in cluster.brokers:
            broker.frozen = False
            broker.files.cut_power_after(FOREVER_MS)
        self._armed = None
        for broker in cluster.brokers:
            if not broker.alive:
                self.start(broker, is_at_risk=False)
