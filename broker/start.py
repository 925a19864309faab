"""From settings to a running broker, and every reason why it may not come to that."""

from __future__ import annotations

import logging
import os
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from ..common.log_lines import BROKER_ID, LimitedLogHandler
from ..common.named_tuple import NamedTuple
from ..config.broker_config import BrokerConfig
from ..config.definition import ConfigError
from ..config.dynamic.dynamic_config import DynamicConfig
from ..config.listeners import Listener
from ..config.topic_configs import log_config
from ..controller.registration import (
    BrokerIdTaken,
    get_or_create_cluster_id,
    get_or_create_secret,
)
from ..metadata_store.choice import make_store
from ..metadata_store.errors import MetadataStoreError, StoreUnreachable
from ..metadata_store.store import MetadataStore
from ..runtime.clock import Clock, SystemClock
from ..runtime.collector import collect_when_idle
from ..runtime.descriptors import (
    DescriptorPlan,
    count_open,
    current_limit,
    plan_descriptors,
    raise_limit,
)
from ..runtime.offload import run_in_stoppable_thread
from ..runtime.rng import random_secret, random_uuid, uuid_to_text
from ..runtime.supervisor import Supervisor
from ..storage.errors import LogDirectoryError, StorageError
from ..storage.io.files import REAL_FILES, Files
from ..storage.io.open_files import OPEN_FILES
from ..storage.log_manager.log_manager import LogManager
from .broker import Broker
from .dynamic_config.config_manager import load_broker_overrides
from .dynamic_config.stored_passwords import StoredPasswords
from .interbroker.feature_follower import FeaturesNotSupported
from .network.server import Server
from .store_comparison import StoreComparison

if TYPE_CHECKING:
    from .metrics.endpoint import MetricsListener
    from .metrics.source import MetricsContext

logger = logging.getLogger(__name__)

DEFAULT_BROKER_ID = 1

OPENED_AT_START = 16
"""Descriptors that a broker without logs has: store, locks, listeners, event loop."""
CONNECTIONS_FEW = 500
"""A limit that allows fewer is worth a warning."""

LOG_LOOK_SECONDS = 10
"""Lines of the log that were suppressed are counted there so long after their minute at most."""

RECOVERY_MS = 500
"""So long clients wait for logs that were not closed properly; many folders are done by then."""

SECRET_BYTES = 32
"""Of what the brokers of a cluster know each other by."""

Announce = Callable[[str], None]
"""Called with the addresses, with commas between them, once all brokers answer."""

Progress = Callable[[str], None]
"""Called every second with how far the loading of the logs has come."""


class Environment(NamedTuple):
    """The clock that a broker reads and the files that it writes.

    `odradek serve` has the operating system's. A broker for tests is given others, whose time can
    be advanced and whose disk can be full.

    Attributes:
        clock: of all that the broker does; its session with the metadata store, which other
            processes see too, goes by the system's all the same.
        files: where its logs are.
        on_made: called with the broker when it is put together, before it serves.
        rng: the source of everything random; a fresh one if None.
        store: a session on the cluster's metadata, not open yet; what the settings say if None.
        make_server: makes what serves the listeners.
        recovery_ms: what cannot be recovered in so long is recovered while the broker serves.
    """

    clock: Clock
    files: Files = REAL_FILES
    on_made: Callable[[Broker], None] | None = None
    rng: random.Random | None = None
    store: MetadataStore | None = None
    make_server: Callable[..., Server] = Server
    recovery_ms: int | None = RECOVERY_MS


class StartError(Exception):
    """The broker cannot start; the text is for the user."""


def run_brokers(
    configs: Sequence[BrokerConfig],
    announce: Announce,
    stop_requested: Callable[[], bool],
    progress: Progress | None = None,
    metrics: Sequence[MetricsListener] = (),
    environment: Environment | None = None,
    companions: frozenset[int] = frozenset(),
) -> None:
    """Run brokers in this process until SIGINT or SIGTERM.

    Args:
        configs: the settings of each.
        announce: called once when all are ready.
        stop_requested: whether a signal to stop came before this listens to signals.
        progress: called while the start takes long.
        metrics: where the metrics of each are served, if they are.
        environment: their clock and files; the operating system's if None.
        companions: the ids of all that start together, in other processes, too; a broker is ready
            when the others are there. Those of this process if empty.

    Raises:
        StartError: they cannot start, for a reason that the text tells.
    """
    if len(configs) > 1:
        companions |= {config["broker.id"] for config in configs}
    for key in configs[0].unknown_keys:
        logger.warning("the setting %s is not known and has no effect", key)
    descriptors = _plan_descriptors(len(configs))
    try:
        trio.run(
            _run_until_signal,
            configs,
            announce,
            stop_requested,
            progress,
            metrics,
            environment,
            descriptors,
            companions,
        )
    except* (
        ConfigError,
        LogDirectoryError,
        StorageError,
        BrokerIdTaken,
        FeaturesNotSupported,
        MetadataStoreError,
    ) as why:
        raise StartError(_reason(_first(why))) from why


