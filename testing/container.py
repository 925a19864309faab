"""`KafkaContainer`: for tests that had one of testcontainers, and no container.

    from odradek.testing import KafkaContainer  # was: from testcontainers.kafka import ...

    with KafkaContainer() as kafka:
        producer = KafkaProducer(bootstrap_servers=kafka.get_bootstrap_server())

It has the methods of testcontainers' class that tests of Kafka use; behind it is a `Broker`, which
needs no Docker and is there in a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Mapping

from .running_broker import Broker

HOST = "127.0.0.1"
DEFAULT_PORT = 9093

OF_A_CONTAINER = (
    "KAFKA_ADVERTISED_LISTENERS",
    "KAFKA_BROKER_ID",
    "KAFKA_CONTROLLER_LISTENER_NAMES",
    "KAFKA_CONTROLLER_QUORUM_",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_HEAP_OPTS",
    "KAFKA_INTER_BROKER_LISTENER_NAME",
    "KAFKA_JMX_",
    "KAFKA_JVM_",
    "KAFKA_LISTENER",
    "KAFKA_LOG4J_",
    "KAFKA_NODE_ID",
    "KAFKA_OPTS",
    "KAFKA_PROCESS_ROLES",
    "KAFKA_TOOLS_LOG4J_",
    "KAFKA_ZOOKEEPER_CONNECT",
)
"""Beginnings of variables that say how Kafka runs in a container: its addresses inside, its JVM,
its controller. There is nothing here that they could set."""


class KafkaContainer:
    """A broker with the methods of testcontainers' `KafkaContainer`; a context manager.

    Args:
        image: of testcontainers; nothing is pulled, so any name will do.
        port: the port that the broker would have inside the container: what `get_exposed_port` and
            `with_bind_ports` look up.
        env: see `with_env`.
        name: see `with_name`.
    """

    def __init__(
        self,
        image: str = "odradek",
        port: int = DEFAULT_PORT,
        *,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        self.image = image
        self.port = port
        self.env: dict[str, str] = {}
        self._name = name
        self._host_port = 0
        self._broker: Broker | None = None
        for key, value in (env or {}).items():
            self.with_env(key, value)

    def with_env(self, key: str, value: object) -> KafkaContainer:
        """Set an environment variable of the container, which here is a setting of the broker.

        `KAFKA_MESSAGE_MAX_BYTES` is `message.max.bytes`, as the images have it: `_` is a dot, `__`
        an underscore and `___` a hyphen. What says how Kafka runs in a container has no effect.

        Args:
            key: its name.
            value: its value.
        """
        self.env[key] = str(value)
        return self

    def with_envs(self, **variables: object) -> KafkaContainer:
        """Set several environment variables; see `with_env`."""
        for key, value in variables.items():
            self.with_env(key, value)
        return self

    def with_kraft(self) -> KafkaContainer:
        """Nothing changes: the broker needs neither ZooKeeper nor a controller beside it."""
        return self

    def with_exposed_ports(self, *ports: int | str) -> KafkaContainer:
        """Nothing changes: the broker's port is on this machine already."""
        return self

    def with_bind_ports(
        self, container: int | str, host: int | str | None = None
    ) -> KafkaContainer:
        """Have the broker listen on a port of one's choice, not on any free one.

        Args:
            container: the port inside; `port` is the only one.
            host: the port on this machine; None: any free one.

        Raises:
            ValueError: there is no such port.
        """
        self._check_port(container)
        self._host_port = int(host or 0)
        return self

    def with_name(self, name: str) -> KafkaContainer:
        """Nothing changes but the name that `repr` shows."""
        self._name = name
        return self

    def start(self, timeout: float = 30) -> KafkaContainer:
        """Start the broker; it is ready when this returns.

        Args:
            timeout: of testcontainers; the broker has its own limit.

        Raises:
            BrokerStartError: it did not become ready; the text holds its log.
        """
        if self._broker is None:
            self._broker = Broker(settings_of(self.env), listen=f"{HOST}:{self._host_port}")
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """End the broker, and remove all it kept; it may be called again.

        Args:
            force: of testcontainers.
            delete_volume: of testcontainers.
        """
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.close()

    @property
    def broker(self) -> Broker:
        """The broker itself, with all that can be done to one in a test.

        Raises:
            RuntimeError: it is not started.
        """
        if self._broker is None:
            raise RuntimeError("the container is not started: use it in `with`, or call start()")
        return self._broker

    def get_bootstrap_server(self) -> str:
        """The address to give to clients."""
        return self.broker.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """The address of this machine at which the broker is."""
        return HOST

    def get_exposed_port(self, port: int | str) -> int:
        """The port of this machine at which the broker is.

        Args:
            port: the one inside; `port` is the only one.

        Raises:
            ValueError: there is no such port.
        """
        self._check_port(port)
        return self.broker.port

    def get_logs(self) -> tuple[bytes, bytes]:
        """What the broker has printed and what it has logged."""
        return self.broker.ready_line.encode(), self.broker.log.encode()

    def _check_port(self, port: int | str) -> None:
        if int(port) != self.port:
            raise ValueError(f"the broker's port is {self.port}, not {port}")

    def __enter__(self) -> KafkaContainer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        where = "not started" if self._broker is None else f"at {self.get_bootstrap_server()}"
        return f"<KafkaContainer {self._name or self.image} {where}>"


def settings_of(env: Mapping[str, str]) -> dict[str, str]:
    """The broker's settings that the variables of a container name.

    Args:
        env: variables and their values. Those that do not begin with `KAFKA_` are not the broker's.
    """
    return {
        setting_of(key): value
        for key, value in env.items()
        if key.startswith("KAFKA_") and not key.startswith(OF_A_CONTAINER)
    }


def setting_of(variable: str) -> str:
    """The setting that a variable stands for, by the rule of Kafka's images.

    Args:
        variable: such as `KAFKA_LOG_DIRS`.
    """
    name = variable.removeprefix("KAFKA_").lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
