"""Faults of a broker's connections, from Python: what tests of clients break.

    from odradek.testing import Broker, faults

    with Broker() as broker:
        with broker.faults.during(faults.lose_answer("Produce", topic="orders").once()) as fault:
            producer.send("orders", b"...")
            fault.wait_until_struck()

Each function makes a small object that prints as a sentence; the broker's log has that sentence
when the fault is added, when it strikes and when it is lifted. `kinds` tells of them all.
"""

from .broker_faults import AddedFault, BrokerFaults
from .fault import Fault
from .kinds import (
    answer,
    corrupt_answer,
    corrupt_records,
    delay,
    delay_answer,
    disconnect,
    drop,
    drop_answer,
    expire_session,
    half_open,
    lose_answer,
    refuse_connections,
    refuse_login,
    throttle,
    truncate_answer,
)

__all__ = [
    "AddedFault",
    "BrokerFaults",
    "Fault",
    "answer",
    "corrupt_answer",
    "corrupt_records",
    "delay",
    "delay_answer",
    "disconnect",
    "drop",
    "drop_answer",
    "expire_session",
    "half_open",
    "lose_answer",
    "refuse_connections",
    "refuse_login",
    "throttle",
    "truncate_answer",
]
