"""Who reads what in a consumer group: functions of members and topics, nothing else (KIP-848).

`assignor.py` has the types, `range.py` and `uniform.py` are Kafka's two assignors.
"""

from __future__ import annotations

from .assignor import Assignor
from .range import RangeAssignor
from .uniform import UniformAssignor

_ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())
}


def find_assignor(name: str) -> Assignor | None:
    """The assignor of a name (`group.consumer.assignors`, `group.remote.assignor`)."""
    return _ASSIGNORS.get(name)
