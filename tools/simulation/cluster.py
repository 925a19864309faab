"""A whole cluster from one seed: brokers, clients, network and metadata store, and what goes wrong.

Each broker is the product's `Broker`, whole: its connections, handlers, replicas, logs, fetchers,
coordinators, and its controller. What is simulated is around them: time (`kernel.py`), the network,
disks, and the store. Events happen one at a time, in an order and after delays that the seed
decides; after each one the checkers look at what the broker has changed. From time to time the
faults stop. Then all who live must agree, though some are dead; then everybody returns, and nothing
may be left undone.
"""

from __future__ import annotations

import gc
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random

from ...broker.broker_state import BrokerState
from ...client.errors import ClientError
from ...common.acl import AclBinding
from ...metadata_store.embedded.node_table import Paths
from ...metadata_store.errors import MetadataStoreError
from ...runtime import waiting
from ...runtime.long_work import steps_counted
from ...storage.errors import StorageError
from ...storage.io.open_files import LIMIT_MAX, OPEN_FILES
from .checkers.acl_checker import AclChecker
from .checkers.broker_checker import BrokerChecker
from .checkers.group_checker import GroupChecker
from .checkers.invariants import InvariantBroken, LoggedViolations
from .checkers.log_checker import LogChecker
from .checkers.sequence_checker import SequenceChecker
from .checkers.store_checker import Held, StoreChecker
from .checkers.transaction_checker import TransactionChecker
from .clients.acl_admins import AclAdmin
from .clients.admins import Admin
from .clients.auditors import Auditor
from .clients.classic_members import ClassicMember
from .clients.client import SimulatedClient
from .clients.consumer_members import ConsumerMember
from .clients.feature_admins import FeatureAdmin
from .clients.producers import Producer
from .clients.readers import Reader
from .clients.streams_members import StreamsMember
from .clients.transactional_producers import TransactionalProducer
from .disks.disk_faults import PowerCut
from .faults import WEIGHTS, Faults
from .kernel import Kernel, Process
from .mix import Mix
from .network import Network
from .node import Node, broker_config
from .store import StoreServer

AGREE_MS = 20_000
"""So long after the last fault all who live agree: sessions have ended, leaders are elected."""
HEAL_MS_MAX = 180_000
"""So long after everybody is back nothing may be left undone."""
LOOK_MS = 1_000
START_MS_MAX = 60_000
RETENTION_MS = 7 * 24 * 3_600_000
"""A broker's `log.retention.ms` unless a mix says otherwise."""
COLLECT_AFTER = (50_000, 5, 2)
"""Of the garbage collector: a run makes little that only it can free, and much that it looks at."""
UNCLEAN = "unclean.leader.election.enable"
CLASSIC_ASSIGNORS = ("range", "cooperative-sticky")
STREAMS_TOPICS = (("a",), ("a", "b"))
"""What the topology of each streams group reads."""
"""Of the two classic groups."""


