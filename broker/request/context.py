"""What handlers may use of the broker, by name: all of it is made before the first request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...config.dynamic.dynamic_config import DynamicConfig
    from ...config.group_configs import GroupConfigs
    from ...controller.controller import Controller
    from ...metadata.features import Features
    from ...metadata.metadata_cache import MetadataCache
    from ...metadata_store.store import MetadataStore
    from ...replication.replica_manager import ReplicaManager
    from ...runtime.clock import Clock
    from ...storage.log_manager.log_manager import LogManager
    from ..coordinators import BrokerCoordinators
    from ..dynamic_config.config_manager import ConfigManager
    from ..handlers.registry import Registration
    from ..interbroker.broker_links import BrokerLinks
    from ..interbroker.feature_follower import FeatureFollower
    from .admission import Admission
    from .authorization import Authorize
    from .fetch_sessions import FetchSessionCache


@dataclass(frozen=True, slots=True, eq=False)
class HandlerContext:
    """One broker, as its handlers see it.

    Attributes:
        config: the settings, which change while the broker runs.
        client_metrics: the subscriptions to clients' metrics, by name.
        coordinators: of groups and transactions, each made when it is first needed.
        registrations: the APIs that are served.
        admission: says until when what a request was allowed, and found, still holds.
        start_task: runs an async function beside the requests; what it staged and answered is
            flushed and sent when it ends.
    """

    broker_id: int
    cluster_id: str
    config: DynamicConfig
    group_configs: GroupConfigs
    client_metrics: MutableMapping[str, Mapping[str, str]]
    config_manager: ConfigManager
    clock: Clock
    metadata_cache: MetadataCache
    metadata_store: MetadataStore
    features: Features
    feature_follower: FeatureFollower
    log_manager: LogManager
    replica_manager: ReplicaManager
    fetch_sessions: FetchSessionCache
    controller: Controller
    coordinators: BrokerCoordinators
    links: BrokerLinks
    registrations: Mapping[int, Registration]
    admission: Admission
    start_task: Callable[..., None]

    @property
    def authorize(self) -> Authorize:
        """Whether a request's principal may do something."""
        return self.admission.authorize
