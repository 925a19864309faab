"""SASL GSSAPI for brokers (RFC 4752), by MIT Kerberos. Needs `odradek[kerberos]`.

The steps are those of the JDK's GssKrb5Server, which Kafka uses; the principal becomes a user by
`sasl.kerberos.principal.to.local.rules`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from gssapi import Credentials, MechType, Name, NameType
from gssapi.exceptions import GSSError

from ...client.security.gssapi import GssContext, reason_of
from ...client.security.kerberos_login import KerberosLogin
from ...protocol.sasl.errors import SaslError
from ...protocol.sasl.gssapi import NO_LAYER, TOKEN_BYTES_MAX, SecurityLayers
from .exchange import Login
from .kerberos_name import KerberosNameError, KerberosShortNamer

logger = logging.getLogger(__name__)


def acceptor(login: KerberosLogin) -> Any:
    """What a broker takes tickets with: the keys of its principal.

    Raises:
        ValueError: the keytab cannot be read, or has no key of the principal.
    """
    try:
        return Credentials(
            name=Name(login.principal, NameType.kerberos_principal),
            usage="accept",
            mechs=[MechType.kerberos],
            store={"keytab": login.keytab},
        )
    except GSSError as error:
        raise ValueError(reason_of(error)) from error


def default_realm() -> str:
    """That of this machine's `krb5.conf`; empty if it has none."""
    try:
        name = Name("nobody", NameType.kerberos_principal).canonicalize(MechType.kerberos)
    except GSSError:
        return ""
    return str(name).rpartition("@")[2]


class GssapiExchange:
    """One login.

    Args:
        credentials: of the broker's principal.
        namer: makes users of principals.
    """

    def __init__(self, credentials: Any, namer: KerberosShortNamer) -> None:
        self.login: Login | None = None
        self._context = GssContext(creds=credentials, usage="accept")
        self._namer = namer
        self._take: Callable[[bytes], bytes] = self._accept

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's next token; see `Exchange`.

        It reads the keytab and writes to the cache that finds replays, so it may block.
        """
        if len(token) > TOKEN_BYTES_MAX:
            raise SaslError(f"a token has {len(token)} bytes, more than {TOKEN_BYTES_MAX}")
        try:
            return self._take(token)
        except GSSError as error:
            raise SaslError(reason_of(error)) from None

    def _accept(self, token: bytes) -> bytes:
        """A ticket, which the broker may have to answer with a proof of its own."""
        answer = self._context.step(token)
        if not self._context.complete:
            return bytes(answer or b"")
        if answer:
            self._take = self._offer
            return bytes(answer)
        return self._offer(b"")

    def _offer(self, token: bytes) -> bytes:
        """Both are known to each other: the broker says that it has no security layer."""
        if token:
            raise SaslError("an empty token is expected before the security layers")
        self._take = self._conclude
        return bytes(self._context.wrap(SecurityLayers().encode(), False).message)

    def _conclude(self, token: bytes) -> bytes:
        """What the client has chosen. Whom it wants to act as does not matter, as in Kafka."""
        chosen = SecurityLayers.decode(self._context.unwrap(token).message)
        if chosen.layers != NO_LAYER:
            raise SaslError(f"the client chose the security layers {chosen.layers:#x}")
        try:
            principal = bytes(self._context.initiator_name).decode()
            self.login = Login(self._namer.short_name(principal))
        except (KerberosNameError, UnicodeDecodeError) as error:
            raise SaslError(str(error)) from None
        logger.info("%s is %s by its ticket", self.login.name, principal)
        return b""
