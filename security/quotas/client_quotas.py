"""The quotas of one kind, such as producer_byte_rate, and which of them applies to a client.

After Kafka's DefaultQuotaCallback in ClientQuotaManager: the most specific entity that has a
quota decides, and also who shares it: a quota of a user is one for all of its clients together, a
quota of a client id one for all users with that client id, and all others are for a user's
client alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .entity import CLIENT_ID, USER, ClientQuotaEntity

_NO_ENTRY: Final = "\0"
"""Stands for an entity without a user, or without a client id; no name has this character."""

_Key = tuple[str | None, str | None]


class Sharing(NamedTuple):
    """Those whose traffic is counted together (Kafka's metric tags).

    Attributes:
        user: empty: of all users.
        client_id: empty: all clients of the user.
    """

    user: str
    client_id: str


class ClientQuotas:
    """Quotas of one kind by entity."""

    def __init__(self) -> None:
        self._bounds: dict[_Key, float] = {}

    def __len__(self) -> int:
        return len(self._bounds)

    def set(self, entity: ClientQuotaEntity, bound: float | None) -> None:
        """Set an entity's quota; None: it has none any more."""
        names = entity.names
        key = (names.get(USER, _NO_ENTRY), names.get(CLIENT_ID, _NO_ENTRY))
        if bound is None:
            self._bounds.pop(key, None)
        else:
            self._bounds[key] = bound

    def find(self, user: str, client_id: str) -> tuple[Sharing, float] | None:
        """Who shares a client's quota, and how much that is; None: nothing bounds it.

        Args:
            user: its principal's name.
            client_id: as its requests have it; may be empty.
        """
        sharing = self._sharing(user, client_id)
        bound = None if sharing is None else self.bound_of(sharing)
        return None if sharing is None or bound is None else (sharing, bound)

    def _sharing(self, user: str, client_id: str) -> Sharing | None:
        bounds = self._bounds
        for of_user in (user, None):
            if (of_user, client_id) in bounds or (of_user, None) in bounds:
                return Sharing(user, client_id)
            if (of_user, _NO_ENTRY) in bounds:
                return Sharing(user, "")
        if (_NO_ENTRY, client_id) in bounds or (_NO_ENTRY, None) in bounds:
            return Sharing("", client_id)
        return None

    def bound_of(self, sharing: Sharing) -> float | None:
        """The bound that those have; a client without an id is as its user in this, as in Kafka."""
        user, client_id = sharing
        keys: list[_Key]
        if user and client_id:
            keys = [(user, client_id), (user, None), (None, client_id), (None, None)]
        elif user:
            keys = [(user, _NO_ENTRY), (None, _NO_ENTRY)]
        else:
            keys = [(_NO_ENTRY, client_id), (_NO_ENTRY, None)] if client_id else []
        return next((self._bounds[key] for key in keys if key in self._bounds), None)
