"""What handlers may use of the broker, by name: all of it is made before the first request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    from ..dynamic_config.acl_manager import AclManager
    from ..dynamic_config.config_manager import ConfigManager
    from ..dynamic_config.token_manager import TokenManager
    from ..handlers.registry import Registration
    from ..interbroker.broker_links import BrokerLinks
    from ..interbroker.feature_follower import FeatureFollower
    from ..interbroker.registered_brokers import RegisteredBrokers
    from ..store_comparison import StoreReferences
    from ..telemetry.client_metrics import ClientMetrics
    from .admission import Admission
    from .authorization import Authorize
    from .fetch_sessions import FetchSessionCache
    from .quotas.quota_table import QuotaTable


@dataclass(frozen=True, slots=True, eq=False)
class HandlerContext:
    """One broker, as its handlers see it.

    Attributes:
        config: the settings, which change while the broker runs.
        client_metrics: what clients are to push of their metrics, and have pushed.
        coordinators: of groups and transactions, each made when it is first needed.
        registrations: the APIs that are served.
        admission: says until when what a request was allowed, and found, still holds.
        acls: of the cluster; None: there is no authorizer.
        quotas: of clients.
        tokens: delegation tokens; None: there is no secret key for them.
        start_task: runs an async function beside the requests; what it staged and answered is
            flushed and sent when it ends.
        topics_in_creation: those that are being made because a client requested them.
    """

    broker_id: int
    cluster_id: str
    config: DynamicConfig
    group_configs: GroupConfigs
    client_metrics: ClientMetrics
    config_manager: ConfigManager
    clock: Clock
    metadata_cache: MetadataCache
    metadata_store: MetadataStore
    store_references: StoreReferences
    features: Features
    feature_follower: FeatureFollower
    log_manager: LogManager
    replica_manager: ReplicaManager
    fetch_sessions: FetchSessionCache
    controller: Controller
    coordinators: BrokerCoordinators
    links: BrokerLinks
    registered_brokers: RegisteredBrokers
    registrations: Mapping[int, Registration]
    admission: Admission
    acls: AclManager | None
    tokens: TokenManager | None
    quotas: QuotaTable
    start_task: Callable[..., None]
    topics_in_creation: set[str] = field(default_factory=set)

    @property
    def authorize(self) -> Authorize:
        """Whether a request's principal may do something."""
        return self.admission.authorize
