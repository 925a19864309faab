"""Secrets as Kafka 3.9 keeps them in the metadata store: encrypted, and readable on both sides.

The form is that of Kafka's EncryptingPasswordEncoder: `key:value` pairs with commas between them,
which say how the key was derived from `password.encoder.secret` and how it encrypts. What was
encoded under one set of `password.encoder.*` can be read under another, if the secret is the same.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final, NamedTuple

from ..config.definition import ConfigError, ConfigValues
from ..runtime.rng import random_secret

KEY_FACTORIES: Final = {
    "PBKDF2WithHmacSHA512": "sha512",
    "PBKDF2WithHmacSHA384": "sha384",
    "PBKDF2WithHmacSHA256": "sha256",
    "PBKDF2WithHmacSHA224": "sha224",
    "PBKDF2WithHmacSHA1": "sha1",
}
"""Java's names of what derives a key, the default first, and the hash of each."""

CBC, GCM = "AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"
KEY_LENGTHS: Final = (128, 192, 256)
"""Bits that a key of AES can have."""

SALT_BYTES: Final = 256
BLOCK_BYTES: Final = 16
GCM_VECTOR_BYTES: Final = 12
GCM_TAG_BITS: Final = 128


class UndecodablePassword(ValueError):
    """It was encoded under another secret, or is no encoded password."""


class PasswordEncoder(NamedTuple):
    """Encrypts secrets for the metadata store, and decrypts them.

    Attributes:
        secret: what the keys are derived from.
        key_factory_algorithm: Java's name of how.
        cipher_algorithm: Java's name of the cipher.
        key_length: bits of the keys.
        iterations: how often the secret is hashed for a key.
    """

    secret: str
    key_factory_algorithm: str
    cipher_algorithm: str
    key_length: int
    iterations: int

    def __repr__(self) -> str:
        """How it encodes; not the secret."""
        return f"PasswordEncoder({self.cipher_algorithm}, {self.key_factory_algorithm})"

    def encode(self, password: str) -> str:
        """A secret as the store keeps it. It takes milliseconds."""
        salt = random_secret(SALT_BYTES)
        key = self._key(self.key_factory_algorithm, salt, self.iterations, self.key_length)
        is_gcm = self.cipher_algorithm == GCM
        vector = random_secret(GCM_VECTOR_BYTES if is_gcm else BLOCK_BYTES)
        fields: dict[str, object] = {
            "keyFactoryAlgorithm": self.key_factory_algorithm,
            "cipherAlgorithm": self.cipher_algorithm,
            "keyLength": self.key_length,
            "salt": _base64(salt),
            "iterations": self.iterations,
            "encryptedPassword": _base64(
                _encrypt(self.cipher_algorithm, key, vector, password.encode())
            ),
            "passwordLength": _java_length(password),
            "initializationVector": _base64(vector),
        }
        if is_gcm:
            fields["authenticationTagLength"] = GCM_TAG_BITS
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, encoded: str) -> str:
        """The secret in what the store keeps. It takes milliseconds.

        Raises:
            UndecodablePassword: see there.
        """
        fields = _fields(encoded)
        try:
            cipher = fields["cipherAlgorithm"]
            if cipher not in (CBC, GCM) or int(fields["keyLength"]) not in KEY_LENGTHS:
                raise ValueError
            key = self._key(
                fields["keyFactoryAlgorithm"],
                base64.b64decode(fields["salt"], validate=True),
                int(fields["iterations"]),
                int(fields["keyLength"]),
            )
            vector = base64.b64decode(fields["initializationVector"], validate=True)
            encrypted = base64.b64decode(fields["encryptedPassword"], validate=True)
            password = _decrypt(cipher, key, vector, encrypted).decode()
            if _java_length(password) != int(fields["passwordLength"]):
                raise ValueError
        except (KeyError, ValueError, OverflowError):
            # Not from it: what stands there says nothing, and may hold what was decrypted.
            raise UndecodablePassword("Password could not be decoded") from None
        return password

    def _key(self, key_factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
        """Raises: KeyError, ValueError, OverflowError."""
        digest = KEY_FACTORIES[key_factory]
        return hashlib.pbkdf2_hmac(digest, self.secret.encode(), salt, iterations, bits // 8)


def password_encoder(config: ConfigValues, secret_name: str) -> PasswordEncoder | None:
    """The encoder under one of a broker's two secrets; None where that is not set.

    Args:
        config: the broker's settings.
        secret_name: `password.encoder.secret` or `password.encoder.old.secret`.

    Raises:
        ConfigError: `password.encoder.*` names what is not supported, or a package is missing.
    """
    secret = config[secret_name]
    if secret is None:
        return None
    if not secret:
        raise ConfigError(f"{secret_name} is empty: leave it out, or give it a value.")
    key_factory = config["password.encoder.keyfactory.algorithm"] or next(iter(KEY_FACTORIES))
    cipher, bits = (
        config["password.encoder.cipher.algorithm"],
        config["password.encoder.key.length"],
    )
    if key_factory not in KEY_FACTORIES:
        raise ConfigError(
            f"password.encoder.keyfactory.algorithm={key_factory} is not supported: set it to one "
            f"of {', '.join(KEY_FACTORIES)}."
        )
    if cipher not in (CBC, GCM):
        raise ConfigError(
            f"password.encoder.cipher.algorithm={cipher} is not supported: set it to {CBC} or "
            f"{GCM}."
        )
    if bits not in KEY_LENGTHS:
        raise ConfigError(
            f"password.encoder.key.length={bits} cannot be used with {cipher}: it must be one of "
            f"{', '.join(map(str, KEY_LENGTHS))}."
        )
    try:
        import cryptography  # noqa: F401  # only whether it is there; ciphers are imported when used
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{secret_name} needs the package cryptography: install odradek[passwords]."
        ) from error
    return PasswordEncoder(
        secret.secret, key_factory, cipher, bits, config["password.encoder.iterations"]
    )


def _encrypt(cipher: str, key: bytes, vector: bytes, password: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes

    if cipher == GCM:
        return aead.AESGCM(key).encrypt(vector, password, None)
    padding = BLOCK_BYTES - len(password) % BLOCK_BYTES  # PKCS#7: as many bytes as are missing
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    return encryptor.update(password + bytes([padding]) * padding) + encryptor.finalize()


def _decrypt(cipher: str, key: bytes, vector: bytes, encrypted: bytes) -> bytes:
    """Raises: ValueError."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, aead, algorithms, modes

    if cipher == GCM:
        try:
            return aead.AESGCM(key).decrypt(vector, encrypted, None)
        except InvalidTag as error:
            raise ValueError from error
    decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    padded = decryptor.update(encrypted) + decryptor.finalize()
    padding = padded[-1] if padded else 0
    if not 1 <= padding <= BLOCK_BYTES or padded[-padding:] != bytes([padding]) * padding:
        raise ValueError
    return padded[:-padding]


def _fields(encoded: str) -> dict[str, str]:
    """As Kafka's Csv.parseCsvMap reads them: what stands before the last colon is the name."""
    found = {}
    for pair in encoded.split(","):
        name, _, value = pair.rpartition(":")
        found[name.strip()] = value.strip()
    return found


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _java_length(text: str) -> int:
    """As Java counts: a character beyond the first 65,536 is two."""
    return len(text.encode("utf-16-le")) // 2
