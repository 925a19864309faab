"""Files of settings of Kafka's clients, in either spelling: applied, passed over, or refused."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import pytest

from odradek.client.properties import PropertyError, connection_settings_of
from odradek.client.settings import ClientSettings
from odradek.testing.certificates import make_tls_files

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_tls_files(tmp_path_factory.mktemp("tls"))


def read(path):
    return Path(path).read_bytes()


def settings_of(**texts):
    """Settings by their names, with `__` for each dot."""
    return connection_settings_of(
        {name.replace("__", "."): text for name, text in texts.items()}, read
    )


def shake_hands(settings, files, host):
    """Do TLS in memory with a broker whose certificate is for 127.0.0.1 and localhost."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(files.keystore)
    server_context.load_verify_locations(files.ca)
    server_context.verify_mode = ssl.CERT_OPTIONAL
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = settings.ssl_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return server


def both_spellings(files):
    return [
        {
            "ssl__truststore__type": "PEM",
            "ssl__truststore__location": files.ca,
            "ssl__keystore__type": "PEM",
            "ssl__keystore__location": files.client_keystore,
        },
        {
            "ssl__ca__location": files.ca,
            "ssl__certificate__location": files.client_certificate,
            "ssl__key__location": files.client_key,
        },
        {
            "ssl__ca__pem": Path(files.ca).read_text(),
            "ssl__certificate__pem": Path(files.client_certificate).read_text(),
            "ssl__key__pem": Path(files.client_key).read_text(),
        },
    ]


@pytest.mark.parametrize("spelling", [0, 1, 2])
def test_either_spelling_shows_a_certificate_and_verifies_the_other(files, spelling):
    settings = settings_of(security__protocol="ssl", **both_spellings(files)[spelling])
    assert settings.is_verified
    assert shake_hands(settings, files, "localhost").getpeercert()
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(settings, files, "elsewhere")


@pytest.mark.parametrize("nothing", ["", "none"])
def test_names_are_not_compared_where_a_file_says_so(files, nothing):
    settings = settings_of(
        security__protocol="SSL",
        ssl__ca__location=files.ca,
        ssl__endpoint__identification__algorithm=nothing,
    )
    assert shake_hands(settings, files, "elsewhere").version()


def test_nothing_is_verified_where_a_file_says_so(files):
    settings = settings_of(security__protocol="SSL", enable__ssl__certificate__verification="false")
    assert not settings.is_verified
    assert shake_hands(settings, files, "elsewhere").version()
    verifying = settings_of(security__protocol="SSL", enable__ssl__certificate__verification="true")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(verifying, files, "localhost")


def test_what_clients_are_made_with_is_taken_over():
    settings = connection_settings_of(
        {
            "bootstrap.servers": " a:1,b:2 ",
            "client.id": "me",
            "request.timeout.ms": "1234",
            "max.in.flight": "2",
            "metadata.recovery.strategy": "none",
            "linger.ms": "5",
            "log_level": "3",
            "sasl.oauthbearer.scope": "s",
        },
        read,
        ClientSettings(max_block_ms=7),
    )
    assert settings.bootstrap == "a:1,b:2"
    assert settings.ssl_context is None
    assert settings.authenticate is None
    assert settings.client == ClientSettings(
        client_id="me",
        request_timeout_ms=1234,
        max_in_flight_requests_per_connection=2,
        metadata_recovery_strategy="none",
        max_block_ms=7,
    )


@pytest.mark.parametrize("retriever", ["Default", "ClientCredentials", "File"])
def test_where_tokens_come_from_may_be_named_as_java_does(retriever):
    url = {"sasl__oauthbearer__token__endpoint__url": "file:///token"}
    validator = {"sasl__oauthbearer__jwt__validator__class": f"{JAVAS_TOKENS}ClientJwtValidator"}
    named = {RETRIEVER: f"{JAVAS_TOKENS}{retriever}JwtRetriever", **validator}
    assert settings_of(**OAUTH, **url, **named).authenticate is not None


SASL = {"security__protocol": "SASL_PLAINTEXT", "sasl__mechanism": "PLAIN"}
OAUTH = {**SASL, "sasl__mechanism": "OAUTHBEARER"}
CREDENTIALS = {"sasl__username": "u", "sasl__password": "p"}
RETRIEVER = "sasl__oauthbearer__jwt__retriever__class"
JAVAS_TOKENS = "org.apache.kafka.common.security.oauthbearer."


