"""Verbs of the control channel itself."""

from __future__ import annotations

import os
from typing import Any

from .verbs import Controlled


def ping(target: Controlled, **arguments: Any) -> dict[str, Any]:
    """Whether the channel works: the broker's id and process, and what the call gave."""
    return {"broker_id": target.broker.broker_id, "pid": os.getpid(), "given": arguments}