class ClusterSimulation:
    """The cluster, and how a run goes.

    Args:
        seed: decides everything.
        mix: what the run is made of.
        trace: called with each line of the trace, for a person to read.
        skipped: numbers of faults that do not happen.

    Attributes:
        rests: how often the cluster came to rest.
    """

    def __init__(
        self,
        seed: int,
        mix: Mix,
        trace: Callable[[str], None] | None = None,
        *,
        skipped: frozenset[int] = frozenset(),
    ) -> None:
        self.random = Random(seed)
        self.mix = mix
        self.pace = mix.pace
        self.is_peace = True
        self.is_quiet = False
        self.rests = 0
        self._trace = trace
        allows_unclean = seed % 5 == 4
        self.kernel = Kernel(self.random)
        self.kernel.power_cut = PowerCut
        self.kernel.on_power_cut = self._power_cut
        self.network = Network(self.kernel, self.random)
        self.violations = LoggedViolations(
            OSError, StorageError, MetadataStoreError, ClientError, ExceptionGroup
        )
        self.store_checker = StoreChecker(
            allows_unclean=allows_unclean,
            on_state=self._state_written,
            on_deletion=lambda topic_id: self.log_checker.topic_deleted(topic_id),
        )
        self.log_checker = LogChecker(
            self.store_checker.note_leader,
            allows_unclean=allows_unclean,
            retention_ms=mix.overrides.get("log.retention.ms", RETENTION_MS),
        )
        self.broker_checker = BrokerChecker()
        self.sequence_checker = SequenceChecker(self.log_checker.is_lossy)
        self.group_checker = GroupChecker(lambda: allows_unclean)
        self.transaction_checker = TransactionChecker(
            lambda key: allows_unclean or self.log_checker.is_lossy(key), self.log_checker.gone
        )
        self.acl_checker = AclChecker()
        self.store = StoreServer(
            self.kernel, self.network, self.random, self._store_changed, mix.session_ms
        )
        self.store_checker.table = self.store.table
        overrides = {**mix.overrides, UNCLEAN: str(allows_unclean).lower()}
        self.broker_ids = tuple(range(1, mix.broker_count(self.random) + 1))
        self.nodes: Sequence[Node] = [
            Node(
                each,
                self.kernel,
                self.network,
                self.store,
                self.random,
                broker_config(each, overrides),
                self._ended,
                self._after_event,
            )
            for each in self.broker_ids
        ]
        self._broken: InvariantBroken | None = None
        self.faults = Faults(self, mix.faults or WEIGHTS, skipped)
        self.clients: list[SimulatedClient] = [
            *(
                Producer(self, f"producer-{each}", self.sequence_checker)
                for each in range(1, mix.producers + 1)
            ),
            *(Reader(self, f"reader-{each}") for each in range(1, mix.readers + 1)),
            *(
                ConsumerMember(self, f"member-{each}", f"group-{each % 2}", self.group_checker)
                for each in range(1, mix.members + 1)
            ),
            *(
                ClassicMember(
                    self,
                    f"classic-{each}",
                    f"{CLASSIC_ASSIGNORS[each % 2]}-group",
                    self.group_checker,
                    CLASSIC_ASSIGNORS[each % 2],
                )
                for each in range(1, mix.classic + 1)
            ),
            *(
                TransactionalProducer(self, f"transactional-{each}", self.transaction_checker)
                for each in range(1, mix.transactional + 1)
            ),
            *(
                AclAdmin(self, f"acl-admin-{each}", self.acl_checker)
                for each in range(1, mix.acl_admins + 1)
            ),
            *(
                FeatureAdmin(self, f"feature-admin-{each}")
                for each in range(1, mix.feature_admins + 1)
            ),
            *(
                StreamsMember(
                    self,
                    f"streams-{each}",
                    f"streams-group-{each % 2}",
                    self.group_checker,
                    STREAMS_TOPICS[each % 2],
                )
                for each in range(1, mix.streams + 1)
            ),
        ]
        self._auditor = None
        if mix.transactional and not allows_unclean:  # else coordinators may lose what they know
            self._auditor = Auditor(self, "auditor")
        self._admins = [Admin(self, f"admin-{each}") for each in range(1, mix.admins + 1)]
        self._maker = Admin(self, "admin-0")

    def trace(self, text: str) -> None:
        """Add a line to the trace of the run."""
        if self._trace is not None:
            self._trace(f"{self.kernel.now_us / 1_000_000:11.3f}  {text}")

    # -- what happens --------------------------------------------------------------------------

    def _power_cut(self, process: Process) -> None:
        node = next(node for node in self.nodes if node.process is process)
        self._look_at(node, is_cut_off=True)  # some of it may have been answered already
        self.faults.strike(node)

    def _after_event(self, node: Node) -> None:
        if self._broken is not None:
            raise self._broken
        self._look_at(node)
        if self.violations.seen:
            raise InvariantBroken(f"{node}: {self.violations.seen[0]}")

    def _look_at(self, node: Node, *, is_cut_off: bool = False) -> None:
        """Check a node; its disk does not notice."""
        files = node.files
        files.is_looked_at = True
        self.log_checker.check_node(node, is_cut_off=is_cut_off)
        files.is_looked_at = False
        self.broker_checker.check_node(node)

    def _ended(self, node: Node, why: str) -> None:
        self.faults.ended(node, why)

    def _store_changed(self, touched: Paths) -> None:
        try:
            self.store_checker.check_change(touched)
        except InvariantBroken as broken:  # whoever writes would take it for its own failure
            self._broken = self._broken or broken

    def _state_written(self, held: Held) -> None:
        self.trace(f"{held}")
        self.log_checker.state_written(held, is_unclean=self.store_checker.may_be_unclean(held))

    # -- a run ---------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Run for so long, with faults and rests, and come to rest in the end."""
        self._begin()
        end_us = self.kernel.now_us + int(seconds * 1_000_000)
        while self.kernel.now_us < end_us:
            share = 0.5 + self.random.random()
            until_us = self.kernel.now_us + int(self.mix.rest_ms * 1000 * share)
            self._disturb(min(until_us, end_us))
            self._come_to_rest()

    def _begin(self) -> None:
        for node in self.nodes:
            node.start()
        self._wait_until(START_MS_MAX, self._are_all_running, "the brokers do not start")
        for client in self.clients:
            client.start()
        for _ in range(self.mix.topics):
            self.kernel.spawn(self._maker.process, self._make_topic())
        for admin in self._admins:
            admin.start()

    async def _make_topic(self) -> None:
        with suppress(ClientError):
            await self._maker.create()

    def _are_all_running(self) -> bool:
        return all(
            node.broker is not None and node.broker.state is BrokerState.RUNNING
            for node in self.nodes
        )

    def _wait_until(self, ms_max: int, is_done: Callable[[], bool], failure: str) -> None:
        end_us = self.kernel.now_us + ms_max * 1000
        while not is_done():
            if self.kernel.now_us >= end_us:
                raise InvariantBroken(failure)
            self._let_pass(LOOK_MS)

    def _let_pass(self, milliseconds: int) -> None:
        self.kernel.run_until(self.kernel.now_us + milliseconds * 1000)

    def _disturb(self, until_us: int) -> None:
        """Let faults happen."""
        self.is_peace = False
        kernel, fault_ms = self.kernel, self.mix.fault_ms
        while kernel.now_us < until_us:
            if not fault_ms:
                kernel.run_until(until_us)
                break
            pause_ms = -math.log(1.0 - self.random.random()) * fault_ms
            kernel.run_until(min(kernel.now_us + int(pause_ms * 1000), until_us))
            self.faults.let_one_happen()
        self.is_peace = True

    def _come_to_rest(self) -> None:
        """All who live agree; then everybody is back, and nothing is left undone."""
        self.trace("no faults for a while")
        self.faults.end()
        self.is_quiet = True
        self._let_pass(AGREE_MS)
        self._insist(HEAL_MS_MAX, lambda: self.store_checker.check_rest(self.nodes))
        self.is_quiet = False
        self.trace("everything heals")
        self.faults.revive()
        self._insist(HEAL_MS_MAX, self._check_health)
        self.is_quiet = True
        self._insist(HEAL_MS_MAX, self._check_all)
        if self._auditor is not None:
            auditor = self._auditor
            self._insist(HEAL_MS_MAX, lambda: self._audit(auditor))
        self.is_quiet = False
        self.rests += 1

    def _insist(self, ms_max: int, check: Callable[[], None]) -> None:
        """A check that must come true within a time, since nothing goes wrong any more."""
        end_us = self.kernel.now_us + ms_max * 1000
        while True:
            try:
                check()
                return
            except InvariantBroken:
                if self.kernel.now_us >= end_us:
                    raise
            self._let_pass(LOOK_MS)

    def _check_health(self) -> None:
        if not self._are_all_running():
            raise InvariantBroken("not all brokers run")
        self.store_checker.check_health(self.nodes)

    def _check_all(self) -> None:
        self._check_health()
        self.store_checker.check_rest(self.nodes)
        for node in self.nodes:
            self.broker_checker.check_rest(node)
        self.acl_checker.check_rest(
            {
                node.broker_id: [
                    AclBinding(pattern, entry)
                    for pattern, entries in node.broker.acls.authorizer.acls
                    for entry in entries
                ]
                for node in self.nodes
                if node.broker is not None and node.broker.acls is not None
            }
        )
        held_partitions = self.store_checker.all_held()
        nodes = {node.broker_id: node for node in self.nodes}
        self.log_checker.check_rest(held_partitions, nodes)
        for held in held_partitions:
            committed = self.log_checker.committed(held)
            if committed is not None:
                key = (held.topic_id, held.topic_partition.partition)
                self.sequence_checker.check(key, held.topic_partition, committed)

    def _audit(self, auditor: Auditor) -> None:
        """Everything is read by one who reads committed, and no transaction hangs."""
        auditor.begin()
        self._wait_until(
            HEAL_MS_MAX, lambda: auditor.read is not None, "not everything can be read"
        )
        assert auditor.read is not None
        if auditor.hanging:
            raise InvariantBroken(f"transactions hang in {auditor.hanging}")
        self.transaction_checker.check(auditor.read)

    def end(self) -> None:
        """End all tasks."""
        for process in (
            *(node.process for node in self.nodes),
            *(client.process for client in (*self.clients, *self._admins, self._maker)),
            *(() if self._auditor is None else (self._auditor.process,)),
        ):
            self.kernel.kill(process)


@contextmanager
def simulation(
    seed: int,
    mix: Mix,
    trace: Callable[[str], None] | None = None,
    *,
    skipped: frozenset[int] = frozenset(),
) -> Iterator[ClusterSimulation]:
    """A simulation that drives all that waits in this process, as long as the context lasts."""
    made = ClusterSimulation(seed, mix, trace, skipped=skipped)
    logger = logging.getLogger("odradek")
    logger.addHandler(made.violations)
    collect_after = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        with (
            waiting.driven_by(made.kernel),
            steps_counted(),
            OPEN_FILES.count_anew(LIMIT_MAX),
        ):
            try:
                yield made
            finally:
                made.end()
    finally:
        gc.set_threshold(*collect_after)
        logger.removeHandler(made.violations)
