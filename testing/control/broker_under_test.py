"""What every broker of a test offers that has a control channel: `Broker` and `SharedBroker`."""

from __future__ import annotations

from ..client_settings import HasClientSettings
from ..faults.broker_faults import BrokerFaults
from ..inspection.broker_inspection import BrokerInspection
from ..outages.broker_outages import BrokerOutages


class BrokerUnderTest(BrokerOutages, BrokerInspection, HasClientSettings):
    """A broker that can be broken on purpose and looked into, from Python."""

    @property
    def faults(self) -> BrokerFaults:
        """The faults of its connections: `broker.faults.add(...)`, see `odradek.testing.faults`."""
        return BrokerFaults(self.control)
