"""Keys, certificates and versions from Kafka's settings: what works, and what is said otherwise."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from odradek.client.security.tls_context import SUITES_1_3, client_context
from odradek.client.security.tls_settings import TlsError, tls_settings_of
from odradek.client.security.tls_stores import read_key_store, read_trust_store
from odradek.testing.certificates import CertificateAuthority, make_tls_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_tls_files(tmp_path_factory.mktemp("tls"))


def read(path):
    return Path(path).read_bytes()


def context(**settings):
    texts = {name.replace("__", "."): value for name, value in settings.items()}
    return client_context(tls_settings_of(texts), read)


def pem_of(path):
    return Path(path).read_text()


def key_as(path, *, form=serialization.PrivateFormat.PKCS8, password=None):
    key = serialization.load_pem_private_key(Path(path).read_bytes(), None)
    encryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(serialization.Encoding.PEM, form, encryption).decode()


def with_key(files, key, **settings):
    return context(
        ssl__keystore__type="PEM",
        ssl__keystore__key=key,
        ssl__keystore__certificate__chain=pem_of(files.client_certificate),
        **settings,
    )


@pytest.mark.parametrize(
    "form", [serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL]
)
@pytest.mark.parametrize("password", [None, "s3cret"])
def test_key_is_read_in_each_form_of_pem(files, form, password):
    key = key_as(files.client_key, form=form, password=password)
    if password is None:
        with_key(files, key)
    else:
        with_key(files, key, ssl__key__password=password)
        for wrong in ({}, {"ssl__key__password": "other"}):
            with pytest.raises(TlsError, match=r"ssl\.key\.password"):
                with_key(files, key, **wrong)


def test_pem_in_one_line_is_read_as_kafka_reads_it(files):
    key = " ".join(key_as(files.client_key).split("\n"))
    chain = " ".join(pem_of(files.client_certificate).split("\n"))
    context(
        ssl__keystore__type="PEM", ssl__keystore__key=key, ssl__keystore__certificate__chain=chain
    )


def test_text_around_the_entries_does_not_matter(files, tmp_path):
    store = tmp_path / "store.pem"
    store.write_text(f"Bag Attributes\n  friendlyName: x\n{pem_of(files.client_keystore)}\nend")
    context(ssl__keystore__type="PEM", ssl__keystore__location=str(store))


def test_default_settings_trust_what_the_system_trusts():
    made = context()
    assert made.verify_mode == ssl.CERT_REQUIRED
    assert made.check_hostname
    assert (made.minimum_version, made.maximum_version) == (
        ssl.TLSVersion.TLSv1_2,
        ssl.TLSVersion.TLSv1_3,
    )


def test_store_replaces_what_the_system_trusts(files):
    made = context(ssl__truststore__type="PEM", ssl__truststore__location=files.ca)
    assert len(made.get_ca_certs()) == 1


def test_hosts_are_compared_unless_the_algorithm_is_empty():
    assert context(ssl__endpoint__identification__algorithm="HTTPS").check_hostname
    assert not context(ssl__endpoint__identification__algorithm="").check_hostname


@pytest.mark.parametrize(
    ("enabled", "versions"),
    [
        ("TLSv1.2", ["TLSv1_2"]),
        ("TLSv1.3", ["TLSv1_3"]),
        ("TLSv1.3,TLSv1.2", ["TLSv1_2", "TLSv1_3"]),
        ("TLSv1.1,TLSv1.3", ["TLSv1_1", "TLSv1_3"]),
    ],
)
def test_versions_are_those_enabled(enabled, versions):
    made = context(ssl__enabled__protocols=enabled)
    assert made.minimum_version == ssl.TLSVersion[versions[0]]
    assert made.maximum_version == ssl.TLSVersion[versions[-1]]
    assert bool(made.options & ssl.OP_NO_TLSv1_2) == ("TLSv1.2" not in enabled)


@pytest.mark.parametrize(
    ("protocol", "newest"), [("TLS", "TLSv1_3"), ("TLSv1.3", "TLSv1_3"), ("TLSv1.2", "TLSv1_2")]
)
def test_protocol_counts_where_no_versions_are_enabled(protocol, newest):
    made = context(ssl__enabled__protocols="", ssl__protocol=protocol)
    assert made.maximum_version == ssl.TLSVersion[newest]
    assert made.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("suite", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
    ],
)
def test_suites_go_by_their_registered_names(suite, openssl):
    made = context(ssl__cipher__suites=suite)
    names = {cipher["name"] for cipher in made.get_ciphers()}
    assert names - set(SUITES_1_3) == {openssl}
    assert made.maximum_version == ssl.TLSVersion.TLSv1_2  # none of TLSv1.3 is named


def test_all_suites_of_the_newest_version_alone_leave_the_older_out():
    made = context(ssl__cipher__suites=",".join(SUITES_1_3))
    assert made.minimum_version == ssl.TLSVersion.TLSv1_3


def refused(*, files, tmp_path):
    """Settings that cannot be used, and what the sentence about them names."""
    nothing = tmp_path / "empty.pem"
    nothing.write_text("no PEM here")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n")
    untrue = tmp_path / "untrue.pem"
    untrue.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    other = CertificateAuthority(tmp_path / "other").issue("other")
    pem = {"ssl__keystore__type": "PEM"}
    trust = {"ssl__truststore__type": "PEM"}
    key, chain = pem_of(files.client_key), pem_of(files.client_certificate)
    return [
        ({"ssl__keystore__location": "/k.jks", "ssl__keystore__password": "x"}, "=JKS cannot"),
        ({"ssl__keystore__location": "/k.p12", "ssl__keystore__type": "PKCS12"}, "=PKCS12 cannot"),
        ({"ssl__truststore__location": "/k.jks"}, "ssl.truststore.type=JKS cannot be read"),
        ({"ssl__keystore__password": "x"}, "ssl.keystore.location"),
        ({"ssl__truststore__password": "x"}, "ssl.truststore.location"),
        (
            {**pem, "ssl__keystore__location": "/nowhere.pem"},
            "/nowhere.pem cannot be read: No such file",
        ),
        (
            {**pem, "ssl__keystore__location": "/k", "ssl__keystore__password": "x"},
            "ssl.keystore.password is set",
        ),
        ({**pem, "ssl__keystore__location": str(nothing)}, "holds no certificate in PEM"),
        ({**pem, "ssl__keystore__location": files.client_certificate}, "holds 0 private keys"),
        (
            {**pem, "ssl__keystore__location": "/k", "ssl__keystore__key": key},
            "the key comes from one place",
        ),
        ({**pem, "ssl__keystore__key": key}, "go together"),
        ({**pem, "ssl__keystore__certificate__chain": chain}, "go together"),
        ({"ssl__keystore__key": key, "ssl__keystore__certificate__chain": chain}, "set ssl.keysto"),
        (
            {
                **pem,
                "ssl__keystore__key": pem_of(other.key),
                "ssl__keystore__certificate__chain": chain,
            },
            "key values mismatch",
        ),
        ({**trust, "ssl__truststore__location": str(nothing)}, "holds no certificate"),
        ({**trust, "ssl__truststore__location": str(broken)}, "not base64"),
        ({**trust, "ssl__truststore__location": str(untrue)}, "a certificate that is none"),
        (
            {**trust, "ssl__truststore__location": "/x", "ssl__truststore__certificates": chain},
            "both set",
        ),
        ({"ssl__enabled__protocols": "TLSv1.2,SSLv3"}, "ssl.enabled.protocols has SSLv3"),
        ({"ssl__enabled__protocols": "", "ssl__protocol": "SSL"}, "ssl.protocol=SSL"),
        ({"ssl__cipher__suites": "TLS_NULL_WITH_NULL_NULL"}, "ssl.cipher.suites"),
        (
            {"ssl__cipher__suites": "TLS_RSA_WITH_AES_128_CBC_SHA,TLS_X_WITH_Y"},
            "TLS_X_WITH_Y",
        ),
        ({"ssl__cipher__suites": "TLS_AES_256_GCM_SHA384"}, "all three"),
        (
            {
                "ssl__cipher__suites": "TLS_RSA_WITH_AES_128_CBC_SHA",
                "ssl__enabled__protocols": "TLSv1.3",
            },
            "nothing in common",
        ),
        ({"ssl__endpoint__identification__algorithm": "ldaps"}, "must be https"),
    ]


def test_what_cannot_be_used_is_reported_in_a_sentence(files, tmp_path):
    for settings, expected in refused(files=files, tmp_path=tmp_path):
        with pytest.raises(TlsError) as refusal:
            context(**{name.replace(".", "__"): value for name, value in settings.items()})
        assert expected in str(refusal.value), settings
        assert str(refusal.value).endswith("."), settings
        assert "PRIVATE KEY-----\n" not in str(refusal.value), settings


def test_secrets_do_not_show_in_what_holds_them(files):
    settings = tls_settings_of(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": files.client_keystore,
            "ssl.key.password": "s3cret",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": files.ca,
        }
    )
    store = read_key_store(settings, read)
    assert "s3cret" not in repr(settings) + repr(store) + repr(read_trust_store(settings, read))
    assert "PRIVATE" not in repr(store)
