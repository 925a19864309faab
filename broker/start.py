"""From settings to a running broker, and every reason why it may not come to that."""

from __future__ import annotations

import logging
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import trio

from ..runtime.clock import SystemClock
from ..runtime.randomness import random_uuid, uuid_to_text
from ..storage.errors import LogDirectoryError, StorageError
from ..storage.log_manager import LogManager
from .broker import Broker
from .config.broker_config import BrokerConfig
from .config.definition import ConfigError
from .config.listeners import Listener
from .config.topic_configs import log_config
from .controller.registration import BrokerIdTaken, get_or_create_cluster_id
from .metadata_store.embedded_store import EmbeddedStore
from .metadata_store.errors import MetadataStoreError

logger = logging.getLogger(__name__)

METADATA_FILE = "odradek-metadata.sqlite"
"""In the first log directory; Kafka's tools leave files that are no folders alone."""

DEFAULT_BROKER_ID = 1

Announce = Callable[[str, str], None]
"""Told address and data folder once the broker answers."""


class StartError(Exception):
    """The broker cannot start; the text is for the user."""


def run_broker(
    config: BrokerConfig, announce: Announce, stop_requested: Callable[[], bool]
) -> None:
    """Run a broker until SIGINT or SIGTERM.

    Args:
        config: its settings.
        announce: called once when it is ready.
        stop_requested: whether a signal to stop came before this listens to signals.

    Raises:
        StartError: it cannot start, for a reason that the text tells.
    """
    for key in config.unknown_keys:
        logger.warning("the setting %s is not known and has no effect", key)
    try:
        trio.run(_run_until_signal, config, announce, stop_requested)
    except* (
        ConfigError,
        LogDirectoryError,
        StorageError,
        BrokerIdTaken,
        MetadataStoreError,
    ) as why:
        raise StartError(str(_first(why))) from why


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


async def _run_until_signal(
    config: BrokerConfig, announce: Announce, stop_requested: Callable[[], bool]
) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        if stop_requested():
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_run, config, announce, nursery.cancel_scope)
            async for number in signals:
                logger.info("stopping on %s", signal.Signals(number).name)
                nursery.cancel_scope.cancel()
                return


async def _run(config: BrokerConfig, announce: Announce, scope: trio.CancelScope) -> None:
    broker = await make_broker(config)

    def on_ready(advertised: tuple[Listener, ...]) -> None:
        announce(advertised[0].address, str(config["log.dirs"][0]))

    await broker.run(on_ready)
    scope.cancel()


async def make_broker(config: BrokerConfig) -> Broker:
    """Open the data folders and put a broker together.

    Raises:
        LogDirectoryError: a folder is another process's or another broker's.
        StorageError: a log cannot be read.
        MetadataStoreError: the store cannot be opened.
    """
    clock = SystemClock()
    chance = random.Random()
    directories = [os.path.abspath(directory) for directory in config["log.dirs"]]
    log_manager = LogManager(directories, clock=clock, default_config=log_config(config, {}))
    try:
        store = EmbeddedStore(
            Path(directories[0]) / METADATA_FILE, clock=clock, owner=directories[0]
        )
        await store.open()
        cluster_id = await get_or_create_cluster_id(
            store, log_manager.cluster_id() or uuid_to_text(random_uuid(chance))
        )
        broker_id = config["broker.id"]
        if broker_id < 0:
            broker_id = DEFAULT_BROKER_ID
        log_manager.claim_directories(broker_id, cluster_id, chance)
        log_manager.load_logs()
        return Broker(
            broker_id=broker_id,
            cluster_id=cluster_id,
            config=config,
            log_manager=log_manager,
            metadata_store=store,
            clock=clock,
            chance=chance,
        )
    except BaseException:
        log_manager.abandon()
        raise
