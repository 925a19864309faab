"""A broker's log directories: full, broken, and well again."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..control.framing import VerbError
from ..control.verbs import verb

if TYPE_CHECKING:
    from ...common.topic_partition import TopicPartition
    from ..control.target import ControlTarget
    from .faulty_files import FaultyFiles

logger = logging.getLogger(__name__)

NOTICED_SECONDS_MAX = 30.0
SETTLED_SECONDS_MAX = 2.0
"""How long the controller, which may be out of reach, is waited for."""
ANSWER_SECONDS = 0.02
"""How long a broker that is about to end takes to say so."""


@verb
def fill_disk(target: ControlTarget, *, room_bytes: int = 0, number: int | None = None) -> None:
    """Fill the disks of the log directories: appends are refused until there is room.

    Producers get KAFKA_STORAGE_ERROR; what was acknowledged stays, and can be read. The
    cluster's metadata are on another disk.

    Args:
        room_bytes: how much can still be written.
        number: of the log directory, from 0; None: all of them.
    """
    files = _files(target)
    for path in _paths(target, number):
        files.disk(path).room_bytes = room_bytes
        logger.warning("outage: the disk of %s is full but for %d bytes", path, room_bytes)


@verb
def free_disk(target: ControlTarget, *, number: int | None = None) -> None:
    """Give the disks of a log directory, or of all, room again."""
    files = _files(target)
    for path in _paths(target, number):
        disk = files.disk(path)
        disk.room_bytes = None
        if not disk.is_broken:
            files.mend(path)
        logger.warning("outage: the disk of %s has room again", path)


@verb
def filled_disks(target: ControlTarget) -> list[int]:
    """The numbers of the log directories whose disks `fill_disk` has filled, from 0."""
    files = _files(target)
    return [
        number
        for number, path in enumerate(target.broker.log_manager.log_dirs)
        if files.disk(path).room_bytes is not None
    ]


@verb
async def fail_log_dir(target: ControlTarget, number: int = 0) -> str:
    """Break the disk of a log directory: it is offline until a restart.

    Others lead its partitions then, if there are others. With its last log directory a broker
    ends, as Kafka does, a moment after this returns.

    Args:
        number: of the log directory, from 0.

    Returns:
        Its path.
    """
    files = _files(target)
    (path,) = _paths(target, number)
    directory = next(each for each in target.broker.log_manager.directories if each.path == path)
    if not directory.is_online:
        raise VerbError(f"the log directory {path} is offline already")
    files.disk(path).is_broken = True
    logger.warning("outage: the disk of %s is broken", path)
    if len(target.broker.log_manager.directories.online) == 1:
        target.start_task(_write_soon, target, path)
        return path
    led = _led_from(target, directory.logs)
    _write(target, path)
    if not await target.wait_until(lambda: not directory.is_online, NOTICED_SECONDS_MAX):
        raise TimeoutError(f"the log directory {path} is still online")
    await target.wait_until(lambda: _are_led_by_others(target, led), SETTLED_SECONDS_MAX)
    return path


def _led_from(
    target: ControlTarget, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Which partitions this broker leads, and in which leader epochs."""
    cache, broker_id = target.broker.metadata_cache, target.broker.broker_id
    states = {each: cache.get_partition_info(*each) for each in topic_partitions}
    return {
        each: state.leader_epoch
        for each, state in states.items()
        if state is not None and state.leader == broker_id
    }


def _are_led_by_others(target: ControlTarget, led: Mapping[TopicPartition, int]) -> bool:
    """Whether the controller has heard of it, and said who leads now."""
    cache, broker_id = target.broker.metadata_cache, target.broker.broker_id
    states = [(cache.get_partition_info(*each), epoch) for each, epoch in led.items()]
    return all(
        state is None or (state.leader != broker_id and state.leader_epoch > epoch)
        for state, epoch in states
    )


def _write(target: ControlTarget, path: str) -> None:
    """Touch a log directory as a checkpoint does, and tell what the disk says of it."""
    try:
        _files(target).sync_directory(path)
    except OSError as error:
        target.broker.log_manager.disk_failed(path, error)
    target.broker.server.finish_outside_work()


async def _write_soon(target: ControlTarget, path: str) -> None:
    """The same once the answer has gone out."""
    import trio

    await trio.sleep(ANSWER_SECONDS)
    _write(target, path)


def _files(target: ControlTarget) -> FaultyFiles:
    from .faulty_files import FaultyFiles

    files = target.broker.log_manager.files
    if not isinstance(files, FaultyFiles):
        raise VerbError("this broker has the system's files, with which nothing goes wrong at will")
    return files


def _paths(target: ControlTarget, number: int | None) -> list[str]:
    """The log directory of a number, or all of them."""
    paths = target.broker.log_manager.log_dirs
    if number is None:
        return paths
    if not 0 <= number < len(paths):
        raise VerbError(
            f"this broker has {len(paths)} log directories: there is no number {number}"
        )
    return [paths[number]]
