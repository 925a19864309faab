"""Options with `kafka.` in front: settings of Kafka's Java clients, for librdkafka.

Users of Spark's own source write Java's names, so those are what is understood. Most are the
same in librdkafka; some have another name there, some say nothing to it and are left out, some
cannot be honoured and are refused. A name that librdkafka has and Java has not is passed on; one
that neither has is left out with a warning, as Java's clients do.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from difflib import get_close_matches

from ..errors import SparkConnectorError
from ..option_values import Options

PREFIX = "kafka."
BOOTSTRAP = "bootstrap.servers"

Settings = dict[str, str]

RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "delivery.timeout.ms": "message.timeout.ms",
    "max.request.size": "message.max.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "sasl.mechanism": "sasl.mechanisms",
}
"""Java's name, and librdkafka's for the same thing."""

WITHOUT_EFFECT = frozenset(
    {
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "exclude.internal.topics",
        "group.protocol",
        "heartbeat.interval.ms",
        "max.block.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.ignore.keys",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "ssl.truststore.password",
        "security.providers",
        "session.timeout.ms",
    }
)
"""What only paces or measures a Java client, or what a client with assigned partitions has not."""

NEVER = {
    "auto.offset.reset": "use 'startingOffsets' to say where to begin",
    "key.deserializer": "keys come as bytes, so decode the column",
    "value.deserializer": "values come as bytes, so decode the column",
    "key.serializer": "keys are written as the bytes they are, so encode the column",
    "value.serializer": "values are written as the bytes they are, so encode the column",
    "enable.auto.commit": "Spark keeps the offsets in the query's checkpoint",
    "interceptor.classes": "an interceptor is a Java class",
    "partitioner.class": "a partitioner is a Java class; use a column called partition",
    "transactional.id": "tasks that are tried again would fence each other",
    "sasl.client.callback.handler.class": "a callback is a Java class",
    "sasl.login.callback.handler.class": "a callback is a Java class",
    "sasl.login.class": "a login is a Java class",
    "ssl.engine.factory.class": "an engine is a Java class",
    "ssl.trustmanager.algorithm": "it belongs to Java's own TLS",
    "ssl.keymanager.algorithm": "it belongs to Java's own TLS",
}

CONSUMER_ONLY = frozenset(
    {
        "check.crcs",
        "client.rack",
        "enable.partition.eof",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "isolation.level",
        "max.partition.fetch.bytes",
        "queued.max.messages.kbytes",
        "queued.min.messages",
    }
)
PRODUCER_ONLY = frozenset(
    {
        "acks",
        "batch.num.messages",
        "batch.size",
        "compression.codec",
        "compression.level",
        "compression.type",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "linger.ms",
        "message.send.max.retries",
        "message.timeout.ms",
        "partitioner",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "request.required.acks",
        "request.timeout.ms",
        "retries",
        "sticky.partitioning.linger.ms",
    }
)
"""librdkafka warns of these where the other kind of client is given them."""

BOUNDS = {
    "fetch.max.bytes": (1000, 2**31 - 1 - 512),
    "fetch.min.bytes": (1, 100_000_000),
    "fetch.wait.max.ms": (0, 300_000),
    "max.partition.fetch.bytes": (1, 1_000_000_000),
    "metadata.max.age.ms": (1, 86_400_000),
    "socket.receive.buffer.bytes": (0, 100_000_000),
    "socket.send.buffer.bytes": (0, 100_000_000),
}
"""What librdkafka allows where Java's clients allow more, as -1 for the system's own buffer."""

MESSAGE_BYTES_MAX = 1_000_000
"""librdkafka's own `message.max.bytes`, which must not be above `fetch.max.bytes`."""

OF_SECURITY = ("ssl.", "sasl.", "security.")
"""Beginnings of names that are never left out: a client would be less safe than it is to be."""

_CREDENTIAL = r'\b{}\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s;"]+))'


def kafka_settings(options: Options) -> Settings:
    """The settings for librdkafka that the `kafka.` options make.

    Raises:
        SparkConnectorError: `kafka.bootstrap.servers` is missing, or an option cannot be
            honoured here.
    """
    given = {
        name[len(PREFIX) :]: value.strip()
        for name, value in options.items()
        if name.startswith(PREFIX)
    }
    if not given.get(BOOTSTRAP):
        raise SparkConnectorError("option 'kafka.bootstrap.servers' must be given")
    settings: Settings = {}
    for name, value in given.items():
        if name in NEVER:
            raise SparkConnectorError(f"option 'kafka.{name}' is not supported: {NEVER[name]}")
        if name in WITHOUT_EFFECT:
            continue
        translate = _TRANSLATED.get(name)
        if translate is not None:
            settings.update(translate(name, value, given))
            continue
        renamed = RENAMED.get(name, name)
        if _is_known(renamed, value):
            settings[renamed] = _within_bounds(renamed, value)
        elif name.startswith(OF_SECURITY):
            raise SparkConnectorError(
                f"option 'kafka.{name}' cannot be honoured: librdkafka, which reads and writes"
                f" here, has no such setting{_nearest(name)}"
            )
        else:
            warnings.warn(
                f"option 'kafka.{name}' has no effect: Kafka's clients have no such setting"
                f"{_nearest(name)}",
                stacklevel=2,
            )
    return settings