@pytest.mark.parametrize(
    ("texts", "name", "sentence"),
    [
        (
            {"ssl__ca__locatoin": "x"},
            "ssl.ca.locatoin",
            "ssl.ca.locatoin is not a setting of Kafka's clients; did you mean ssl.ca.location?",
        ),
        ({"qqq": "x"}, "qqq", "qqq is not a setting of Kafka's clients"),
        ({"ssl__client__auth": "none"}, "ssl.client.auth", "is not a setting of Kafka's clients"),
        (
            {"ssl__truststore__location": "x"},
            "ssl.truststore.location",
            "would have no effect, for security.protocol is PLAINTEXT by default",
        ),
        (CREDENTIALS, "sasl.username", "would have no effect"),
        ({"security__protocol": "TLS"}, "security.protocol", "must be one of PLAINTEXT, SSL"),
        ({"ssl__crl__location": "x"}, "ssl.crl.location", "revoked certificates are not looked up"),
        ({"ssl__engine__factory__class": "x"}, "ssl.engine.factory.class", "a Java class"),
        (
            {"ssl__ca__location": "x", "ssl__truststore__location": "y"},
            "ssl.truststore.location",
            "another name of ssl.truststore.location are both set",
        ),
        (
            {"security__protocol": "SSL", "ssl__certificate__location": __file__},
            "ssl.certificate.location",
            "is set without ssl.key.location",
        ),
        (
            {"security__protocol": "SSL", "ssl__key__location": "/nowhere.pem"},
            "ssl.key.location",
            "ssl.key.location=/nowhere.pem cannot be read: No such file",
        ),
        (
            {"security__protocol": "SSL", "enable__ssl__certificate__verification": "no"},
            "enable.ssl.certificate.verification",
            "must be true or false",
        ),
        ({"request__timeout__ms": "soon"}, "request.timeout.ms", "must be a whole number"),
        ({"request__timeout__ms": "0"}, "request.timeout.ms", "request.timeout.ms=0 is not"),
        (
            {"metadata__recovery__strategy": "x"},
            "metadata.recovery.strategy",
            "metadata.recovery.strategy='x' is neither",
        ),
        (
            {**CREDENTIALS, "security__protocol": "SASL_SSL"},
            None,
            "sasl.mechanism is GSSAPI by default, which needs the package gssapi: install odradek[",
        ),
        (
            {**SASL, "sasl__mechanism": "GSSAPI"},
            "sasl.mechanism",
            "sasl.mechanism is GSSAPI, which needs the package gssapi: install odradek[kerberos]",
        ),
        (
            {**SASL, **CREDENTIALS, "sasl__mechanism": "CRAM-MD5"},
            "sasl.mechanism",
            "CRAM-MD5, but only PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI are",
        ),
        ({**SASL, "sasl__username": "u"}, None, "sasl.password is missing"),
        (
            {**OAUTH, "sasl__oauthbearer__assertion__file": "x"},
            "sasl.oauthbearer.assertion.file",
            "not got by an assertion (KIP-1139, KIP-1258): have another program keep it in a file",
        ),
        (
            {**OAUTH, RETRIEVER: f"{JAVAS_TOKENS}JwtBearerJwtRetriever"},
            "sasl.oauthbearer.jwt.retriever.class",
            "sasl.oauthbearer.token.endpoint.url=file:///PATH",
        ),
        (
            {**OAUTH, "sasl__oauthbearer__jwt__validator__class": "a.B"},
            "sasl.oauthbearer.jwt.validator.class",
            "it names a Java class",
        ),
        ({**SASL, **CREDENTIALS, "sasl__jaas__config": JAAS}, "sasl.jaas.config", "set one"),
        (
            {**SASL, "sasl__jaas__config": "a.ScramLoginModule required username=u password=p;"},
            "sasl.jaas.config",
            "must begin with org.apache.kafka.common.security.plain.PlainLoginModule required",
        ),
        (
            {**SASL, "sasl__jaas__config": f'{JAAS} username="u";'},
            "sasl.jaas.config",
            "sasl.jaas.config has no password",
        ),
        ({**SASL, **CREDENTIALS, "sasl__username": "\0"}, None, "NUL"),
    ],
)
def test_what_cannot_be_used_is_named(texts, name, sentence, monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(PropertyError) as raised:
        settings_of(**texts)
    assert raised.value.name == name
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    "texts",
    [
        {**SASL, "sasl__jaas__config": f'{JAAS} username="u" passwort="hunter2";'},
        {**SASL, "sasl__username": "hunter2\0", "sasl__password": "hunter2\0"},
        {**SASL, "sasl__jaas__config": 'x required username="u" password="hunter2";'},
    ],
)
def test_secrets_are_in_no_error(texts):
    with pytest.raises(PropertyError) as raised:
        settings_of(**texts)
    assert "hunter2" not in str(raised.value)


def test_secrets_are_in_no_text_of_the_settings():
    settings = settings_of(**{**SASL, **CREDENTIALS, "sasl__password": "hunter2"})
    assert settings.authenticate is not None
    assert "hunter2" not in repr(settings)
