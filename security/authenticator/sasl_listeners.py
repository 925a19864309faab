"""How each listener speaks SASL, by its settings, which may change while the broker runs.

`sasl.*` holds for all listeners, `listener.name.<listener>.sasl.*` for one, and
`listener.name.<listener>.<mechanism>.sasl.*` for one mechanism there.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...client.network.connection import Authenticate
from ...client.security.jaas import LOGIN_MODULES, JaasEntry, JaasError, parse_jaas
from ...client.security.kerberos_login import SERVICE_NAME, login_of, service_name_of
from ...client.security.oauthbearer import JAVA_PACKAGE, UNSECURED, sasl_oauthbearer, token_source
from ...client.security.oauthbearer import LOGIN_HANDLERS as OAUTHBEARER_LOGIN_HANDLERS
from ...client.security.sasl import MECHANISMS, sasl
from ...config.broker_config import BrokerConfig
from ...config.definition import ConfigError
from ...config.listeners import SASL_PROTOCOLS
from ...config.values import Password
from ...protocol.sasl.gssapi import MECHANISM as GSSAPI
from ...protocol.sasl.oauthbearer import MECHANISM as OAUTHBEARER
from ...protocol.sasl.plain import MECHANISM as PLAIN
from ...protocol.sasl.scram import SCRAM_MECHANISMS
from ...runtime.clock import Clock
from ...runtime.offload import FewThreads
from ...runtime.rng import random_secret
from ...storage.io.files import REAL_FILES
from .exchange import Exchange
from .kerberos_name import SETTING as TO_LOCAL_RULES
from .kerberos_name import KerberosShortNamer
from .plain import PlainExchange, users_of
from .sasl_authenticator import SaslAuthenticator, SaslMechanisms
from .scram import ScramServerExchange
from .scram_credentials import ScramCredentials

if TYPE_CHECKING:
    from .access_token import TokenRules
    from .jwks import JwksSettings, RefreshedKeys
    from .oauthbearer import ValidateToken

logger = logging.getLogger(__name__)

UNSUPPORTED_SETTINGS: Final = (
    "sasl.server.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
)
"""They would have Java decide who may log in."""

SIGNED_HANDLERS: Final = tuple(
    f"{JAVA_PACKAGE}{name}OAuthBearerValidatorCallbackHandler" for name in ("", "secured.")
)
UNSECURED_HANDLER: Final = (
    f"{JAVA_PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
JWT_VALIDATORS: Final = tuple(f"{JAVA_PACKAGE}{name}JwtValidator" for name in ("Default", "Broker"))
LOGIN_THREADS_MAX: Final = 2
"""However many log in at once, they leave threads to all else."""
OAUTHBEARER_HANDLERS: Final = (*SIGNED_HANDLERS, UNSECURED_HANDLER, *OAUTHBEARER_LOGIN_HANDLERS)
"""Kafka's own handlers, which mean what is done here."""


