"""Three brokers that replicate, under a seeded scheduler: without trio, without sockets.

Every broker runs the product's own `ReplicaManager`, `Partition`, `FetcherManager` and `Log`,
on a disk in memory. One step lets one thing happen: a request arrives, or its answer; a leader
changes an ISR; the controller decides; a process dies; a client produces or reads. Messages
come late, twice or never. After each the invariants are looked at. From time to time the
faults stop, everybody returns, and all replicas must come to be the same.

What is promised: a record that was acknowledged with acks=all is never lost, for as long as
not all brokers that are in sync lose power at the same time. A process that is killed loses
nothing that it had written. A broker that loses power loses what it had not synced, so it must
have left the ISR before another one of it goes; `ReplicationFaults.may_lose_power` says when
that is so. With unclean elections (each fifth seed) records may be lost, and the logs must
agree all the same.

`python -m odradek.tools.simulation.replication.simulator SEED` replays one run and prints
its trace.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence

from ....common.partition_state import LeaderAndIsr
from ....common.topic_partition import TopicPartition
from ....replication.fetcher.truncation import Truncation
from ....replication.partition.partition import IsrChangeOutcome
from ....runtime.clock import ManualClock
from ..disks.disk_faults import PowerCut
from .broker import ReplicatingBroker
from .clients import ReplicationClients
from .controller import ReplicationController, ReplicationStore
from .faults import ReplicationFaults
from .invariants import InvariantBroken, LoggedViolations, ReplicationInvariants
from .isr_calls import IsrCall, IsrCalls
from .network import Call, FetcherDriver, Network
from .rest import come_to_rest

BROKERS = (1, 2, 3)
SIMULATED_TOPIC = "t"
START_MS = 1_700_000_000_000
STEPS = 300
"""Steps of one run in which faults happen; about as many pass without."""
STEPS_WITHOUT_REST_MAX = 400
STEP_MS_MAX = 4
HOUSEKEEPING_STEPS = 50
"""Between them, while nothing goes wrong."""
IDLE_MS = 10
SOCKET_TIMEOUT_MS = 150


class ReplicationSimulation:
    """The cluster and the scheduler.

    Args:
        seed: decides everything.
        trace: called with each line of the trace, for a person to read.
    """

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.random = random.Random(seed)
        self.steps = 0
        self.violations = LoggedViolations()
        self._trace = trace
        self.allows_unclean = seed % 5 == 4
        self.deletes_records = seed % 3 == 2
        self.clocks_drift = seed % 2 == 0
        self.partitions: Sequence[TopicPartition] = [
            TopicPartition(SIMULATED_TOPIC, each) for each in range(1 + seed % 2)
        ]
        self.clock = ManualClock(START_MS)
        self.network = Network()
        self.store = ReplicationStore(self.partitions, BROKERS, self._state_written)
        self.invariants = ReplicationInvariants(
            self.store.states, BROKERS, allows_unclean=self.allows_unclean
        )
        self.controller = ReplicationController(
            self.store,
            min_insync_replicas=1 if seed % 4 == 3 else 2,
            allows_unclean=self.allows_unclean,
        )
        self._isr_calls = IsrCalls(self.random)
        self._silent: list[tuple[int, int]] = []
        self.brokers: Sequence[ReplicatingBroker] = [
            ReplicatingBroker(
                each,
                self.clock,
                self.network,
                self._isr_calls.send,
                SIMULATED_TOPIC,
                self.random,
                Truncation.EPOCH_REQUEST if seed % 7 == 3 else Truncation.FETCH,
            )
            for each in BROKERS
        ]
        self.clients = ReplicationClients(self)
        self.faults = ReplicationFaults(self)

    def trace(self, text: str) -> None:
        """Add a line to the trace of the run."""
        if self._trace is not None:
            self._trace(f"{self.steps:6d}  {text}")

    def _state_written(self, partition: TopicPartition, state: LeaderAndIsr) -> None:
        self.trace(f"{partition}: {state}")
        if state.leader_epoch == self.invariants.state_of(partition).leader_epoch:
            for broker_id in sorted(self.invariants.damaged.difference(state.isr)):
                self.network.forget_requests_of(broker_id)
        self.invariants.state_written(partition, state)

    # -- the scheduler ------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """Let things happen, faults among them; let everything heal from time to time."""
        for broker in self.brokers:
            self.faults.start(broker, is_at_risk=False)
        while steps > 0:
            without_rest = min(self.random.randint(100, STEPS_WITHOUT_REST_MAX), steps)
            steps -= without_rest
            for _ in range(without_rest):
                self._step()
            come_to_rest(self, self.faults.heal, self.clients.produce_to)

    def _step(self) -> None:
        self.steps += 1
        self._pass_time(self.random.randint(0, STEP_MS_MAX))
        dice = self.random.random()
        if dice < 0.03:
            self.faults.let_one_happen()
        elif dice < 0.05:
            self._lose_something()
        elif dice < 0.25:
            self.clients.ask()
        elif dice < 0.32:
            self._housekeep()
        elif not self._progress():
            self._pass_time(IDLE_MS)

    def quiet_step(self) -> None:
        """As a step, but nothing goes wrong, and no client asks for anything."""
        self.steps += 1
        self._pass_time(self.random.randint(0, STEP_MS_MAX))
        if self.steps % HOUSEKEEPING_STEPS == 0:
            self._housekeep()
        elif not self._progress():
            self._pass_time(IDLE_MS)

    @property
    def is_anything_changing(self) -> bool:
        """Whether the controller or the store is about to do something."""
        return self.controller.has_news or any(self._isr_calls) or bool(self._silent)

    def _pass_time(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        for broker in self.brokers:
            if broker.alive:
                deadline_ms = broker.timers.next_deadline_ms()
                if deadline_ms is not None and deadline_ms <= broker.clock.monotonic_ms():
                    self.act(broker, lambda: None)

    def act(self, broker: ReplicatingBroker, action: Callable[[], object]) -> None:
        """A broker does something, and what follows from it; it may crash on the way."""
        if not broker.alive or broker.frozen:
            return
        try:
            action()
            broker.settle()
        except PowerCut:
            self.faults.strike(broker)
            return
        if self.violations.seen:
            raise InvariantBroken(self.violations.seen[0])
        with self.faults.undisturbed(broker):
            self.invariants.check_broker(broker.broker_id, broker.life, broker.partitions)

    def _progress(self) -> bool:
        """One thing that can go on does; whether there was any."""
        choices: list[Callable[[], None]] = []
        for broker in self.brokers:
            if broker.alive and not broker.frozen:
                self._add_choices_of(broker, broker.clock.monotonic_ms(), choices)
        network = self.network
        for call in network.requests:
            if self._arrives(call):
                choices.append(lambda call=call: self._deliver(call))  # type: ignore[misc]  # bound now
        for call in network.answers:
            if not network.is_cut(call) and not call.driver.broker.frozen:
                choices.append(lambda call=call: self._deliver_answer(call))  # type: ignore[misc]  # bound now
        for isr_call in self._isr_calls.requests:
            choices.append(lambda call=isr_call: self._write_isr(call))  # type: ignore[misc]  # bound now
        for isr_call in self._isr_calls.answers:
            if isr_call.broker.frozen:
                continue
            choices.append(lambda call=isr_call: self._answer_isr(call))  # type: ignore[misc]  # bound now
        if self.controller.has_news:
            choices.append(self._controller_looks)
        if self.controller.late:
            choices.append(self._deliver_late_order)
        if self._silent:
            choices.append(self._end_a_silent_session)
        if not choices:
            return False
        self.random.choice(choices)()
        return True

    def _add_choices_of(
        self, broker: ReplicatingBroker, now_ms: int, choices: list[Callable[[], None]]
    ) -> None:
        if broker.epoch < 0:
            choices.append(lambda: self._register(broker))
        if self.controller.queues.get(broker.broker_id):
            choices.append(lambda: self._deliver_order(broker))
        for driver in broker.drivers:
            if driver.steps is not None:
                choices.append(lambda driver=driver: self.act(broker, driver.take_on))  # type: ignore[misc]  # bound now
            elif driver.is_ready(now_ms):
                choices.append(lambda driver=driver: self.act(broker, driver.send_next))  # type: ignore[misc]  # bound now
            elif driver.under_way is not None and self._is_over(driver, now_ms):
                choices.append(lambda driver=driver: self._give_up(driver))  # type: ignore[misc]  # bound now

    # -- fetchers' requests -------------------------------------------------------------

    def _arrives(self, call: Call) -> bool:
        leader = self.brokers[call.leader_id - 1]
        return leader.alive and not leader.frozen and not self.network.is_cut(call)

    def _deliver(self, call: Call) -> None:
        self.network.requests.remove(call)
        leader = self.brokers[call.leader_id - 1]
        self.act(leader, lambda: leader.receive(call))

    def _deliver_answer(self, call: Call) -> None:
        self.network.answers.remove(call)
        driver = call.driver
        if driver.under_way is call:
            self.act(self.brokers[driver.broker.broker_id - 1], lambda: driver.take(call))

    def _is_over(self, driver: FetcherDriver, now_ms: int) -> bool:
        """Whether a fetcher has waited long enough, or sees that its leader is gone."""
        call = driver.under_way
        assert call is not None
        return (
            now_ms - call.sent_ms > SOCKET_TIMEOUT_MS or not self.brokers[call.leader_id - 1].alive
        )

    def _give_up(self, driver: FetcherDriver) -> None:
        self.trace(f"broker {driver.broker.broker_id} gives up a {_name(driver)}")
        self.act(self.brokers[driver.broker.broker_id - 1], driver.fail)

    def _lose_something(self) -> None:
        """A message is lost with its connection, or will come late, or comes twice."""
        drivers = [
            driver
            for broker in self.brokers
            if broker.alive and not broker.frozen
            for driver in broker.drivers
            if driver.under_way is not None
        ]
        if not drivers:
            return
        driver = self.random.choice(drivers)
        call = driver.under_way
        assert call is not None
        dice = self.random.random()
        if dice < 0.3 and call in self.network.requests:
            self.trace(f"a {_name(driver)} of broker {driver.broker.broker_id} is lost")
            self.network.requests.remove(call)
        elif dice < 0.6:
            again = Call(driver, call.plan, call.api_key, call.version, call.body)
            self.trace(f"a {_name(driver)} of broker {driver.broker.broker_id} comes twice")
            self.network.requests.append(again)
            return
        self._give_up(driver)

    def forget_connections_of(self, broker: ReplicatingBroker, *, lost_power: bool) -> None:
        """A broker is no more: nothing comes to it on its connections.

        What it has sent may still arrive. After a power cut its fetches may say too much; they
        are fenced where the controller has to begin an epoch without it, and lost elsewhere:
        no leader can tell them from later ones before KIP-903.
        """
        who, network = broker.broker_id, self.network
        network.requests = [each for each in network.requests if each.leader_id != who]
        network.answers = [each for each in network.answers if each.leader_id != who]
        if lost_power:
            if any(who not in state.isr for state in self.store.states.values()):
                network.forget_requests_of(who)
            self._isr_calls.forget_those_of(broker)

    # -- changes of ISRs ----------------------------------------------------------------

    def proposed_isrs(self, *, except_by: int) -> list[LeaderAndIsr]:
        """What leaders want to have written, or may have."""
        on_the_way = [each.change for each in self._isr_calls]
        pending = [
            partition.pending_isr_change
            for broker in self.brokers
            if broker.alive
            for partition in broker.partitions.values()
            if partition.pending_isr_change is not None
        ]
        return [each for each in (*on_the_way, *pending) if each.leader != except_by]

    def _write_isr(self, call: IsrCall) -> None:
        calls = self._isr_calls
        calls.requests.remove(call)
        if calls.is_never_sent(call):
            self.act(
                self.brokers[call.broker.broker_id - 1],
                lambda: call.refuse(IsrChangeOutcome.NOT_ATTEMPTED),
            )
        else:
            calls.write(call, self.store)

    def _answer_isr(self, call: IsrCall) -> None:
        self._isr_calls.answers.remove(call)
        if call.is_heard:
            self.act(self.brokers[call.broker.broker_id - 1], call.answer)

    # -- the controller -----------------------------------------------------------------

    def _register(self, broker: ReplicatingBroker) -> None:
        broker.epoch = self.store.register(broker.broker_id)
        self.trace(f"broker {broker.broker_id} registers anew")

    def _controller_looks(self) -> None:
        self.trace(f"the controller sees {self.store.registrations}")
        self.controller.look()

    def _deliver_order(self, broker: ReplicatingBroker) -> None:
        queue = self.controller.queues[broker.broker_id]
        order = queue[0]
        self.act(broker, lambda: broker.obey(order))
        if self.random.random() < 0.05:
            return  # the answer is lost, so it comes again
        queue = self.controller.queues.get(broker.broker_id, queue)
        if queue and queue[0] is order:
            queue.popleft()

    def _deliver_late_order(self) -> None:
        late = self.controller.late
        broker_id, order = late.pop(self.random.randrange(len(late)))
        broker = self.brokers[broker_id - 1]
        self.act(broker, lambda: broker.obey(order))

    def end_session_later(self, broker_id: int) -> None:
        """A dead broker's session goes on for a while, or until it registers again."""
        epoch = self.store.registrations.get(broker_id)
        if epoch is not None:
            self._silent.append((broker_id, epoch))

    def _end_a_silent_session(self) -> None:
        broker_id, epoch = self._silent.pop(self.random.randrange(len(self._silent)))
        if self.store.registrations.get(broker_id) == epoch:
            self.store.unregister(broker_id)

    # -- by themselves ------------------------------------------------------------------

    def _housekeep(self) -> None:
        """Something that brokers do from time to time."""
        broker = self.random.choice(self.brokers)
        dice = self.random.random()
        if dice < 0.5:
            self.act(broker, lambda: broker.shrink_isrs())
        elif dice < 0.7:
            self.act(broker, lambda: broker.checkpoint_high_watermarks())
        elif dice < 0.9:
            self.act(broker, lambda: broker.sync())
        else:
            self.act(broker, lambda: broker.delete_old_segments())


def _name(driver: FetcherDriver) -> str:
    call = driver.under_way
    return "call" if call is None else type(call.plan).__name__


def run_seed(seed: int, steps: int = STEPS, trace: Callable[[str], None] | None = None) -> int:
    """One run; returns its steps.

    Raises:
        InvariantBroken: with the command that replays it.
    """
    simulation = ReplicationSimulation(seed, trace)
    logger = logging.getLogger("odradek")
    logger.addHandler(simulation.violations)
    try:
        simulation.run(steps)
    except Exception as error:
        raise InvariantBroken(
            f"{type(error).__name__} at step {simulation.steps}: {error}\n"
            f"replay: python -m odradek.tools.simulation.replication.simulator {seed} {steps}"
        ) from error
    finally:
        logger.removeHandler(simulation.violations)
    return simulation.steps


if __name__ == "__main__":
    import sys

    logging.basicConfig(format="        %(message)s", level=logging.INFO, stream=sys.stdout)
    run_seed(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else STEPS, trace=print)
