"""A metadata store in one SQLite file, for brokers of one machine; needs no server.

The file is in WAL mode, so reading never waits for writing. A verb runs in place: a write
costs a few dozen microseconds, less than the way to a thread and back. Only while another
process holds the write lock does a verb wait, in the loop's own way.

Durability: `synchronous = NORMAL`. What a verb acknowledged is in the operating system's
hands and survives the end of the process, SIGKILL too; a power failure may take the last
changes with it, in order, and leaves the file whole. That is what Kafka's own logs promise
with their default settings; a sync for each change would cost milliseconds.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import trio

from ...runtime.clock import Clock
from ..errors import MetadataStoreError, NoNode, SessionExpired, StoreUnreachable
from ..store import (
    SESSION_ENDED,
    SESSION_TIMEOUT_MS,
    MetadataStore,
    Operation,
    Result,
    SessionState,
    StoredNode,
    WatchCallback,
)
from .node_table import Paths
from .session_locks import SessionLocks
from .store_file import StoreFile, is_busy
from .watches import EmbeddedWatch, Watches

logger = logging.getLogger(__name__)

POLL_INTERVAL_MS = 50
"""How soon a watch sees a change that another process made."""

ALONE_INTERVAL_MS = 250
"""How soon one sees another's first change where no other session was: being woken is most of
what a broker with nothing to do costs."""

LOOK_FOR_DEAD_MS = 100
"""How often to look whether the other sessions last: their leases, and their holders."""

BUSY_WAIT_MS_MAX = 5_000
"""How long a verb waits for the write lock before the store counts as unreachable."""

BUSY_RETRY_MS = 2

ResultT = TypeVar("ResultT")


class EmbeddedStore(MetadataStore):
    """A session on the tree kept in one file.

    Args:
        path: the file; it is made if it is not there. Its folder must be.
        clock: wall time for leases, which all processes of the machine share.
        owner: names who holds the session, as by its data folder. A new session of an
            owner ends that owner's former one at once: the caller vouches that there is no
            other (a broker holds the lock of its data folder), so a restarted broker does
            not wait for its own old lease.
        session_timeout_ms: how long after its holder fell silent a session ends.
        poll_interval_ms: how often to look for what others changed, while there are watches.
        busy_wait_ms_max: how long to wait for another process's write.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        clock: Clock,
        owner: str,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        poll_interval_ms: int = POLL_INTERVAL_MS,
        busy_wait_ms_max: int = BUSY_WAIT_MS_MAX,
    ) -> None:
        super().__init__()
        self._file = StoreFile(path)
        self._clock = clock
        self._owner = owner
        self._session_timeout_ms = session_timeout_ms
        self._poll_interval_ms = poll_interval_ms
        self._busy_wait_ms_max = busy_wait_ms_max
        self._data_version = 0
        self._is_alone = False
        self._renew_at_ms = 0
        self._unchecked = False
        self._watch_added = trio.Event()
        self._locks = SessionLocks(str(path))
        self._look_for_dead_at_ms = 0

    # -- the session ----------------------------------------------------------------

    @property
    def path(self) -> Path | str:
        """The file."""
        return self._file.path

    async def open(self) -> None:
        """Open the file and begin a session; the watches of an earlier one are gone.

        Raises:
            StoreUnreachable: the file is no store, or another process keeps it locked.
        """
        self._locks.release(remove=True)
        self._file.close()
        try:
            await self._connect()
        except BaseException:
            self._file.close()
            raise
        self._change_state(SessionState.CONNECTED)

    async def _connect(self) -> None:
        self._file.open()
        self._watches = Watches(self._file.table.stamp)
        await self._retry(self._file.prepare)

        def begin() -> tuple[int, Paths]:
            now_ms = self._clock.now_ms()
            begun = self._file.table.begin_session(self._owner, now_ms, self._session_timeout_ms)
            self._locks.hold(begun[0])
            return begun

        self.session_id, _ = await self._retry(lambda: self._file.in_transaction(begin))
        self._renew_at_ms = self._clock.now_ms() + self._session_timeout_ms // 3
        self._data_version = self._file.data_version()

    async def close(self) -> None:
        """End the session: its ephemeral nodes are gone at once."""
        if self.session_state not in SESSION_ENDED:
            try:
                await self._write(lambda: (None, self._file.table.end_session(self.session_id)))
            except MetadataStoreError as error:
                logger.warning("the session's lease is left to run out: %s", error)
        self._locks.release(remove=True)
        self._file.close()
        self._change_state(SessionState.CLOSED)

    def abandon(self) -> None:
        """Let go of everything as a process that is killed does; others end the session."""
        self._locks.release(remove=False)
        self._file.close()
        self._change_state(SessionState.CLOSED)

    async def run(self) -> None:
        """Renew the lease and feed the watches until the session is over."""
        while self.session_state not in SESSION_ENDED:
            if len(self._watches):
                every_ms = self._poll_interval_ms
                if self._is_alone:
                    every_ms = max(every_ms, ALONE_INTERVAL_MS)
                await trio.sleep(every_ms / 1000)
            else:
                # Nothing to look for: sleep until the lease is due or a watch is set.
                wait_ms = max(self._renew_at_ms - self._clock.now_ms(), self._poll_interval_ms)
                with trio.move_on_after(wait_ms / 1000):
                    await self._watch_added.wait()
                self._watch_added = trio.Event()
            self.poll(self._clock.now_ms())

    def poll(self, now_ms: int) -> None:
        """Do what is due: renew the lease, end leases that ran out, check the watches.

        Args:
            now_ms: wall time.
        """
        if self.session_state in SESSION_ENDED:
            return
        try:
            if now_ms >= self._renew_at_ms:
                self._renew(now_ms)
            if now_ms >= self._look_for_dead_at_ms:
                self._look_for_dead_at_ms = now_ms + LOOK_FOR_DEAD_MS
                self._end_sessions_of_others(now_ms)
            data_version = self._file.data_version()
            if data_version != self._data_version or self._unchecked:
                self._data_version = data_version
                self._unchecked = False
                if not self._file.table.has_session(self.session_id):
                    self._expire()
                self._watches.check()
        except StoreUnreachable as error:
            self._lose(error)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                self._lose(error)
        else:
            if self.session_state is SessionState.LOST:
                self._change_state(SessionState.CONNECTED)

    def _renew(self, now_ms: int) -> None:
        def renew() -> tuple[bool, Paths]:
            expires_at_ms = now_ms + self._session_timeout_ms
            renewed = self._file.table.renew_session(self.session_id, expires_at_ms)
            return renewed, self._file.table.end_expired_sessions(now_ms)

        renewed, touched = self._file.in_transaction(renew)
        self._renew_at_ms = now_ms + self._session_timeout_ms // 3
        if not renewed:
            self._expire()
        self._watches.check(touched)

    def _end_sessions_of_others(self, now_ms: int) -> None:
        """End those whose lease ran out, and those whose holder is dead.

        A process that was killed keeps no lock: its session ends before its lease does.
        """
        others = self._file.table.sessions()
        others.pop(self.session_id, None)
        self._is_alone = not others
        dead = [each for each in others if not self._locks.is_held(each)]
        if not dead and not any(expires_at_ms <= now_ms for expires_at_ms in others.values()):
            return

        def end() -> Paths:
            touched = self._file.table.end_expired_sessions(now_ms)
            for session_id in dead:
                touched |= self._file.table.end_session(session_id)
            return touched

        if dead:
            logger.info("ended the sessions of processes that are gone: %s", dead)
        self._watches.check(self._file.in_transaction(end))

    def _expire(self) -> None:
        self._locks.release(remove=True)
        logger.warning("the metadata store ended session %d", self.session_id)
        self._change_state(SessionState.EXPIRED)

    def _lose(self, error: Exception) -> None:
        if self.session_state is SessionState.CONNECTED:
            logger.error("the metadata store at %s does not answer: %s", self._file.path, error)
            self._change_state(SessionState.LOST)

    # -- the verbs ------------------------------------------------------------------

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """Read many nodes, None where there is none."""
        return await self._read(lambda: [self._file.table.get(path) for path in paths])

    async def children(self, path: str) -> list[str]:
        """The sorted names of a node's children; raises NoNode where there is no node."""
        names = await self._read(lambda: self._file.table.children(path))
        if names is None:
            raise NoNode(path)
        return names

    async def watch(self, path: str, callback: WatchCallback) -> EmbeddedWatch:
        """Call back after each later change of a node and of its children."""
        watch = await self._read(lambda: self._watches.add(path, callback))
        self._watch_added.set()
        return watch

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations in order, or none."""
        return await self._write(lambda: self._file.table.apply(operations, self.session_id))

    # -- around them ----------------------------------------------------------------

    async def _read(self, read: Callable[[], ResultT]) -> ResultT:
        self._require_session()
        return await self._retry(read)

    async def _write(self, change: Callable[[], tuple[ResultT, Paths]]) -> ResultT:
        """Change the file in one transaction, then check this store's own watches."""
        self._require_session()

        def change_within_session() -> tuple[ResultT, Paths] | None:
            # A lease that ran out fences its holder: what it still writes is refused.
            if not self._file.table.has_session(self.session_id):
                return None
            return change()

        outcome = await self._retry(lambda: self._file.in_transaction(change_within_session))
        if outcome is None:
            self._expire()
            raise SessionExpired(reason=SessionState.EXPIRED.value)
        result, touched = outcome
        try:
            self._watches.check(touched)
        except sqlite3.OperationalError:
            self._unchecked = True  # the next poll looks at all of them
        return result

    async def _retry(self, work: Callable[[], ResultT]) -> ResultT:
        """Do work on the file, waiting while another process holds its lock."""
        waited_ms = 0
        while True:
            try:
                return work()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or waited_ms >= self._busy_wait_ms_max:
                    self._lose(error)
                    raise StoreUnreachable(str(self._file.path), str(error)) from error
            except sqlite3.Error as error:
                raise StoreUnreachable(str(self._file.path), str(error)) from error
            await trio.sleep(BUSY_RETRY_MS / 1000)
            waited_ms += BUSY_RETRY_MS
