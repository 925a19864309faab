"""What every broker of a test offers that has a control channel: `Broker` and `SharedBroker`."""

from __future__ import annotations

from ..faults.broker_faults import BrokerFaults
from ..inspection.broker_inspection import BrokerInspection
from ..outages.broker_outages import BrokerOutages
from ..security.access import HasAccess
from .client import ControlClient


class BrokerUnderTest(BrokerOutages, BrokerInspection, HasAccess):
    """A broker that can be broken on purpose and looked into, from Python."""

    def controls(self) -> list[ControlClient]:
        """Its control channel."""
        return [self.control()]

    @property
    def faults(self) -> BrokerFaults:
        """The faults of its connections: `broker.faults.add(...)`, see `odradek.testing.faults`."""
        return BrokerFaults(self.control)
