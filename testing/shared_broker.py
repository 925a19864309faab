"""`SharedBroker`: what the fixture `kafka` is, a broker that other tests use, too."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .client_settings import TlsFiles, client_settings
from .control.controlled_broker import ControlledBroker

if TYPE_CHECKING:
    from .control.client import ControlClient
    from .faults.broker_faults import BrokerFaults
    from .inspection.requests import Requests
    from .running_broker import Broker


class SharedBrokerError(Exception):
    """A test asked of a shared broker what other tests would have met."""


def _refused(what: str) -> Any:
    """A method for what would meet other tests."""

    def refuse(self: SharedBroker, *_: Any, **__: Any) -> NoReturn:
        raise SharedBrokerError(
            f"other tests use the broker at {self.bootstrap_servers}, too, and would meet it if "
            f"this one {what}: use the fixture kafka_broker, which is a broker for this test alone"
        )

    return refuse


class SharedBroker(ControlledBroker):
    """A broker that is not this test's alone, so what would meet other tests is refused.

    Args:
        bootstrap_servers: the address to give to clients.
        pid: its process; 0 if it is a Kafka that ran before the tests.
        log_path: its log; None if that is not known.
        folder: all that it keeps; None if it is not this run's.
        tls: the certificates, of clients too; None if it is plain.
        control_address: of its control channel; empty: it has none.
        control_token: opens that.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        pid: int = 0,
        log_path: str | None = None,
        folder: str | None = None,
        tls: TlsFiles | None = None,
        control_address: str = "",
        control_token: str = "",
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.pid = pid
        self.log_path = log_path
        self.folder = folder
        self.tls = tls
        self.control_address = control_address
        self._control_token = control_token
        self._control: ControlClient | None = None
        self._test = ""
        self._began = 0
        self._has_faults = False

    def for_test(self, test: str) -> SharedBroker:
        """The same broker as one test has it: faults it adds are its own.

        Args:
            test: the name of the test, unique in the run.
        """
        if self.control_address:
            self.control()  # one channel for all tests: each of their own would stay open
        mine = copy(self)
        mine._test = test
        if self.control_address:
            mine.requests.clear()
        return mine

    @property
    def log(self) -> str:
        """What the broker has logged so far."""
        if self.log_path is None:
            return ""
        return Path(self.log_path).read_text(errors="replace")

    @property
    def ssl_ca(self) -> str:
        """The PEM file of the certificate that clients are to trust.

        Raises:
            ValueError: it does not speak TLS.
        """
        if self.tls is None:
            raise ValueError("this broker does not speak TLS: mark the test kafka(tls=True)")
        return self.tls.ca

    def client_settings(
        self, client: str = "kafka-python", *, certificate: bool = True
    ) -> dict[str, Any]:
        """All that a client must be told to reach it; see `client_settings.client_settings`.

        Args:
            client: "kafka-python", "aiokafka", "confluent-kafka" or "java".
            certificate: whether the client shows one, if TLS is spoken.
        """
        return client_settings(self.bootstrap_servers, self.tls, client, certificate=certificate)

    def control(self) -> ControlClient:
        """The control channel of the broker.

        Raises:
            ControlError: it is a Kafka that ran before the tests.
        """
        from .control.client import ControlClient, ControlError

        if not self.control_address:
            raise ControlError(
                f"{self.bootstrap_servers} is a Kafka that ran before the tests: clients may use "
                "it, but it cannot be broken or looked into"
            )
        if self._control is None:
            self._control = ControlClient(self.control_address, self._control_token)
        return self._control

    @property
    def faults(self) -> BrokerFaults:
        """The faults that this test has on it; see `odradek.testing.faults`."""
        from .faults.broker_faults import BrokerFaults

        self._has_faults = True
        return BrokerFaults(self.control, self._test, must_be_narrow=True)

    @property
    def requests(self) -> Requests:
        """The requests it was sent since the test began; those of tests beside it are among them.

        What came before may be forgotten already, of a run that has many tests. `clear()` has the
        test begin anew, and takes nothing from others.
        """
        from .inspection.requests import Requests

        def begin_anew(latest: int) -> None:
            self._began = latest

        return Requests(self.control, begin_anew, since=self._began)

    def lift_faults(self) -> None:
        """Lift what faults this test has added and not lifted."""
        if self._has_faults and self.control_address:
            self.faults.lift_all()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: dict[str, str] | None = None,
    ) -> None:
        """Create a topic; returns when all of its partitions are led.

        Args:
            name: no topic has it.
            partitions: how many.
            replication_factor: None: as the broker's settings say.
            config: the topic's own settings, by Kafka's names.
        """
        if self.control_address:
            super().create_topic(name, partitions, replication_factor, config)
            return
        from kafka.admin import KafkaAdminClient, NewTopic

        admin = KafkaAdminClient(**self.client_settings())
        try:
            replicas = -1 if replication_factor is None else replication_factor
            admin.create_topics([NewTopic(name, partitions, replicas, topic_configs=config)])
        finally:
            admin.close()

    reset = _refused("emptied it")
    snapshot = _refused("took a snapshot to restore")
    restore = _refused("restored a snapshot")
    advance_time = _refused("moved its clock")
    set_clock_wrong = _refused("set its clock wrong")
    fill_disk = _refused("filled its disk")
    free_disk = _refused("freed its disk")
    full_disk = _refused("filled its disk")
    fail_log_dir = _refused("broke its log directory")
    expire_metadata_session = _refused("ended its session")
    freeze = _refused("froze it")
    frozen = _refused("froze it")
    kill = _refused("killed it")
    stop = _refused("stopped it")
    restart = _refused("restarted it")

    def facts(self) -> dict[str, Any]:
        """The arguments with which another process makes the same object."""
        return {
            "bootstrap_servers": self.bootstrap_servers,
            "pid": self.pid,
            "log_path": self.log_path,
            "folder": self.folder,
            "tls": self.tls,
            "control_address": self.control_address,
            "control_token": self._control_token,
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> SharedBroker:
        """The broker that `facts` was called on; a list may stand for a tuple, as in JSON."""
        tls = facts["tls"]
        return cls(**{**facts, "tls": None if tls is None else TlsFiles(*tls)})

    def __repr__(self) -> str:
        return f"<the run's broker at {self.bootstrap_servers}>"


def shared_broker_of(broker: Broker) -> SharedBroker:
    """What others of the run need to know of a broker that one of them has started.

    Args:
        broker: it runs.
    """
    return SharedBroker(
        broker.bootstrap_servers,
        broker.pid,
        str(broker.log_path),
        str(broker.folder),
        broker.tls,
        broker.control_address,
        broker.control_token,
    )
