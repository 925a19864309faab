"""A broker's log directories: full, broken, and well again."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import trio

from ..control.verbs import VerbError
from .faulty_files import FaultyFiles

if TYPE_CHECKING:
    from ...common.topic_partition import TopicPartition
    from ..control.verbs import Controlled

logger = logging.getLogger(__name__)

NOTICED_SECONDS_MAX = 30.0
SETTLED_SECONDS_MAX = 2.0
"""How long the controller, which may be out of reach, is waited for."""
LOOK_SECONDS = 0.002
ANSWER_SECONDS = 0.02
"""How long a broker that is about to end takes to say so."""


def fill(target: Controlled, room_bytes: int = 0, number: int | None = None) -> None:
    """Leave so much room on the disk of a log directory, or on those of all."""
    files = _files(target)
    for path in _paths(target, number):
        files.disk(path).room_bytes = room_bytes
        logger.warning("outage: the disk of %s is full but for %d bytes", path, room_bytes)


def free(target: Controlled, number: int | None = None) -> None:
    """Give room again to a log directory, or to all."""
    files = _files(target)
    for path in _paths(target, number):
        disk = files.disk(path)
        disk.room_bytes = None
        if not disk.is_broken:
            files.mend(path)
        logger.warning("outage: the disk of %s has room again", path)


async def fail(target: Controlled, number: int = 0) -> str:
    """Break the disk of a log directory, and write there, so that the broker notices.

    Answers when it has taken the directory offline, which it stays until a restart; where it is
    the last one, before that, for the broker ends with it.
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
    with trio.fail_after(NOTICED_SECONDS_MAX):
        while directory.is_online:
            await trio.sleep(LOOK_SECONDS)
    with trio.move_on_after(SETTLED_SECONDS_MAX):
        while not _are_given_up(target, led):
            await trio.sleep(LOOK_SECONDS)
    return path


def _led_from(
    target: Controlled, topic_partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Which partitions this broker leads, and in which leader epochs."""
    cache, broker_id = target.broker.metadata_cache, target.broker.broker_id
    states = {each: cache.get_partition_info(*each) for each in topic_partitions}
    return {
        each: state.leader_epoch
        for each, state in states.items()
        if state is not None and state.leader == broker_id
    }


def _are_given_up(target: Controlled, led: Mapping[TopicPartition, int]) -> bool:
    """Whether the controller has heard of it, and said who leads now."""
    cache, broker_id = target.broker.metadata_cache, target.broker.broker_id
    states = [(cache.get_partition_info(*each), epoch) for each, epoch in led.items()]
    return all(
        state is None or (state.leader != broker_id and state.leader_epoch > epoch)
        for state, epoch in states
    )


def _write(target: Controlled, path: str) -> None:
    """Touch a log directory as a checkpoint does, and tell what the disk says of it."""
    try:
        _files(target).sync_directory(path)
    except OSError as error:
        target.broker.log_manager.disk_failed(path, error)
    target.broker.server.finish_outside_work()


async def _write_soon(target: Controlled, path: str) -> None:
    """The same once the answer has gone out."""
    await trio.sleep(ANSWER_SECONDS)
    _write(target, path)


def _files(target: Controlled) -> FaultyFiles:
    files = target.broker.log_manager.files
    if not isinstance(files, FaultyFiles):
        raise VerbError("this broker has the system's files, with which nothing goes wrong at will")
    return files


def _paths(target: Controlled, number: int | None) -> list[str]:
    """The log directory of a number, or all of them."""
    paths = target.broker.log_manager.log_dirs
    if number is None:
        return paths
    if not 0 <= number < len(paths):
        raise VerbError(
            f"this broker has {len(paths)} log directories: there is no number {number}"
        )
    return [paths[number]]
