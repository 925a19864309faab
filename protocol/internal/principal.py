"""Who sent a request, as Envelope carries it to the controller (KIP-590)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import bool_, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    type: str = string()
    name: str = string()
    token_authenticated: bool = bool_()
