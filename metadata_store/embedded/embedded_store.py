"""A metadata store in one SQLite file, for brokers of one machine; needs no server.

The file is in WAL mode, so reading never waits for writing. A verb runs in place: a write
costs a few dozen microseconds, less than the way to a thread and back. Only while another
process holds the write lock does a verb wait, in the loop's own way.

Durability: a verb that changes what lasts (topics, ACLs, ids, epochs, settings) returns when the
change is on the disk, as with SQLite's `synchronous = FULL`. What ends with a session, its
renewals and its ephemeral nodes, is only in the operating system's hands: it survives the end of
the process, SIGKILL too, and no session survives a crash of power. Such a crash leaves the file
whole.

Time: a session goes by no clock of the machine's; see `session_renewals.py`.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from ...runtime.clock import Clock
from ...runtime.steps import in_batches
from ...storage.io.files import REAL_FILES, Files
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
from .node_table import Paths, is_durable
from .session_locks import SessionLocks
from .session_renewals import SessionRenewals
from .store_file import StoreFile, is_busy
from .watches import EmbeddedWatch, Watches

logger = logging.getLogger(__name__)

POLL_INTERVAL_MS = 50
"""How soon a watch sees a change that another process made."""

ALONE_INTERVAL_MS = 250
"""How soon one sees another's first change where no other session was: being woken is most of
what a broker with nothing to do costs."""

LOOK_FOR_DEAD_MS = 100
"""How often to look whether the other sessions last: their renewals, and their holders."""

BUSY_WAIT_MS_MAX = 5_000
"""How long a verb waits for the write lock before the store counts as unreachable."""

READS_PER_STEP = 100
"""So many nodes are read in one go, which takes a millisecond: then others have a turn."""

VERBS_PER_STEP = 25
"""So many verbs that have not waited are done before others have a turn: who does thousands in a
row may await nothing else."""

BUSY_RETRY_MS = 2

ResultT = TypeVar("ResultT")


class EmbeddedStore(MetadataStore):
    """A session on the tree kept in one file.

    Args:
        path: the file; it is made if it is not there. Its folder must be.
        clock: its monotonic time says when something is due; no other process need share it.
        session_timeout_ms: how long after its holder fell silent a session ends.
        poll_interval_ms: how often to look for what others changed, while there are watches.
        busy_wait_ms_max: how long to wait for another process's write.
        files: where its locks are, and what syncs it.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        clock: Clock,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        poll_interval_ms: int = POLL_INTERVAL_MS,
        busy_wait_ms_max: int = BUSY_WAIT_MS_MAX,
        files: Files = REAL_FILES,
    ) -> None:
        super().__init__()
        self._file = StoreFile(path, files)
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._poll_interval_ms = poll_interval_ms
        self._busy_wait_ms_max = busy_wait_ms_max
        self._data_version = 0
        self._is_alone = False
        self._renew_at_ms = 0
        self._unchecked = False
        self._verbs_in_step = 0
        self._watch_added = trio.Event()
        self._locks = SessionLocks(str(path), files)
        self._renewals = SessionRenewals(self._renew_interval_ms)
        self._look_for_dead_at_ms = 0

    # -- the session ----------------------------------------------------------------

    @property
    def path(self) -> Path | str:
        """The file."""
        return self._file.path

    @property
    def location(self) -> str:
        """The file."""
        return str(self._file.path)

    @property
    def _renew_interval_ms(self) -> int:
        return self._session_timeout_ms // 3

    async def open(self) -> None:
        """Open the file and begin a session; the watches of an earlier one are gone.

        Raises:
            StoreUnreachable: the file is no store, or another process keeps it locked.
        """
        self._give_up_session()
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
        await self._retry(lambda: self._file.prepare(self._locks.is_held))
        self._renewals = SessionRenewals(self._renew_interval_ms)

        def begin() -> int:
            # Those of holders that were killed have ended before anybody misses them: a broker
            # that comes back finds its own registration gone, in a copied folder, too.
            self._end_sessions(each for each in self._file.table.sessions() if self._is_dead(each))
            session_id = self._file.table.begin_session(self._session_timeout_ms)
            self._locks.hold(session_id)
            return session_id

        self.session_id = await self._retry(lambda: self._file.in_transaction(begin))
        self.opened_at = self.session_id  # sessions count with the nodes
        self._renew_at_ms = self._clock.monotonic_ms() + self._renew_interval_ms
        self._data_version = self._file.data_version()

    async def close(self) -> None:
        """End the session: its ephemeral nodes are gone at once."""
        if self.session_state not in SESSION_ENDED:
            try:
                await self._write(lambda: (None, self._file.table.end_session(self.session_id)))
            except MetadataStoreError as error:
                logger.warning("the session is left to time out: %s", error)
        self._locks.release(remove=True)
        self._file.close()
        self._change_state(SessionState.CLOSED)

    def abandon(self) -> None:
        """Let go of everything as a process that is killed does; others end the session."""
        self._locks.release(remove=False)
        self._file.close()
        self._change_state(SessionState.CLOSED)

    async def run(self) -> None:
        """Renew the session and feed the watches until it is over."""
        while self.session_state not in SESSION_ENDED:
            if len(self._watches):
                every_ms = self._poll_interval_ms
                if self._is_alone:
                    every_ms = max(every_ms, ALONE_INTERVAL_MS)
                await trio.sleep(every_ms / 1000)
            else:
                # Nothing to look for: sleep until the renewal is due or a watch is set.
                wait_ms = self._renew_at_ms - self._clock.monotonic_ms()
                wait_ms = max(wait_ms, self._poll_interval_ms)
                with trio.move_on_after(wait_ms / 1000):
                    await self._watch_added.wait()
                self._watch_added = trio.Event()
            self.poll(self._clock.monotonic_ms())

    def poll(self, now_ms: int) -> None:
        """Do what is due: renew the session, end those that have timed out, check the watches.

        Args:
            now_ms: monotonic milliseconds.
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
        renewed = self._file.in_transaction(lambda: self._file.table.renew_session(self.session_id))
        self._renew_at_ms = now_ms + self._renew_interval_ms
        if not renewed:
            self._expire()

    def _end_sessions_of_others(self, now_ms: int) -> None:
        """End those whose holder is dead, and those whose holder does not run.

        A process that was killed keeps no lock: its session ends before it times out.
        """
        others = self._file.table.sessions()
        others.pop(self.session_id, None)
        self._is_alone = not others
        overdue = self._renewals.overdue(others, now_ms)
        ended = [each for each in others if each in overdue or self._is_dead(each)]
        if not ended:
            return

        def end() -> Paths:
            # One that was renewed since it was looked at goes on.
            sessions = self._file.table.sessions()
            return self._end_sessions(each for each in ended if sessions.get(each) == others[each])

        self._watches.check(self._file.in_transaction(end))

    def _is_dead(self, session_id: int) -> bool:
        return not self._locks.is_held(session_id)

    def _end_sessions(self, session_ids: Iterable[int]) -> Paths:
        """End sessions in their holders' place; returns the paths touched."""
        touched: Paths = set()
        for session_id in session_ids:
            why = "its process is gone" if self._is_dead(session_id) else "it was not renewed"
            logger.info("ending session %d: %s", session_id, why)
            touched |= self._file.table.end_session(session_id)
            self._locks.remove(session_id)
        return touched

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
        found: list[StoredNode | None] = []
        for batch in in_batches(paths, READS_PER_STEP):
            if found:
                await trio.lowlevel.checkpoint()
            found += await self._read(partial(self._get_all, batch))
        return found

    def _get_all(self, paths: Sequence[str]) -> list[StoredNode | None]:
        return [self._file.table.get(path) for path in paths]

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
        results = await self._write(lambda: self._file.table.apply(operations, self.session_id))
        if any(map(is_durable, operations)):
            await self._sync()
        return results

    # -- around them ----------------------------------------------------------------

    async def _read(self, read: Callable[[], ResultT]) -> ResultT:
        self._require_session()
        await self._let_others_run()
        return await self._retry(read)

    async def _let_others_run(self) -> None:
        self._verbs_in_step += 1
        if self._verbs_in_step >= VERBS_PER_STEP:
            self._verbs_in_step = 0
            await trio.lowlevel.checkpoint()
            self._require_session()

    async def _write(self, change: Callable[[], tuple[ResultT, Paths]]) -> ResultT:
        """Change the file in one transaction, then check this store's own watches."""
        self._require_session()
        await self._let_others_run()

        def change_within_session() -> tuple[ResultT, Paths] | None:
            # A session that was ended fences its holder: what it still writes is refused.
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

    async def _sync(self) -> None:
        try:
            await self._file.sync()
        except StoreUnreachable as error:
            self._lose(error)
            raise

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
