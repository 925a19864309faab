"""Delegation tokens as Kafka has them (KIP-48): who may log in with one, and how long."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple


class DelegationToken(NamedTuple):
    """What is known of a token but its secret (Kafka's TokenInformation).

    Times are in ms since the epoch; principals as "User:alice".

    Attributes:
        token_id: the name that it logs in by.
        owner: whom it logs in.
        requester: who had it made.
        renewers: who may let it live longer, besides the owner.
        issue_ms: when it was made.
        max_ms: beyond which it cannot be renewed.
        expiry_ms: when it ends.
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_ms: int
    max_ms: int
    expiry_ms: int

    def is_of_any(self, principals: Container[str]) -> bool:
        """Whether its owner or one of its renewers is among some."""
        return self.owner in principals or any(each in principals for each in self.renewers)

    def is_of(self, principal: str) -> bool:
        """Whether somebody is its owner or one of its renewers."""
        return principal == self.owner or principal in self.renewers
