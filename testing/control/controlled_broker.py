"""What every broker of a test offers that has a control channel: `Broker` and `SharedBroker`."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from ..inspection.inspected import Inspected
from ..outages.broker_outages import BrokerOutages

if TYPE_CHECKING:
    from ..faults.broker_faults import BrokerFaults
    from .client import ControlClient


class ControlledBroker(BrokerOutages, Inspected):
    """A broker that can be broken on purpose and looked into, from Python."""

    @abstractmethod
    def control(self) -> ControlClient:
        """The control channel of the running broker.

        Raises:
            ControlError: it has none, or is not running; the sentence says which.
        """

    @property
    def faults(self) -> BrokerFaults:
        """The faults of its connections: `broker.faults.add(...)`, see `odradek.testing.faults`."""
        from ..faults.broker_faults import BrokerFaults

        return BrokerFaults(self.control)
