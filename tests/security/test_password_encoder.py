"""Secrets for the metadata store: who can read them, and which settings are refused.

That Kafka reads them and we read Kafka's is in tests/interop/test_encoded_passwords.py.
"""

from __future__ import annotations

import pytest

from odradek.broker.dynamic_config.stored_passwords import StoredPasswords
from odradek.config.broker_config import BrokerConfig
from odradek.config.definition import ConfigError
from odradek.security.password_encoder import CBC, GCM, PasswordEncoder, UndecodablePassword

SECRET = "encoder-secret"
FACTORY = "PBKDF2WithHmacSHA256"
ENCODERS = [PasswordEncoder(SECRET, FACTORY, cipher, 128, 1024) for cipher in (CBC, GCM)]


@pytest.fixture(params=ENCODERS, ids=repr)
def encoder(request: pytest.FixtureRequest) -> PasswordEncoder:
    found = request.param
    assert isinstance(found, PasswordEncoder)
    return found


def test_only_the_secret_reads_a_password(encoder: PasswordEncoder) -> None:
    encoded = encoder.encode("hunter2")
    assert encoder.decode(encoded) == "hunter2"
    assert encoder.encode("hunter2") != encoded
    with pytest.raises(UndecodablePassword) as refusal:
        encoder._replace(secret="another").decode(encoded)
    assert "hunter2" not in f"{encoded} {refusal.value!r} {refusal.value.__context__!r}"


def changed(encoded: str, name: str, value: str) -> str:
    fields = dict(pair.split(":") for pair in encoded.split(","))
    assert name in fields
    return ",".join(f"{key}:{value if key == name else text}" for key, text in fields.items())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keyFactoryAlgorithm", "PBKDF2WithHmacMD5"),
        ("cipherAlgorithm", "DES/CBC/PKCS5Padding"),
        ("keyLength", "64"),
        ("keyLength", "many"),
        ("salt", "???"),
        ("iterations", "0"),
        ("iterations", "-1"),
        ("iterations", "9" * 30),
        ("encryptedPassword", ""),
        ("encryptedPassword", "AAAA"),
        ("passwordLength", "8"),
        ("initializationVector", ""),
        ("initializationVector", "AAAA"),
    ],
)
def test_malformed_one_is_not_a_password(encoder: PasswordEncoder, name: str, value: str) -> None:
    encoded = encoder.encode("hunter2")
    assert encoder.decode(changed(encoded, "iterations", "1024")) == "hunter2"
    with pytest.raises(UndecodablePassword):
        encoder.decode(changed(encoded, name, value))


@pytest.mark.parametrize("text", ["", "hunter2", ",", ":", "a:b,c", "keyLength:128"])
def test_plain_text_is_not_an_encoded_password(encoder: PasswordEncoder, text: str) -> None:
    with pytest.raises(UndecodablePassword):
        encoder.decode(text)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"secret": ""}, r"password\.encoder\.secret is empty"),
        ({"secret": "s", "cipher.algorithm": "AES/ECB/NoPadding"}, "is not supported: set it to"),
        ({"secret": "s", "keyfactory.algorithm": "PBKDF2"}, "PBKDF2 is not supported"),
        ({"secret": "s", "key.length": "127"}, "must be one of 128, 192, 256"),
        ({"secret": "s", "iterations": "1023"}, "Value must be at least 1024"),
        ({"old.secret": "s"}, r"password\.encoder\.secret is not"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, str], sentence: str) -> None:
    texts = {f"password.encoder.{name}": text for name, text in settings.items()}
    with pytest.raises(ConfigError, match=sentence):
        StoredPasswords.of(BrokerConfig.from_sources(texts))


def test_settings_shape_what_is_encoded() -> None:
    texts = {"password.encoder.secret": SECRET, "password.encoder.cipher.algorithm": GCM}
    passwords = StoredPasswords.of(BrokerConfig.from_sources(texts))
    assert passwords.encoder == PasswordEncoder(SECRET, "PBKDF2WithHmacSHA512", GCM, 128, 4096)
    assert SECRET not in repr(passwords)
