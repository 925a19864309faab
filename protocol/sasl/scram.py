"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): a password proven and never sent.

The keys of a password are derived once, by whoever sets it; a broker keeps them as Kafka does
(`org.apache.kafka.common.security.scram.internals.ScramCredentialUtils`). Messages are limited as
in Kafka's ScramMessages: no channel binding, and a client's extensions may follow its nonce.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from .errors import SaslError

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384
"""Kafka's bounds of both mechanisms (ScramMechanism): of what an administrator may set, and of what
a server may have a client compute."""

_SASL_NAME = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_PRINTABLE = r"[!-+\--~]+"
_VALUE = r"[\x01-+\--\x7f]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_RESERVED = rf"(?:m={_VALUE},)?"
_EXTENSIONS = rf"(?P<extensions>(?:,[A-Za-z]+={_VALUE})*)"

_CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_SASL_NAME}))?,"
    rf"(?P<bare>{_RESERVED}n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
)
_SERVER_FIRST = re.compile(
    rf"{_RESERVED}r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}})"
    rf"{_EXTENSIONS}"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


class ScramMechanism(NamedTuple):
    """One of the two.

    Attributes:
        name: as Kafka calls it.
        digest: Python's name of the hash.
        number: in requests that describe and alter credentials (KIP-554).
    """

    name: str
    digest: str
    number: int

    def hmac(self, key: bytes, content: bytes) -> bytes:
        """The keyed hash of the mechanism."""
        return hmac.digest(key, content, self.digest)

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """The slow step: RFC 5802's Hi(), which is PBKDF2."""
        return hashlib.pbkdf2_hmac(self.digest, password.encode(), salt, iterations)

    def credential(self, password: str, salt: bytes, iterations: int) -> ScramCredential:
        """What a server keeps of a password."""
        salted = self.salted_password(password, salt, iterations)
        return self.credential_of_salted(salted, salt, iterations)

    def credential_of_salted(self, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
        """What a server keeps, where somebody else has salted the password (KIP-554)."""
        stored_key = hashlib.new(self.digest, self.hmac(salted, b"Client Key")).digest()
        return ScramCredential(salt, stored_key, self.hmac(salted, b"Server Key"), iterations)


SHA_256: Final = ScramMechanism("SCRAM-SHA-256", "sha256", 1)
SHA_512: Final = ScramMechanism("SCRAM-SHA-512", "sha512", 2)
SCRAM_MECHANISMS: Final[Mapping[str, ScramMechanism]] = {
    each.name: each for each in (SHA_256, SHA_512)
}


def is_user_name(name: str) -> bool:
    """Whether a user may be called so: our messages carry no characters that SASLprep changes."""
    return bool(name) and name.isascii() and "\0" not in name


class ScramCredential(NamedTuple):
    """What a server keeps of a password: enough to check a proof, too little to log in with."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential([hidden], iterations={self.iterations})"

    def encode(self) -> str:
        """As Kafka keeps it in `/config/users` (ScramCredentialUtils)."""
        fields = {"salt": self.salt, "stored_key": self.stored_key, "server_key": self.server_key}
        texts = [f"{name}={_base64(value)}" for name, value in fields.items()]
        return ",".join([*texts, f"iterations={self.iterations}"])

    @classmethod
    def decode(cls, text: str) -> ScramCredential:
        """Read what `encode`, or Kafka, has written.

        Raises:
            SaslError: it is none; the text is not repeated, for it may be a secret.
        """
        fields = dict(field.partition("=")[::2] for field in text.split(","))
        try:
            if len(fields) != len(cls._fields) or text.count(",") != len(cls._fields) - 1:
                raise ValueError
            salt, stored_key, server_key = (_from_base64(fields[name]) for name in cls._fields[:3])
            return cls(salt, stored_key, server_key, int(fields["iterations"]))
        except (KeyError, ValueError):
            raise SaslError("a SCRAM credential cannot be read") from None


class ClientFirst(NamedTuple):
    """Who logs in.

    Attributes:
        username: with commas and equal signs as they are.
        nonce: of the client.
        authorization_id: whom it wants to act as; empty: itself.
        extensions: further attributes, such as `tokenauth` (KIP-48).
    """

    username: str
    nonce: str
    authorization_id: str = ""
    extensions: Mapping[str, str] = {}

    @property
    def bare(self) -> str:
        """The message without its header, as both sides sign it."""
        extensions = "".join(f",{name}={value}" for name, value in self.extensions.items())
        return f"n={_sasl_name(self.username)},r={self.nonce}{extensions}"

    def encode(self) -> bytes:
        """As it is sent."""
        return (self.header + self.bare).encode()

    @property
    def header(self) -> str:
        """Its GS2 header: no channel binding, and the authorization id if there is one."""
        name = f"a={_sasl_name(self.authorization_id)}" if self.authorization_id else ""
        return f"n,{name},"

    @classmethod
    def decode(cls, token: bytes) -> ClientFirst:
        """Read it.

        Raises:
            SaslError: it is not of the form.
        """
        found = _match(_CLIENT_FIRST, token, "client first")
        return cls(
            _plain_name(found["name"]),
            found["nonce"],
            _plain_name(found["authorization_id"] or ""),
            _extensions(found["extensions"]),
        )


class ServerFirst(NamedTuple):
    """How the client has to salt its password; `nonce` is both sides' together."""

    nonce: str
    salt: bytes
    iterations: int

    def encode(self) -> bytes:
        """As it is sent, and signed."""
        return f"r={self.nonce},s={_base64(self.salt)},i={self.iterations}".encode()

    @classmethod
    def decode(cls, token: bytes) -> ServerFirst:
        """Read it.

        Raises:
            SaslError: it is not of the form.
        """
        found = _match(_SERVER_FIRST, token, "server first")
        return cls(found["nonce"], _from_base64(found["salt"]), int(found["iterations"]))


class ClientFinal(NamedTuple):
    """The proof of the password.

    Attributes:
        nonce: both sides' together.
        proof: the client's key, hidden by its signature.
        without_proof: what comes before it, as both sides sign it.
        channel: the GS2 header again.
    """

    nonce: str
    proof: bytes
    without_proof: str
    channel: bytes

    def encode(self) -> bytes:
        """As it is sent."""
        return f"{self.without_proof},p={_base64(self.proof)}".encode()

    @classmethod
    def decode(cls, token: bytes) -> ClientFinal:
        """Read it.

        Raises:
            SaslError: it is not of the form.
        """
        found = _match(_CLIENT_FINAL, token, "client final")
        return cls(
            found["nonce"],
            _from_base64(found["proof"]),
            found["without_proof"],
            _from_base64(found["channel"]),
        )


class ServerFinal(NamedTuple):
    """What the server answers: its own signature, or why it refuses."""

    signature: bytes = b""
    error: str = ""

    def encode(self) -> bytes:
        """As it is sent."""
        return (f"e={self.error}" if self.error else f"v={_base64(self.signature)}").encode()

    @classmethod
    def decode(cls, token: bytes) -> ServerFinal:
        """Read it.

        Raises:
            SaslError: it is not of the form.
        """
        found = _match(_SERVER_FINAL, token, "server final")
        return cls(_from_base64(found["signature"] or ""), found["error"] or "")


class ScramExchange(NamedTuple):
    """The messages that both sides sign: the client's first bare, the server's, the client's last.

    Attributes:
        mechanism: of which the hash is.
        client_first_bare: without its GS2 header, byte for byte as it was sent.
        server_first: likewise.
        without_proof: the client's last message up to its proof.
    """

    mechanism: ScramMechanism
    client_first_bare: str
    server_first: bytes
    without_proof: str

    @property
    def _signed(self) -> bytes:
        return b",".join(
            (self.client_first_bare.encode(), self.server_first, self.without_proof.encode())
        )

    def proof(self, salted_password: bytes) -> bytes:
        """What a client sends to prove that it knows the password."""
        client_key = self.mechanism.hmac(salted_password, b"Client Key")
        stored_key = hashlib.new(self.mechanism.digest, client_key).digest()
        return _xor(client_key, self.mechanism.hmac(stored_key, self._signed))

    def is_proven(self, credential: ScramCredential, proof: bytes) -> bool:
        """Whether a proof is of the password that a credential was made of; in constant time."""
        signature = self.mechanism.hmac(credential.stored_key, self._signed)
        if len(proof) != len(signature):
            return False
        client_key = _xor(signature, proof)
        stored_key = hashlib.new(self.mechanism.digest, client_key).digest()
        return hmac.compare_digest(stored_key, credential.stored_key)

    def server_signature(self, server_key: bytes) -> bytes:
        """What a server sends to prove that it knows the credential."""
        return self.mechanism.hmac(server_key, self._signed)

    def server_signature_of_salted(self, salted_password: bytes) -> bytes:
        """The same, computed by the client."""
        return self.server_signature(self.mechanism.hmac(salted_password, b"Server Key"))


def client_first_bare(token: bytes) -> str:
    """The part of a client's first message that is signed, byte for byte as it was sent.

    Raises:
        SaslError: it is not of the form.
    """
    return str(_match(_CLIENT_FIRST, token, "client first")["bare"])


def _match(pattern: re.Pattern[str], token: bytes, what: str) -> re.Match[str]:
    found = None
    if token.isascii():
        found = pattern.fullmatch(token.decode("ascii"))
    if found is None:
        raise SaslError(f"Invalid SCRAM {what} message format")
    return found


def _sasl_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _plain_name(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _extensions(text: str) -> dict[str, str]:
    return dict(each.split("=", 1) for each in text.split(",")[1:])


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
