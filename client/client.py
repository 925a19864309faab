"""A client of one cluster: it knows the cluster's metadata and sends requests to its brokers.

The waiting and sending around `Metadata` and `MetadataUpdater`: one task asks them what to do
whenever something happened, and does it. Who needs newer metadata waits for the snapshot's
version to grow (article 002, section 4; there, threads that are notified).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import trio

from ..protocol import messages
from ..protocol.api_keys import ApiKey
from ..runtime.clock import Clock
from .error_kinds import error_name
from .errors import (
    AuthenticationError,
    ClientClosedError,
    ClientError,
    DisconnectedError,
    MetadataTimeoutError,
    NoLeaderError,
    UnknownNodeError,
    UnsupportedByBrokerError,
)
from .metadata.cluster import Cluster, Node, TopicInfo, parse_bootstrap
from .metadata.metadata import LeaderAndEpoch, Metadata, MetadataQuery
from .metadata.metadata_updater import Ask, MetadataUpdater, Rebootstrap, Wait
from .metadata.metadata_updater import Connect as ConnectTo
from .metadata.tracked_topics import TrackedTopics
from .network.attempts import Attempts
from .network.backoff import ExponentialBackoff
from .network.connection import Authenticate
from .network.network import NetworkClient
from .network.opening import Connect
from .network.trio_clock import TrioClock, trio_deadline
from .settings import ClientSettings, check_settings

if TYPE_CHECKING:
    from ..protocol.codec.message import Message

AUTO_CREATION_FROM = 4
RELIABLE_EPOCHS_FROM = 9
"""Versions of Metadata: before, a broker may answer with epochs older than its leaders."""

OWN_IDS_BELOW = -(1 << 20)
"""Neither brokers nor the addresses of a bootstrap list have ids like these."""


class KafkaClient:
    """Use it as `async with KafkaClient("127.0.0.1:9092") as client`.

    Args:
        bootstrap: addresses to begin with, "host:port,host:port" or one each.
        settings: Kafka's, in Python's spelling.
        all_topics: keep the metadata of every topic; by default of the requested ones.
        connect: opens streams; `trio.open_tcp_stream` if left out.
        ssl_context: speak TLS, with this.
        authenticate: is run on each new connection, such as `sasl_plain(...)`.
        clock: the time; it must pass as trio's does. Trio's own if left out.
        random: jitter of backoffs, and which of several nodes a request goes to.

    Raises:
        ValueError: an address or a setting is none.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        settings: ClientSettings | None = None,
        *,
        all_topics: bool = False,
        connect: Connect | None = None,
        ssl_context: SSLContext | None = None,
        authenticate: Authenticate | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        self.settings = settings = check_settings(settings or ClientSettings())
        self.clock = clock or TrioClock()
        self.random = random or Random()
        self.metadata = Metadata(
            ExponentialBackoff(
                settings.retry_backoff_ms, settings.retry_backoff_max_ms, self.random
            ),
            settings.metadata_max_age_ms,
            TrackedTopics(settings.metadata_max_idle_ms, all_topics=all_topics),
        )
        self.metadata.bootstrap(parse_bootstrap(bootstrap))
        self.network = NetworkClient(
            settings,
            connect=connect,
            ssl_context=ssl_context,
            authenticate=authenticate,
            clock=self.clock,
            random=self.random,
            listener=_StaleSigns(self),
        )
        self.updater = MetadataUpdater(
            self.metadata,
            self.network.states,
            self.network.in_flight_count,
            settings,
            self.random,
        )
        self.connection_listeners: list[Callable[[], None]] = []
        """Each is called when a connection opened, failed or ended."""
        self._is_open = False
        self._last_own_id = OWN_IDS_BELOW
        self._something_happened = trio.Event()
        self._metadata_changed = trio.Event()

    async def __aenter__(self) -> Self:
        await self.network.__aenter__()
        assert self.network.nursery is not None
        self._is_open = True
        self.network.nursery.start_soon(self._keep_metadata, self.network.nursery)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._is_open = False
        self.wake()
        return await self.network.__aexit__(kind, error, traceback)

    # --- Metadata ----------------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:
        """The latest snapshot; keep it while one moment should be seen."""
        return self.metadata.cluster

    def request_update(self) -> int:
        """Ask for new metadata soon; returns the version so far, to wait for a newer one."""
        version = self.metadata.request_update()
        self.wake()
        return version

    def add_topic(self, topic: str) -> None:
        """Keep this topic's metadata from now on."""
        if self.metadata.add_topic(topic, self.clock.monotonic_ms()):
            self.wake()

    def leader_unknown(self, topic: str) -> int:
        """Somebody needs a leader, and the metadata has none: it must be fetched. Returns the
        version so far."""
        self.updater.leader_unknown(topic, self.clock.monotonic_ms())
        self.wake()
        return self.metadata.update_version

    def partition_error(
        self,
        topic: str,
        partition: int,
        code: int,
        leader: LeaderAndEpoch | None = None,
        endpoints: Sequence[Node] = (),
    ) -> None:
        """An answer had an error for a partition, which may mean that the metadata is stale.

        Args:
            topic: of the partition.
            partition: its index.
            code: the error.
            leader: who leads it now, if the answer says (KIP-951).
            endpoints: the nodes that the answer named.
        """
        if self.updater.partition_error(code):
            if leader is not None:
                self.metadata.update_leaders({(topic, partition): leader}, endpoints)
            self.wake()

    async def wait_for_metadata(self, newer_than: int, timeout_ms: int | None = None) -> Cluster:
        """Wait until the metadata is newer than a version; returns it.

        Args:
            newer_than: a version that `request_update` returned, or a snapshot has.
            timeout_ms: `max.block.ms` if left out.

        Raises:
            MetadataTimeoutError: it did not come in time.
            AuthenticationError: the brokers refuse this client.
            UnsupportedByBrokerError: they do not serve Metadata at any version we have.
            ClientClosedError: the client is closed.
        """
        if timeout_ms is None:
            timeout_ms = self.settings.max_block_ms
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        with trio.move_on_at(trio_deadline(self.clock, deadline_ms)):
            while True:
                self._require_open()
                self.metadata.raise_fatal_error()
                if self.metadata.update_version > newer_than:
                    return self.cluster
                await self._metadata_changed.wait()
        raise MetadataTimeoutError(f"no newer metadata came within {timeout_ms} ms")

    async def refresh_metadata(self, timeout_ms: int | None = None) -> Cluster:
        """Ask for new metadata, and wait for it.

        Raises:
            MetadataTimeoutError: it did not come in time.
            ClientError: as `wait_for_metadata`.
        """
        return await self.wait_for_metadata(self.request_update(), timeout_ms)

    async def wait_for_topic(
        self, topic: str, partition: int | None = None, timeout_ms: int | None = None
    ) -> TopicInfo:
        """A topic with its partitions, once the metadata has it.

        Args:
            topic: its name.
            partition: wait until it has this one, too.
            timeout_ms: `max.block.ms` if left out.

        Raises:
            MetadataTimeoutError: the topic, or the partition, does not seem to exist.
            KafkaError: TOPIC_AUTHORIZATION_FAILED or INVALID_TOPIC_EXCEPTION.
            ClientError: as `wait_for_metadata`.
        """
        if timeout_ms is None:
            timeout_ms = self.settings.max_block_ms
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        while True:
            self.add_topic(topic)
            info = self.cluster.topic(topic)
            partitions = () if info is None else info.partitions
            if info is not None and partitions and (partition is None or partition in partitions):
                return info
            version = self.metadata.request_update_for_topic(topic)
            self.wake()
            try:
                remaining_ms = max(deadline_ms - self.clock.monotonic_ms(), 0)
                await self.wait_for_metadata(version, remaining_ms)
            except MetadataTimeoutError:
                what = f"partition {partition} of " if partitions else ""
                why = f": {error_name(info.error_code)}" if info and info.error_code else ""
                raise MetadataTimeoutError(
                    f"{what}topic {topic!r} is not in the metadata after {timeout_ms} ms{why}"
                ) from None
            self.metadata.raise_topic_error(topic)

    async def wait_for_leader(self, topic: str, partition: int, timeout_ms: int) -> Node:
        """The node of a partition's leader, once there is one.

        Raises:
            NoLeaderError: there was none in time.
            MetadataTimeoutError: nor any metadata.
            ClientError: as `wait_for_metadata`.
        """
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        while (leader := self.metadata.current_leader(topic, partition)) is None:
            version = self.leader_unknown(topic)
            try:
                remaining_ms = max(deadline_ms - self.clock.monotonic_ms(), 0)
                await self.wait_for_metadata(version, remaining_ms)
            except MetadataTimeoutError:
                # Without metadata nothing is known of the partition: nobody answered.
                kind = MetadataTimeoutError if self.cluster.is_bootstrap else NoLeaderError
                raise kind(
                    f"partition {partition} of topic {topic!r} had no leader for {timeout_ms} ms"
                ) from None
        return leader

    # --- Requests ----------------------------------------------------------------------------

    async def send(self, node_id: int, request: Message, **options: Any) -> Any:
        """Send a request to a node of the cluster and wait for its answer.

        Args:
            node_id: of the node.
            request: a request of `protocol.messages`.
            options: `version`, `version_max`, `timeout_ms` and `expect_answer` as in
                `NetworkClient.send`.

        Raises:
            UnknownNodeError: the metadata has no such node; it is being refreshed.
            ClientError: as `NetworkClient.send`.
        """
        node = self.cluster.nodes.get(node_id)
        if node is None:
            self.request_update()
            raise UnknownNodeError(f"the metadata has no node {node_id}")
        return await self.network.send(node, request, **options)

    async def send_to_any(self, request: Message, **options: Any) -> Any:
        """Send a request that any broker can answer to the one with the least to do.

        Raises:
            ClientError: as `wait_for_metadata` while no node is known, or `NetworkClient.send`.
        """
        self._require_open()
        if self.cluster.is_bootstrap:
            await self.wait_for_metadata(self.metadata.update_version)
        attempts = self.attempts(self.settings.max_block_ms)
        while True:
            node = self.updater.least_loaded(self.clock.monotonic_ms()).node
            if node is not None:
                return await self.network.send(node, request, **options)
            await attempts.pause(MetadataTimeoutError("no broker can be connected to"))

    async def live_brokers(self) -> list[Node]:
        """The brokers that are alive, as one of them has it now, by id. It is asked of no topic,
        so it costs the same however many the cluster has, and this client's metadata stay.

        Raises:
            ClientError: as `send_to_any`.
        """
        request = messages.MetadataRequest(topics=[], allow_auto_topic_creation=False)
        attempts = self.attempts(self.settings.max_block_ms)
        while True:
            try:
                answer: messages.MetadataResponse = await self.send_to_any(request)
            except DisconnectedError as error:
                await attempts.pause(error)
            else:
                return sorted(
                    Node(each.node_id, each.host, each.port, each.rack) for each in answer.brokers
                )

    async def send_to_controller(self, request: Message, **options: Any) -> Any:
        """Send a request to the cluster's controller, as soon as one is known.

        Raises:
            ClientError: as `wait_for_metadata`, or `NetworkClient.send`.
        """
        attempts = self.attempts(self.settings.max_block_ms)
        while (controller := self.cluster.controller) is None:
            version = self.metadata.request_update(is_retry=True)
            self.wake()
            await self.wait_for_metadata(version, attempts.remaining_ms)
        return await self.network.send(controller, request, **options)

    def own_connection_id(self) -> int:
        """An id for a node that nobody else uses, and so for a connection that nothing of anybody
        else's waits behind: `network.send(node._replace(id=...), request)`."""
        self._last_own_id -= 1
        return self._last_own_id

    def attempts(self, timeout_ms: int) -> Attempts:
        """Pauses for trying something again, for so long altogether."""
        return Attempts(self.settings, self.clock, self.random, timeout_ms)

    # --- Inside ------------------------------------------------------------------------------

    def wake(self) -> None:
        """Something happened that the metadata task, and those who wait, should look at."""
        self._something_happened.set()
        self._metadata_changed.set()
        self._metadata_changed = trio.Event()

    def _require_open(self) -> None:
        if not self._is_open:
            raise ClientClosedError("the client is not open: use it as `async with`")

    async def _keep_metadata(self, nursery: trio.Nursery) -> None:
        """Do what the updater says, again whenever something happened."""
        while self._is_open:
            self._something_happened = trio.Event()
            step = self.updater.next_step(self.clock.monotonic_ms())
            if isinstance(step, Ask):
                nursery.start_soon(self._ask, step)
            elif isinstance(step, ConnectTo):
                self.network.connect_soon(step.node)
            elif isinstance(step, Rebootstrap):
                for node in step.nodes:
                    self.network.disconnect(node.id)
            else:
                await self._wait(step)

    async def _wait(self, step: Wait) -> None:
        at_ms = None
        if step.milliseconds is not None:
            at_ms = self.clock.monotonic_ms() + step.milliseconds
        with trio.move_on_at(trio_deadline(self.clock, at_ms)):
            await self._something_happened.wait()

    async def _ask(self, step: Ask) -> None:
        """Send a metadata request, and hand on what comes of it."""
        try:
            version = await self.network.usable_version(step.node, ApiKey.METADATA)
            request = self._request(step.query, version)
            response = await self.network.send(step.node, request, version=version)
        except (AuthenticationError, UnsupportedByBrokerError) as error:
            self.updater.failed(self.clock.monotonic_ms(), error)
        except ClientError:
            self.updater.failed(self.clock.monotonic_ms())
        else:
            self.updater.answered(
                response,
                self.clock.monotonic_ms(),
                has_reliable_epochs=version >= RELIABLE_EPOCHS_FROM,
            )
        self.wake()

    def _request(self, query: MetadataQuery, version: int) -> messages.MetadataRequest:
        topics = None
        if query.topics is not None:
            make = messages.MetadataRequest.MetadataRequestTopic
            topics = [make(name=name) for name in query.topics]
        elif version == 0:
            topics = []  # Then this means all topics, and null cannot be sent.
        may_create = self.settings.allow_auto_create_topics or version < AUTO_CREATION_FROM
        return messages.MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)


class _StaleSigns:
    """Tells a client's updater what its network sees."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client

    def connection_ready(self, node: Node) -> None:
        self._notify()

    def connection_failed(self, node: Node, failure: ClientError) -> None:
        self._client.updater.connection_failed(self._client.clock.monotonic_ms(), failure)
        self._notify()

    def connection_lost(self, node: Node, failure: ClientError) -> None:
        self._client.updater.connection_lost(self._client.clock.monotonic_ms(), failure)
        self._notify()

    def request_timed_out(self, node: Node, failure: ClientError) -> None:
        self._client.updater.request_timed_out(self._client.clock.monotonic_ms(), failure)
        self._notify()

    def _notify(self) -> None:
        self._client.wake()
        for listener in list(self._client.connection_listeners):
            listener()
