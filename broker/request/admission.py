"""What admits a request, and the one integer that says whether an earlier admission still holds."""

from __future__ import annotations

from collections.abc import Iterable

from ...runtime.steps import Steps
from .authorization import Authorizations, AuthorizeSomewhere, IsBroker, without_authorizer
from .requests import Request


class Admission:
    """Who may do what, and since when nothing that a request's admission rests on has changed.

    A connection's memos of earlier requests are valid while `epoch` is what it was when they were
    learnt. Whoever changes what a request may do, or what it would find, calls `invalidate`: a new
    snapshot of the metadata, a partition that changes its leader or its leader epoch or goes
    offline, another authorizer, a changed setting or feature, a hook that is set.

    Args:
        is_broker: whether a connection is a broker's, where there is no authorizer.

    Attributes:
        has_authorizer: whether it is said who may do what.
        epoch: how often that has happened.
        may_be_remembered: whether a change of what the authorizer decides is among these; if not,
            it is asked for every request.
    """

    def __init__(self, is_broker: IsBroker) -> None:
        self.has_authorizer = False
        self.epoch = 0
        self.may_be_remembered = True
        self._authorize: Authorizations = without_authorizer(is_broker)
        self._authorize_somewhere: AuthorizeSomewhere | None = None

    def invalidate(self) -> None:
        """What was admitted before has to be admitted anew."""
        self.epoch += 1

    def authorize_by(
        self, authorize: Authorizations, authorize_somewhere: AuthorizeSomewhere | None = None
    ) -> None:
        """Have these decide from now on what a request's principal may do."""
        self._authorize = authorize
        self._authorize_somewhere = authorize_somewhere
        self.has_authorizer = True
        self.invalidate()

    def authorize_reported(
        self, request: Request[object], operation: str, resource_type: str, resource_name: str
    ) -> bool:
        """Whether an answer lists an operation as allowed (KIP-430).

        Without an authorizer all are, as in Kafka, though only brokers may do what brokers do.
        """
        return not self.has_authorizer or self._authorize(
            request,
            operation,
            resource_type,
            resource_name,
            log_if_allowed=False,
            log_if_denied=False,
        )

    def is_allowed(
        self, request: Request[object], operation: str, resource_type: str, resource_name: str
    ) -> bool:
        """The same as `authorize` where a denial refuses nothing yet, and is not logged."""
        return self._authorize(
            request, operation, resource_type, resource_name, log_if_denied=False
        )

    def authorize_somewhere(
        self, request: Request[object], operation: str, resource_type: str
    ) -> Steps[bool]:
        """Whether its principal may do something with any resource of a type at all (KIP-679).

        It is work that grows with the ACLs there are.
        """
        decide = self._authorize_somewhere
        return decide is not None and (yield from decide(request, operation, resource_type))

    def authorize(
        self, request: Request[object], operation: str, resource_type: str, resource_name: str
    ) -> bool:
        """Whether a request's principal may do something; see `Authorize`."""
        return self._authorize(request, operation, resource_type, resource_name)

    def may_describe_all(self, request: Request[object], topics: Iterable[str]) -> Steps[bool]:
        """Whether a request's principal may see all of these topics; each refusal is logged."""
        are_seen = True
        for topic in topics:
            are_seen &= self._authorize(request, "DESCRIBE", "TOPIC", topic)
            yield
        return are_seen