class SaslListeners:
    """All listeners of a broker that speak SASL.

    Args:
        config: the broker's settings as they are when it starts.
        clock: the broker's.

    Attributes:
        credentials: of SCRAM's users; whoever follows the metadata store fills them.

    Raises:
        ConfigError: a setting cannot be used.
    """

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self.credentials = ScramCredentials()
        self._config = config
        self._clock = clock
        self._keys: dict[JwksSettings, RefreshedKeys] = {}
        self._warned: set[str] = set()
        self._threads = FewThreads(LOGIN_THREADS_MAX)
        self._listeners, self._login = self._read(config)

    def _read(self, config: BrokerConfig) -> tuple[dict[str, SaslMechanisms], Authenticate | None]:
        """How each listener speaks SASL, and how this broker logs in to others."""
        found = {
            listener.name: self._mechanisms(config, listener.name)
            for listener in config.listeners
            if listener.security_protocol in SASL_PROTOCOLS
        }
        login = None
        if config.inter_broker_listener_name in found:
            login = self._inter_broker_login(config, config.inter_broker_listener_name)
        return found, login

    def start(self, keep_running: Callable[[Callable[[], Awaitable[None]]], None]) -> None:
        """Begin to follow the keys of identity providers, in tasks beside the requests."""
        for keys in self._keys.values():
            keep_running(keys.run)

    def has(self, listener_name: str) -> bool:
        """Whether a listener speaks SASL."""
        return listener_name in self._listeners

    def authenticator(self, listener_name: str) -> SaslAuthenticator:
        """For a new connection to a listener that speaks SASL."""
        return SaslAuthenticator(self._listeners[listener_name], self._clock.now_ms)

    def to_brokers(self) -> Authenticate | None:
        """How this broker logs in to others; None: not at all. It has the token of all logins."""
        return self._login

    def check(self, proposed: BrokerConfig) -> None:
        """Find out whether the settings could become these.

        Raises:
            ConfigError: one sentence that says what is wrong.
        """
        self._read(proposed)

    def reconfigure(self) -> None:
        """Follow a change of the settings; connections that are there keep what they have."""
        try:
            self._listeners, self._login = self._read(self._config)
        except ConfigError as error:
            logger.error("the listeners keep the SASL settings they had: %s", error)

    def _mechanisms(self, config: BrokerConfig, listener: str) -> SaslMechanisms:
        """How a listener is to speak SASL. Raises: ConfigError."""
        enabled: Iterable[str] = config.listener_value(listener, "sasl.enabled.mechanisms")
        names = list(dict.fromkeys(name.upper() for name in enabled))
        if not names:
            raise ConfigError(
                f"Listener {listener} speaks SASL, and sasl.enabled.mechanisms is empty: set it to "
                f"some of {', '.join(MECHANISMS)}."
            )
        for name in names:
            for setting in UNSUPPORTED_SETTINGS:
                handler = _mechanism_value(config, listener, name, setting)
                if handler is None or (name == OAUTHBEARER and handler in OAUTHBEARER_HANDLERS):
                    continue
                raise ConfigError(
                    f"{setting} names a Java class, which cannot be run here: leave it out."
                )
        return SaslMechanisms(
            {name: self._exchange(config, listener, name) for name in names},
            {name: _max_reauth_ms(config, listener, name) for name in names},
            config["connection.failed.authentication.delay.ms"],
            {GSSAPI: self._threads},
        )

    def _exchange(
        self, config: BrokerConfig, listener: str, mechanism: str
    ) -> Callable[[], Exchange]:
        """What begins a login by a mechanism. Raises: ConfigError."""
        if mechanism not in MECHANISMS:
            raise ConfigError(
                f"Listener {listener} enables the SASL mechanism {mechanism}, which is not "
                f"supported: set sasl.enabled.mechanisms to some of "
                f"{', '.join(MECHANISMS)}."
            )
        if mechanism == GSSAPI:
            return _kerberos_exchange(config, listener)
        entry = _jaas_entry(config, listener, mechanism)
        if mechanism == OAUTHBEARER:
            from .oauthbearer import OAuthBearerExchange

            return partial(OAuthBearerExchange, self._token_validator(config, listener, entry))
        if mechanism != PLAIN:
            found = SCRAM_MECHANISMS[mechanism]
            find = self.credentials.finder(found)
            return partial(ScramServerExchange, found, find, random_secret)
        if entry is None:
            key = _jaas_key(listener, mechanism)
            raise ConfigError(
                f"Listener {listener} enables the SASL mechanism PLAIN and has no users: set {key} "
                f'to {LOGIN_MODULES[PLAIN]} required user_NAME="PASSWORD";'
            )
        return partial(PlainExchange, users_of(entry.options))

    def _token_validator(
        self, config: BrokerConfig, listener: str, entry: JaasEntry | None
    ) -> ValidateToken:
        """How tokens of OAUTHBEARER are checked on a listener. Raises: ConfigError."""
        from .access_token import UNSECURED_PREFIX, SignedTokenValidator, UnsecuredTokenValidator

        value = partial(_mechanism_value, config, listener, OAUTHBEARER)
        wall_ms = self._clock.now_ms
        options = {} if entry is None else entry.options
        handler = value("sasl.server.callback.handler.class")
        url = value("sasl.oauthbearer.jwks.endpoint.url")
        is_unsecured = any(name.startswith((UNSECURED_PREFIX, UNSECURED)) for name in options)
        if handler == UNSECURED_HANDLER or (handler is None and url is None and is_unsecured):
            if listener not in self._warned:
                self._warned.add(listener)
                logger.warning(
                    "listener %s takes UNSECURED tokens of OAUTHBEARER: whoever can reach it may "
                    "be anybody. This is for development only.",
                    listener,
                )
            try:
                return UnsecuredTokenValidator(options, wall_ms)
            except ValueError as error:
                key = _jaas_key(listener, OAUTHBEARER)
                raise ConfigError(f"{key} cannot be used: {error}.") from error
        if url is None:
            raise ConfigError(
                f"Listener {listener} enables OAUTHBEARER, and nothing says whose tokens are to be "
                "trusted: set sasl.oauthbearer.jwks.endpoint.url."
            )
        validator = value("sasl.oauthbearer.jwt.validator.class")
        if validator not in JWT_VALIDATORS:
            raise ConfigError(
                f"sasl.oauthbearer.jwt.validator.class={validator} is a Java class, which cannot "
                "be run here: leave it out."
            )
        keys = self._keys_at(url, value)
        return SignedTokenValidator(keys.verified_payload, _token_rules(value), wall_ms)

    def _keys_at(self, url: str, value: Callable[[str], Any]) -> RefreshedKeys:
        """An identity provider's keys, which all listeners share. Raises: ConfigError."""
        try:
            from .jwks import JwksSettings, RefreshedKeys
        except ModuleNotFoundError as error:
            raise ConfigError(
                "sasl.oauthbearer.jwks.endpoint.url needs the package PyJWT: install "
                "odradek[oauth]."
            ) from error
        settings = JwksSettings(
            url,
            value("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
            value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
            value("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
        )
        if settings not in self._keys:
            try:
                self._keys[settings] = RefreshedKeys(settings, self._clock)
            except ValueError as error:
                raise ConfigError(
                    f"sasl.oauthbearer.jwks.endpoint.url cannot be used: {error}."
                ) from error
        return self._keys[settings]

    def _inter_broker_login(self, config: BrokerConfig, listener: str) -> Authenticate:
        """How brokers log in to each other. Raises: ConfigError."""
        mechanism = config["sasl.mechanism.inter.broker.protocol"].upper()
        if mechanism not in MECHANISMS:
            raise ConfigError(
                f"Brokers talk over listener {listener}, which speaks SASL: set "
                f"sasl.mechanism.inter.broker.protocol to one of {', '.join(MECHANISMS)}, not to "
                f"{mechanism}."
            )
        if mechanism == GSSAPI:
            return _kerberos_login(config, listener)
        key = _jaas_key(listener, mechanism)
        entry = _jaas_entry(config, listener, mechanism)
        options = {} if entry is None else entry.options
        try:
            if mechanism == OAUTHBEARER:
                return self._token_login(config, listener, options)
            if "username" in options and "password" in options:
                return sasl(mechanism, options["username"], options["password"])
        except ValueError as error:
            raise ConfigError(
                f"{key}, by which brokers log in to each other, cannot be used: {error}."
            ) from error
        raise ConfigError(
            f"Brokers talk over listener {listener}, which speaks SASL, and have no name to log in "
            f'with: set {key} to {LOGIN_MODULES[mechanism]} required username="NAME" '
            'password="PASSWORD";'
        )

    def _token_login(
        self, config: BrokerConfig, listener: str, options: Mapping[str, str]
    ) -> Authenticate:
        """By a token of OAUTHBEARER. Raises: ValueError."""

        def setting(name: str) -> str | None:
            found = _mechanism_value(config, listener, OAUTHBEARER, name)
            if isinstance(found, Password):
                return found.secret
            return None if found is None else str(found)

        return sasl_oauthbearer(
            token_source(setting, options, REAL_FILES.read_bytes, self._clock.now_ms)
        )


def _kerberos_options(config: BrokerConfig, listener: str) -> tuple[Mapping[str, str], str]:
    """The JAAS entry's options, and the service name, which Kafka's login demands in any case.

    Raises:
        ConfigError: the extra is not installed, or a setting is missing.
    """
    try:
        import gssapi  # noqa: F401  # whether it is there, before all else is looked at
    except ImportError as error:
        raise ConfigError(
            f"Listener {listener} enables the SASL mechanism GSSAPI, which needs the package "
            "gssapi: install odradek[kerberos], or set sasl.enabled.mechanisms to some of "
            f"{', '.join(each for each in MECHANISMS if each != GSSAPI)}."
        ) from error
    key = _jaas_key(listener, GSSAPI)
    entry = _jaas_entry(config, listener, GSSAPI)
    if entry is None:
        raise ConfigError(
            f"Listener {listener} enables the SASL mechanism GSSAPI and has no principal: set "
            f'{key} to {LOGIN_MODULES[GSSAPI]} required useKeyTab=true storeKey=true keyTab="FILE" '
            'principal="kafka/HOST@REALM";'
        )
    setting = _mechanism_value(config, listener, GSSAPI, SERVICE_NAME)
    try:
        return entry.options, service_name_of(entry.options, setting)
    except ValueError as error:
        raise ConfigError(f"{key} cannot be used: {error}.") from error


def _kerberos_exchange(config: BrokerConfig, listener: str) -> Callable[[], Exchange]:
    """What begins a login by GSSAPI. Raises: ConfigError."""
    options, _ = _kerberos_options(config, listener)
    from .gssapi import GssapiExchange, acceptor, default_realm

    rules = _mechanism_value(config, listener, GSSAPI, TO_LOCAL_RULES)
    namer = KerberosShortNamer(rules, default_realm())
    key = _jaas_key(listener, GSSAPI)
    try:
        login = login_of(options)
        if login.keytab is None:
            raise ValueError("a broker needs useKeyTab=true and its keyTab")
        return partial(GssapiExchange, acceptor(login), namer)
    except ValueError as error:
        raise ConfigError(f"{key} cannot be used: {error}.") from error


def _kerberos_login(config: BrokerConfig, listener: str) -> Authenticate:
    """How brokers log in to each other by GSSAPI. Raises: ConfigError."""
    options, service_name = _kerberos_options(config, listener)
    from ...client.security.gssapi import sasl_gssapi

    try:
        return sasl_gssapi(service_name, login_of(options))
    except ValueError as error:
        key = _jaas_key(listener, GSSAPI)
        raise ConfigError(f"{key} cannot be used: {error}.") from error


def _jaas_key(listener: str, mechanism: str) -> str:
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"


def _jaas_entry(config: BrokerConfig, listener: str, mechanism: str) -> JaasEntry | None:
    """A mechanism's entry on a listener; Kafka takes it from nowhere else. Raises: ConfigError."""
    if config.is_set("sasl.jaas.config"):
        raise ConfigError(
            "sasl.jaas.config is not used by brokers, as in Kafka: set "
            f"{_jaas_key(listener, mechanism)}."
        )
    value = config.listener_value(listener, f"{mechanism.lower()}.sasl.jaas.config")
    if value is None:
        return None
    text = value.secret if isinstance(value, Password) else str(value)
    try:
        entry = parse_jaas(text)
    except JaasError as error:
        raise ConfigError(f"{_jaas_key(listener, mechanism)} cannot be used: {error}.") from error
    if entry.module != LOGIN_MODULES[mechanism]:
        raise ConfigError(
            f"{_jaas_key(listener, mechanism)} names another login module: for "
            f"{mechanism} it is {LOGIN_MODULES[mechanism]}."
        )
    return entry


def _mechanism_value(config: BrokerConfig, listener: str, mechanism: str, name: str) -> Any:
    """A setting of a mechanism on a listener, of the listener, or of all."""
    found = config.listener_value(listener, f"{mechanism.lower()}.{name}")
    return config.listener_value(listener, name) if found is None else found


def _token_rules(value: Callable[[str], Any]) -> TokenRules:
    from .access_token import TokenRules

    return TokenRules(
        tuple(value("sasl.oauthbearer.expected.audience")),
        value("sasl.oauthbearer.expected.issuer"),
        value("sasl.oauthbearer.clock.skew.seconds") * 1000,
        value("sasl.oauthbearer.scope.claim.name"),
        value("sasl.oauthbearer.sub.claim.name"),
    )


def _max_reauth_ms(config: BrokerConfig, listener: str, mechanism: str) -> int:
    """For how long a login holds; 0: as long as the connection."""
    return int(_mechanism_value(config, listener, mechanism, "connections.max.reauth.ms") or 0)
