"""Settings of security that are not enforced are refused, and not ignored."""

from __future__ import annotations

import sys

import pytest

from odradek.broker.network.listener_security import sasl_listeners
from odradek.config.broker_config import BrokerConfig
from odradek.config.definition import ConfigError
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.runtime.clock import ManualClock

PLAIN = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
LISTENERS = {"listeners": "SASL_PLAINTEXT://:0,PLAINTEXT://:0"}
OAUTH = {**LISTENERS, "sasl.enabled.mechanisms": "OAUTHBEARER"}
KEYS = "sasl.oauthbearer.jwks.endpoint.url"
TOKENS = "listener.name.sasl_plaintext.oauthbearer"
TOKEN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ENABLED = {**LISTENERS, "sasl.enabled.mechanisms": "PLAIN"}


def config(**settings: str) -> DynamicConfig:
    return DynamicConfig(BrokerConfig.from_sources(settings))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {**LISTENERS, "sasl.enabled.mechanisms": "PLAIN,CRAM-MD5", PLAIN: f"{MODULE};"},
            "enables the SASL mechanism CRAM-MD5, which is not supported",
        ),
        ({**LISTENERS, "sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms is empty"),
        ({**LISTENERS, "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"}, "PLAIN and has no users"),
        (OAUTH, "nothing says whose tokens are to be trusted: set sasl.oauthbearer.jwks.endpoint"),
        ({**OAUTH, KEYS: "file:///nowhere.json"}, f"{KEYS} cannot be used: /nowhere.json cannot"),
        ({**OAUTH, KEYS: "keys.json"}, f"{KEYS} cannot be used: .* not a URL"),
        (
            {**OAUTH, KEYS: "http://h/k", "sasl.oauthbearer.jwt.validator.class": "a.B"},
            "sasl.oauthbearer.jwt.validator.class=a.B is a Java class",
        ),
        (
            {**OAUTH, f"{TOKENS}.sasl.server.callback.handler.class": "a.B"},
            "sasl.server.callback.handler.class names a Java class",
        ),
        (
            {
                **OAUTH,
                f"{TOKENS}.sasl.jaas.config": (
                    f"{TOKEN_MODULE} unsecuredValidatorAllowableClockSkewMs=x;"
                ),
            },
            "AllowableClockSkewMs must be a whole number",
        ),
        (
            {
                **ENABLED,
                PLAIN: f"{MODULE};",
                "listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class": "a.B",
            },
            "sasl.server.callback.handler.class names a Java class",
        ),
        (ENABLED, f"PLAIN and has no users: set {PLAIN}"),
        ({**ENABLED, "sasl.jaas.config": f"{MODULE};"}, "sasl.jaas.config is not used by brokers"),
        ({**ENABLED, PLAIN: "nonsense"}, f"{PLAIN} cannot be used: .* control flag"),
        ({**ENABLED, PLAIN: f'{MODULE} user_a="hush'}, f"{PLAIN} cannot be used: .* quote"),
        (
            {**ENABLED, PLAIN: 'a.B required user_a="hush";'},
            "names another login module: for PLAIN",
        ),
        (
            {**ENABLED, PLAIN: f"{MODULE};", "sasl.server.callback.handler.class": "a.B"},
            "sasl.server.callback.handler.class names a Java class",
        ),
        (
            {
                **ENABLED,
                PLAIN: f"{MODULE};",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism.inter.broker.protocol": "CRAM-MD5",
            },
            "set sasl.mechanism.inter.broker.protocol to one of",
        ),
        (
            {
                **ENABLED,
                PLAIN: f"{MODULE};",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
            },
            "have no name to log in with",
        ),
    ],
)
def test_sasl_that_cannot_be_served_is_refused(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as raised:
        sasl_listeners(config(**settings), ManualClock())
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    "settings",
    [
        LISTENERS,
        {
            **ENABLED,
            PLAIN: f"{MODULE};",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
        },
    ],
    ids=["of clients", "of brokers"],
)
def test_kerberos_without_its_extra_is_refused(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the default mechanism, of Kafka's clients and of its brokers."""
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"needs the package gssapi: install odradek\[kerberos\]"):
        sasl_listeners(config(**settings), ManualClock())


def test_without_a_listener_that_speaks_it_nothing_of_sasl_is_made() -> None:
    assert sasl_listeners(config(listeners="PLAINTEXT://:0"), ManualClock()) is None


def test_all_logins_to_brokers_share_a_token_until_settings_change() -> None:
    """A provider would be asked for a token for each connection else."""
    texts = {
        **ENABLED,
        PLAIN: f'{MODULE} user_a="b";',
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
        "sasl.oauthbearer.client.credentials.client.id": "broker",
        "sasl.oauthbearer.client.credentials.client.secret": "hush",
    }
    settings = config(**texts)
    listeners = sasl_listeners(settings, ManualClock())
    assert listeners is not None
    login = listeners.to_brokers()
    assert login is listeners.to_brokers() is not None
    refresh = "sasl.login.refresh.buffer.seconds"
    settings.change({refresh: "7"}, per_broker=True)
    assert listeners.to_brokers() is not login
    with pytest.raises(ConfigError, match=f"{refresh}=4000 cannot be used"):
        settings.validate({refresh: "4000"}, per_broker=True)
