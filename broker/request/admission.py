"""What admits a request, and the one integer that says whether an earlier admission still holds."""

from __future__ import annotations

from .authorization import Authorize, allow_everything
from .requests import Request


class Admission:
    """Who may do what, and since when nothing that a request's admission rests on has changed.

    A connection's memos of earlier requests are valid while `epoch` is what it was when they were
    learnt. Whoever changes what a request may do, or what it would find, calls `invalidate`: a new
    snapshot of the metadata, a partition that changes its leader or its leader epoch or goes
    offline, another authorizer, a changed setting or feature, a hook that is set.

    Attributes:
        epoch: how often that has happened.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self._authorize: Authorize = allow_everything

    def invalidate(self) -> None:
        """What was admitted before has to be admitted anew."""
        self.epoch += 1

    def authorize_by(self, authorize: Authorize) -> None:
        """Have this decide from now on what a request's principal may do."""
        self._authorize = authorize
        self.invalidate()

    def authorize(
        self, request: Request[object], operation: str, resource_type: str, resource_name: str
    ) -> bool:
        """Whether a request's principal may do something; see `Authorize`."""
        return self._authorize(request, operation, resource_type, resource_name)
