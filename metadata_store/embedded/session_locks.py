"""Whether the holder of a session still lives, from the operating system.

Each holder of a session of the embedded store keeps a lock on a small file beside the store.
The kernel lets go of it however the process ends, a crash of the machine too, and no copy of the
folder has it. So the others need not wait to know that it was killed, and a broker that starts on a
copy takes none of the sessions in it for a live one.
"""

from __future__ import annotations

from ...storage.io.files import FileLock, Files


class SessionLocks:
    """The locks of the sessions of one store.

    Args:
        path: of the store's file.
    """

    def __init__(self, path: str, files: Files) -> None:
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
        """Whether the holder of a session lives."""
        return self._files.is_locked(self._path_of(session_id))

    def remove(self, session_id: int) -> None:
        """Remove the file of a session that was ended in its holder's place."""
        self._files.remove(self._path_of(session_id))

    def _path_of(self, session_id: int) -> str:
        return f"{self._path}.session-{session_id}"
