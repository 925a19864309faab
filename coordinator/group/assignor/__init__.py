"""Who reads what in a consumer group: functions of members and topics, nothing else (KIP-848).

`assignor.py` has the types, `range.py` and `uniform.py` are Kafka's two assignors.
"""

from __future__ import annotations

from collections.abc import Iterable

from .assignor import Assignor
from .range import RangeAssignor
from .uniform import UniformAssignor

_ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())
}


def find_assignors(names: Iterable[str]) -> dict[str, Assignor]:
    """The assignors of these names (`group.consumer.assignors`), in their order.

    Raises:
        ValueError: one is not known.
    """
    found: dict[str, Assignor] = {}
    for name in names:
        if name not in _ASSIGNORS:
            raise ValueError(
                f"invalid group.consumer.assignors: {name!r} is not one of {', '.join(_ASSIGNORS)}"
            )
        found[name] = _ASSIGNORS[name]
    return found
