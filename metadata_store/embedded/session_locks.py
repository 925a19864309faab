"""Whether the holder of a session still lives, from the operating system.

Each holder of a session of the embedded store keeps a lock on a small file beside the store.
The kernel lets go of it however the process ends, so the others need not wait until the
session's lease runs out to know that it was killed; the lease is left for one that is frozen.
"""

from __future__ import annotations

from ...storage.io.files import REAL_FILES, FileLock, Files


class SessionLocks:
    """The locks of the sessions of one store.

    Args:
        path: of the store's file.
    """

    def __init__(self, path: str, files: Files = REAL_FILES) -> None:
        self._path = path
        self._files = files
        self._held: FileLock | None = None
        self._held_path = ""

    def hold(self, session_id: int) -> None:
        """Take the lock of an own session, before anybody can see the session."""
        self._held_path = self._path_of(session_id)
        self._held = self._files.lock(self._held_path)

    def release(self, *, remove: bool) -> None:
        """Let go of it; removes the file where the session has ended as it should."""
        if self._held is None:
            return
        if remove:
            self._files.remove(self._held_path)
        self._held.release()
        self._held = None

    def is_held(self, session_id: int) -> bool:
        """Whether the holder of a session lives; where it does not, its file goes."""
        path = self._path_of(session_id)
        lock = self._files.lock(path)
        if lock is None:
            return True
        self._files.remove(path)
        lock.release()
        return False

    def _path_of(self, session_id: int) -> str:
        return f"{self._path}.session-{session_id}"