def _is_known(name: str, value: str) -> bool:
    """Whether librdkafka has a setting of this name, be the value a good one or not.

    It tells only by refusing one. The name behind, which it never has, keeps a client from being
    made of the one that is asked about.
    """
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return True  # whoever makes a client says what to install
    try:
        AdminClient({name: value, "": ""})
    except KafkaException as error:
        refusal: str = error.args[0].str()
        return refusal != f'No such configuration property: "{name}"'
    except TypeError:
        pass  # one of confluent-kafka's own, which is a function: no option can be that
    return False


def _nearest(name: str) -> str:
    known = {*RENAMED, *WITHOUT_EFFECT, *_TRANSLATED, *CONSUMER_ONLY, *PRODUCER_ONLY}
    found = get_close_matches(name, sorted(known), n=1)
    return f" (did you mean 'kafka.{found[0]}'?)" if found else ""


def _within_bounds(name: str, value: str) -> str:
    """A number moved to where librdkafka takes it; what is no number it refuses itself."""
    if name not in BOUNDS or not value.removeprefix("-").isdigit():
        return value
    least, most = BOUNDS[name]
    return str(min(max(int(value), least), most))


def consumer_settings(settings: Settings) -> Settings:
    """Those that a consumer knows."""
    kept = {name: value for name, value in settings.items() if name not in PRODUCER_ONLY}
    fetched = kept.get("fetch.max.bytes", "")
    if fetched.isdigit() and int(fetched) < MESSAGE_BYTES_MAX:
        kept["message.max.bytes"] = fetched
    timeout_ms = settings.get("request.timeout.ms")
    return kept if timeout_ms is None else {"socket.timeout.ms": timeout_ms} | kept


def producer_settings(settings: Settings) -> Settings:
    """Those that a producer knows."""
    return {name: value for name, value in settings.items() if name not in CONSUMER_ONLY}


def admin_settings(settings: Settings) -> Settings:
    """Those that any client knows."""
    return {
        name: value
        for name, value in consumer_settings(settings).items()
        if name not in CONSUMER_ONLY
    }


def _truststore(name: str, value: str, given: Settings) -> Settings:
    if given.get("ssl.truststore.type", "JKS").upper() != "PEM":
        raise SparkConnectorError(
            f"option 'kafka.{name}' must be a PEM file with 'kafka.ssl.truststore.type' set to"
            " PEM, since a Java key store cannot be read here"
        )
    return {"ssl.ca.location": value}


def _keystore(name: str, value: str, given: Settings) -> Settings:
    kind = given.get("ssl.keystore.type", "JKS").upper()
    if kind == "PKCS12":
        return {"ssl.keystore.location": value}
    if kind == "PEM":
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    raise SparkConnectorError(
        f"option 'kafka.{name}' must be a PEM or PKCS12 file, as 'kafka.ssl.keystore.type' says,"
        " since a Java key store cannot be read here"
    )


def _jaas(name: str, value: str, given: Settings) -> Settings:
    """User and password are written in it for PLAIN and SCRAM; of others nothing is known."""
    found = {}
    for part in ("username", "password"):
        match = re.search(_CREDENTIAL.format(part), value)
        if match is None:
            raise SparkConnectorError(
                f"option 'kafka.{name}' has no {part}, and only logins with user and password are"
                " understood; else use librdkafka's own 'kafka.sasl.' settings"
            )
        quoted = match["quoted"]
        text = match["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        found[f"sasl.{part}"] = text
    return found


def _buffer_memory(name: str, value: str, given: Settings) -> Settings:
    if not value.isdigit():
        raise SparkConnectorError(f"option 'kafka.{name}' must be a number, not {value!r}")
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))}


def _endpoint_identification(name: str, value: str, given: Settings) -> Settings:
    return {name: value or "none"}  # Java says by nothing that names are not compared


def _kept_with_its_file(name: str, value: str, given: Settings) -> Settings:
    """A store's type is looked at with the store; its password is only one of PKCS12's."""
    is_pkcs12 = given.get("ssl.keystore.type", "").upper() == "PKCS12"
    return {name: value} if name == "ssl.keystore.password" and is_pkcs12 else {}


_TRANSLATED: dict[str, Callable[[str, str, Settings], Settings]] = {
    "buffer.memory": _buffer_memory,
    "sasl.jaas.config": _jaas,
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
    "ssl.keystore.location": _keystore,
    "ssl.keystore.password": _kept_with_its_file,
    "ssl.keystore.type": _kept_with_its_file,
    "ssl.truststore.location": _truststore,
    "ssl.truststore.type": _kept_with_its_file,
}