def _reason(error: BaseException) -> str:
    """A sentence for the user."""
    if isinstance(error, StoreUnreachable):
        return f"the metadata store {error.path} cannot be used: {error.reason}"
    return str(error)


def _plan_descriptors(brokers: int) -> DescriptorPlan:
    """Have as many descriptors as the system allows, and say what they are good for.

    Returns:
        The plan of each of so many brokers.
    """
    before, limit = raise_limit()
    plan = plan_descriptors(limit, count_open() + brokers * OPENED_AT_START)
    OPEN_FILES.limit = plan.segments
    OPEN_FILES.scarce_from = plan.limit - plan.reserve
    logger.log(
        logging.WARNING if plan.connections < CONNECTIONS_FEW else logging.INFO,
        "the limit of open files is %d (it was %d at the start): good for %d connections and %d "
        "open segments of logs; %d descriptors are in reserve%s",
        limit,
        before,
        plan.connections,
        plan.segments,
        plan.reserve,
        "; raise it (ulimit -n) to serve more" if plan.connections < CONNECTIONS_FEW else "",
    )
    return plan._replace(connections=max(plan.connections // brokers, 1))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


async def _run_until_signal(
    configs: Sequence[BrokerConfig],
    announce: Announce,
    stop_requested: Callable[[], bool],
    progress: Progress | None,
    metrics: Sequence[MetricsListener],
    environment: Environment | None,
    descriptors: DescriptorPlan,
    companions: frozenset[int],
) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        if stop_requested():
            return
        async with trio.open_nursery() as nursery:
            scope = nursery.cancel_scope
            nursery.start_soon(
                _run_all,
                configs,
                announce,
                progress,
                metrics,
                environment,
                descriptors,
                companions,
                scope,
            )
            nursery.start_soon(Supervisor().run, collect_when_idle)
            nursery.start_soon(Supervisor().run, _count_suppressed_lines)
            async for number in signals:
                logger.info("stopping on %s", signal.Signals(number).name)
                nursery.cancel_scope.cancel()
                return


async def _count_suppressed_lines() -> None:
    """Have the log say what it left out, until cancelled."""
    clock = SystemClock()
    handlers = [each for each in logging.root.handlers if isinstance(each, LimitedLogHandler)]
    while handlers:
        await trio.sleep(LOG_LOOK_SECONDS)
        for handler in handlers:
            handler.end_intervals(clock.now_ms() / 1000)


async def _run_all(
    configs: Sequence[BrokerConfig],
    announce: Announce,
    progress: Progress | None,
    metrics: Sequence[MetricsListener],
    environment: Environment | None,
    descriptors: DescriptorPlan,
    companions: frozenset[int],
    scope: trio.CancelScope,
) -> None:
    """Run all; `scope` is cancelled when they have come to their end by themselves."""
    addresses: dict[int, str] = {}
    in_turn = StopInTurn()

    async def run(index: int) -> None:
        if not metrics:
            await run_broker(index, lambda broker: None)
            return
        from .metrics.broker_pages import BrokerPages
        from .metrics.endpoint import MetricsEndpoint

        pages = BrokerPages()
        endpoint = MetricsEndpoint(pages)
        serving = trio.CancelScope(shield=True)  # it says how the broker is until that has stopped

        async def serve() -> None:
            with serving:
                await Supervisor().run(endpoint.serve, metrics[index])

        def show(broker: Broker) -> None:
            pages.source = metrics_context(broker)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            try:
                await run_broker(index, show)
            finally:
                serving.cancel()

    async def run_broker(index: int, show: Callable[[Broker], None]) -> None:
        broker = await make_broker(configs[index], progress, environment, descriptors)
        broker.companions = companions
        show(broker)

        def on_ready(advertised: tuple[Listener, ...]) -> None:
            addresses[index] = advertised[0].address
            if len(addresses) == len(configs):
                announce(",".join(address for _, address in sorted(addresses.items())))

        await in_turn.run(broker, partial(broker.run, on_ready))

    left = set(range(len(configs)))

    async def run_to_its_end(index: int) -> None:
        await run(index)
        left.discard(index)
        if not left:
            scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(in_turn.stop_all)
        for index in range(len(configs)):
            nursery.start_soon(run_to_its_end, index)


class StopInTurn:
    """Stops the brokers of a process one after another, the controller last.

    Each hands its partitions to those that are left, and the controller sees all of them leave.
    At once, each would wait for another that is gone.
    """

    def __init__(self) -> None:
        self._running: dict[Broker, tuple[trio.CancelScope, trio.Event]] = {}
        self._is_stopping = False

    async def run(self, broker: Broker, run: Callable[[], Awaitable[None]]) -> None:
        """Run a broker until it ends by itself, or it is its turn to be stopped."""
        scope, ended = trio.CancelScope(shield=True), trio.Event()
        self._running[broker] = scope, ended
        if self._is_stopping:
            scope.cancel()
        try:
            with scope:
                await run()
        finally:
            del self._running[broker]
            ended.set()

    async def stop_all(self) -> None:
        """Wait until this is cancelled, as it is when one of them fails, too; then stop them."""
        try:
            await trio.sleep_forever()
        finally:
            self._is_stopping = True
            with trio.CancelScope(shield=True):
                running = sorted(
                    self._running.items(), key=lambda each: each[0].controller.is_active
                )
                for _, (scope, ended) in running:
                    scope.cancel()
                    await ended.wait()


def metrics_context(broker: Broker) -> MetricsContext:
    """What a broker's metrics and health are read from."""
    from .metrics.source import MetricsContext

    return MetricsContext(
        broker.context,
        broker.dispatcher,
        broker.server,
        broker.peers.fetchers,
        broker.supervisor,
        broker.timers,
        lambda: broker.state,
    )


async def make_broker(
    config: BrokerConfig,
    progress: Progress | None = None,
    environment: Environment | None = None,
    descriptors: DescriptorPlan | None = None,
) -> Broker:
    """Open the data folders and put a broker together.

    Args:
        config: its settings.
        progress: called while the loading of the logs takes long.
        environment: its clock and files; the operating system's if None.
        descriptors: what it may have open; as much as the process if None.

    Raises:
        LogDirectoryError: a folder is another process's or another broker's, or none can
            be used.
        MetadataStoreError: the store cannot be opened.
    """
    environment = environment or Environment(SystemClock())
    clock, files = environment.clock, environment.files
    rng = environment.rng or random.Random()
    broker_id = config["broker.id"] if config["broker.id"] >= 0 else DEFAULT_BROKER_ID
    BROKER_ID.set(broker_id)  # of all that this task and those that it starts log
    directories = [os.path.abspath(directory) for directory in config["log.dirs"]]
    log_manager = LogManager(
        directories, clock=clock, default_config=log_config(config, {}), files=files, rng=rng
    )
    try:
        # Not the broker's own clock, which a test may advance: other processes would not see that.
        store = environment.store or make_store(
            config, _metadata_folder(config, log_manager), clock=SystemClock()
        )
        await store.open()
        cluster_id = await get_or_create_cluster_id(
            store, log_manager.directories.cluster_id() or uuid_to_text(random_uuid(rng))
        )
        secret = await get_or_create_secret(store, random_secret(SECRET_BYTES))
        live_config = DynamicConfig(config)
        passwords = StoredPasswords.of(config)
        await load_broker_overrides(store, live_config, broker_id, passwords)
        log_manager.default_config = log_config(live_config, {})
        log_manager.directories.claim(broker_id, cluster_id, rng)
        log_manager.recovery_threads = live_config["num.recovery.threads.per.data.dir"]
        await _load_logs(log_manager, progress, environment.recovery_ms)
        loss = await StoreComparison(store, log_manager, rng).run()
        if loss is not None:
            from .log_adoption import LogAdoption

            await _recover_all(log_manager)
            await LogAdoption(loss, store, log_manager, broker_id, live_config, clock, rng).run()
        broker = Broker(
            broker_id=broker_id,
            cluster_id=cluster_id,
            secret=secret,
            config=live_config,
            log_manager=log_manager,
            metadata_store=store,
            passwords=passwords,
            clock=clock,
            rng=rng,
            descriptors=descriptors or plan_descriptors(current_limit(), count_open()),
            make_server=environment.make_server,
        )
    except BaseException:
        log_manager.abandon()
        raise
    if environment.on_made is not None:
        environment.on_made(broker)
    return broker


def _metadata_folder(config: BrokerConfig, log_manager: LogManager) -> Path:
    """Where the cluster's metadata lie.

    Raises:
        LogDirectoryError: in a directory that cannot be used.
    """
    elsewhere = config["metadata.log.dir"]
    if elsewhere:
        folder = Path(os.path.abspath(elsewhere))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LogDirectoryError(f"cannot make metadata.log.dir {folder}: {error}") from error
        return folder
    first = next(iter(log_manager.directories))
    if not first.is_online:
        raise LogDirectoryError(
            f"{first.failure}; the cluster's metadata lie there, unless metadata.log.dir names "
            "another folder"
        )
    return Path(first.path)


async def _load_logs(
    log_manager: LogManager, progress: Progress | None, recovery_ms: int | None
) -> None:
    """Load in a thread, so that a signal to stop is heeded between two logs.

    Raises:
        LogDirectoryError: see `LogManager.load_logs`.
    """

    def load() -> None:
        log_manager.load_logs(
            on_progress=lambda so_far: progress and progress(str(so_far)), recovery_ms=recovery_ms
        )

    await run_in_stoppable_thread(load, log_manager.stop_loading)


async def _recover_all(log_manager: LogManager) -> None:
    """Recover what the loading has left, before anybody is served."""
    while (work := log_manager.prepare_recovery()) is not None:
        recovered = await run_in_stoppable_thread(work, log_manager.stop_loading)
        log_manager.take_up_recovered(recovered)
        if log_manager.take_failed_directories():
            log_manager.directories.require_one_online()
