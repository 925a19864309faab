"""A connection to a listener that speaks SASL: each frame is looked at before it is routed."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.frames import FrameLimit
from ...security.authenticator.sasl_authenticator import SaslAuthenticator
from ..request.authentication import AUTHENTICATION_MS_MAX, admit_frame
from ..request.dispatch import Dispatcher
from ..request.requests import ClientConnection
from .connection import ANONYMOUS, Connection


class SaslConnection(Connection):
    """The broker's side of a connection whose client has to log in.

    Args:
        dispatcher, listener_name, peer, frame_bytes_max, on_ready: as of any connection.
        make_authenticator: makes what decides about logins, by the settings of this moment.
        login_bytes_max: `sasl.server.max.receive.size`, the largest frame before a login.
    """

    __slots__ = ("_frame_limit", "authenticator")

    authenticator: SaslAuthenticator

    def __init__(
        self,
        dispatcher: Dispatcher,
        listener_name: str,
        peer: str,
        frame_bytes_max: int,
        on_ready: Callable[[], None],
        *,
        make_authenticator: Callable[[], SaslAuthenticator],
        login_bytes_max: int,
    ) -> None:
        super().__init__(dispatcher, listener_name, peer, frame_bytes_max, on_ready)
        self.authenticator = make_authenticator()
        self.authenticator.on_login = self._logged_in
        self._frame_limit = self.reader.limit
        self.reader.limit = FrameLimit(
            "sasl.server.max.receive.size", min(login_bytes_max, frame_bytes_max)
        )
        dispatcher.call_later(AUTHENTICATION_MS_MAX, self._close_unless_logged_in)

    @property
    def has_logged_in(self) -> bool:
        """Whether its client has logged in."""
        return self.principal != ANONYMOUS

    @property
    def _dispatch(self) -> Callable[[ClientConnection, memoryview], None]:
        return self._dispatch_admitted

    def _dispatch_admitted(self, _connection: ClientConnection, frame: memoryview) -> None:
        if admit_frame(self, self.authenticator, frame):
            self.dispatcher.entry(self, frame)

    def _logged_in(self, principal: str) -> None:
        """From now on requests come from this principal, and may be as long as any."""
        self.principal = principal
        self.reader.limit = self._frame_limit

    def _close_unless_logged_in(self) -> None:
        if not (self.is_closed or self.is_closing or self.has_logged_in):
            self.fail("it did not log in in time")
