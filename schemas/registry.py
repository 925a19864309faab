"""A schema registry, asked by confluent-kafka's client, each schema once in a process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from .errors import RegistryError, SchemaError, UnknownSchemaError, needed_package
from .format import shortened
from .schema import AVRO, KnownSchemas, Reference, Schema

DEFAULTS: dict[str, Any] = {
    # confluent-kafka waits for an answer for ever.
    "timeout": 10,
    "max.retries": 2,
    "retries.wait.ms": 200,
    "retries.max.wait.ms": 2000,
}
"""Settings of the client where its user gives none; a registry that is down is given up after
half a minute at most."""

UNKNOWN_FOR_S = 30.0
"""An id that the registry does not know is asked for again after this: damaged values must not
mean a request for each."""

NOT_FOUND = 404
REFUSALS = (409, 422)
"""Of a schema that is to be registered: it is incompatible with those before it, or none."""

ResultT = TypeVar("ResultT")
Settings = tuple[tuple[str, Any], ...]


class SchemaRegistry:
    """Schemas by ids and subjects.

    It can be sent to other processes: each has one that keeps what it was told. One on a `mock://`
    is sent as the schemas that it has then.

    Args:
        settings: the URL, or settings of confluent-kafka's client, `url` among them; `DEFAULTS`
            hold for those that are not given.
        client: one that is there already, such as the other side of a test has for `mock://`.

    Raises:
        SchemaError: a setting is wrong, or confluent-kafka's client is not installed.
    """

    def __init__(self, settings: str | Mapping[str, Any], client: Any = None) -> None:
        given = {"url": settings} if isinstance(settings, str) else dict(settings)
        self._settings = {**DEFAULTS, **given}
        self.url = _without_login(str(given.get("url", "")))
        """As sentences name it: without a password."""
        self._client = client or _new_client(self._settings)
        self._schemas: dict[int, Schema] = {}
        self._unknown: dict[int, tuple[float, str]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        if str(self._settings.get("url", "")).startswith("mock:"):
            return KnownSchemas, (self._all_schemas(),)
        return shared_registry, (tuple(sorted(self._settings.items())),)

    def schema(self, schema_id: int) -> Schema:
        """The schema with an id.

        Raises:
            UnknownSchemaError: the registry has none.
            RegistryError: it does not answer.
        """
        found = self._schemas.get(schema_id)
        if found is not None:
            return found
        until, reason = self._unknown.get(schema_id, (0.0, ""))
        if time.monotonic() < until:
            raise UnknownSchemaError(reason)
        try:
            answer = self._ask(f"schema {schema_id}", lambda: self._client.get_schema(schema_id))
            found = self._schemas[schema_id] = self._whole(answer)
            return found
        except UnknownSchemaError as unknown:
            self._unknown[schema_id] = time.monotonic() + UNKNOWN_FOR_S, str(unknown)
            raise

    def latest(self, subject: str) -> tuple[int, Schema]:
        """The id and the schema of a subject's latest version.

        Raises:
            UnknownSchemaError: the registry has no such subject.
            RegistryError: it does not answer.
        """
        found = self._ask(f"subject {subject}", lambda: self._client.get_latest_version(subject))
        schema = self._schemas[found.schema_id] = self._whole(found.schema)
        return found.schema_id, schema

    def register(self, subject: str, schema: Schema) -> int:
        """The id of a schema, which is a subject's from now on if it was not yet.

        Raises:
            SchemaError: the registry refuses it, such as for being incompatible.
            RegistryError: it does not answer.
        """
        own = self._own(schema)
        return int(
            self._ask(
                f"the registration of a schema as {subject}",
                lambda: self._client.register_schema(subject, own),
            )
        )

    def look_up(self, subject: str, schema: Schema) -> int:
        """The id of a schema that a subject has.

        Raises:
            UnknownSchemaError: it has no such schema.
            RegistryError: the registry does not answer.
        """
        own = self._own(schema)
        found = self._ask(
            f"version of {subject} with this schema",
            lambda: self._client.lookup_schema(subject, own),
        )
        return int(found.schema_id)

    def _whole(self, answer: Any) -> Schema:
        """The schema of an answer with all that it refers to."""
        references: dict[str, Reference] = {}
        self._add_references(answer, references)
        return Schema(answer.schema_type or AVRO, answer.schema_str, tuple(references.values()))

    def _add_references(self, answer: Any, references: dict[str, Reference]) -> None:
        for each in answer.references or ():
            if each.name in references:
                continue
            found = self._ask(
                f"version {each.version} of subject {each.subject}",
                partial(self._client.get_version, each.subject, each.version),
            )
            self._add_references(found.schema, references)
            references[each.name] = Reference(each.name, found.schema.schema_str)

    def _own(self, schema: Schema) -> Any:
        """A schema as the client wants it.

        Raises:
            SchemaError: it refers to others, whose subjects and versions are not known here.
        """
        from confluent_kafka.schema_registry import Schema as ClientSchema

        if schema.references:
            raise SchemaError(
                "a schema that refers to others has to be registered by other means: their"
                " subjects and versions are not known here"
            )
        return ClientSchema(schema.text, schema.kind)

    def _ask(self, what: str, call: Callable[[], ResultT]) -> ResultT:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            return call()
        except SchemaRegistryError as error:
            reason = f"{shortened(error.error_message)} (HTTP {error.http_status_code})"
            if error.http_status_code == NOT_FOUND:
                raise UnknownSchemaError(
                    f"the schema registry {self.url} has no {what}: {reason}"
                ) from None
            if error.http_status_code in REFUSALS:
                raise SchemaError(
                    f"the schema registry {self.url} refuses {what}: {reason}"
                ) from None
            raise RegistryError(
                f"the schema registry {self.url} was asked for {what} and says: {reason}"
            ) from None
        except Exception as error:  # of sockets, of TLS, of HTTP, of an answer that is no JSON
            times = int(self._settings["max.retries"]) + 1
            raise RegistryError(
                f"the schema registry {self.url} does not answer when it is asked for {what}"
                f" ({type(error).__name__}: {shortened(error)}); it was asked {times} times, with"
                f" a time-out of {self._settings['timeout']} s"
            ) from None

    def _all_schemas(self) -> dict[int, Schema]:
        found = {}
        for subject in self._client.get_subjects():
            for version in self._client.get_versions(subject):
                registered = self._client.get_version(subject, version)
                found[registered.schema_id] = self._whole(registered.schema)
        return found


@lru_cache(maxsize=8)
def shared_registry(settings: Settings) -> SchemaRegistry:
    """The one registry of a process with these settings."""
    return SchemaRegistry(dict(settings))


def _new_client(settings: Mapping[str, Any]) -> Any:
    with needed_package("confluent-kafka's client of schema registries"):
        from confluent_kafka.schema_registry import SchemaRegistryClient
    try:
        return SchemaRegistryClient.new_client(dict(settings))
    except Exception as error:  # ValueError and TypeError of settings, OSError of TLS files
        raise SchemaError(
            f"the settings of the schema registry will not do: {shortened(error)}"
        ) from None


def _without_login(urls: str) -> str:
    return ",".join(
        urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        for parts in map(urlsplit, urls.split(","))
    )
