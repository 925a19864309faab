"""The client's half of SASL GSSAPI (RFC 4752), by MIT Kerberos. Needs `odradek[kerberos]`."""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

from gssapi import Credentials, MechType, Name, NameType, RequirementFlag, SecurityContext
from gssapi.exceptions import GSSError, MissingCredentialsError

from ...protocol.sasl.errors import SaslError
from ...protocol.sasl.gssapi import MECHANISM, NO_LAYER, SecurityLayers
from ...runtime.offload import run_in_abandoned_thread
from ..errors import AuthenticationError
from ..network.connection import Authenticate, Connection
from .kerberos_login import KerberosLogin
from .sasl_steps import handshake, send_token

FLAGS: Final = RequirementFlag.mutual_authentication | RequirementFlag.integrity
"""The broker has to prove in turn that it has the service's key."""

_LOCK: Final = Lock()
"""One thread gets the tickets of a principal, and the others find them."""


class NoTicketError(Exception):
    """There is no ticket for the broker; the text says why."""


class GssContext(SecurityContext):  # type: ignore[misc]  # the package has no types
    """A security context that raises an error where it occurs, and sends the other side none."""

    __DEFER_STEP_ERRORS__ = False


def sasl_gssapi(service_name: str, login: KerberosLogin) -> Authenticate:
    """Authentication by a Kerberos ticket for the broker, to be given as `authenticate`.

    Args:
        service_name: the first component of the brokers' principals, such as "kafka"; the second is
            the host that a connection is to.
        login: whose ticket.
    """
    tickets = Tickets(login)

    async def authenticate(connection: Connection) -> None:
        service = f"{service_name}@{connection.host}"
        await handshake(connection, MECHANISM)
        try:
            # The centre that issues tickets may be slow, and files may be.
            initiator = Initiator(tickets, service)
            token = await run_in_abandoned_thread(initiator.begin)
            while not initiator.is_complete:
                token = initiator.step(await send_token(connection, token))
            layers = await send_token(connection, token)
            await send_token(connection, initiator.choose_no_layer(layers))
        except (GSSError, NoTicketError) as error:
            raise AuthenticationError(
                f"no login to {connection.peer} by Kerberos as {service}: {reason_of(error)}"
            ) from error
        except SaslError as error:
            raise AuthenticationError(
                f"{connection.peer} cannot be trusted with {MECHANISM}: {error}"
            ) from error

    return authenticate


class Tickets:
    """What a principal shows: tickets that are there, or got by its keys and renewed in time.

    Args:
        login: whose.
    """

    def __init__(self, login: KerberosLogin) -> None:
        self._login = login

    def credentials(self) -> Any:
        """Those of now; it may wait for files and for the network. Raises: GSSError."""
        principal, keytab, cache = self._login
        store = {} if cache is None else {"ccache": cache}
        if keytab is not None:
            # In memory: a file would be another program's, too.
            store = {"client_keytab": keytab, "ccache": f"MEMORY:odradek {principal} {keytab}"}
        name = None if principal is None else Name(principal, NameType.kerberos_principal)
        kerberos = [MechType.kerberos]
        try:
            with _LOCK:
                return Credentials(name=name, usage="initiate", mechs=kerberos, store=store or None)
        except MissingCredentialsError:
            if keytab is not None:  # whether the keys are there is said more clearly here
                Credentials(name=name, usage="accept", mechs=kerberos, store={"keytab": keytab})
            raise


class Initiator:
    """One login.

    Args:
        tickets: of the client.
        service: of the broker, as service@host.
    """

    def __init__(self, tickets: Tickets, service: str) -> None:
        self._tickets = tickets
        self._service = service
        self._context: Any = None

    @property
    def is_complete(self) -> bool:
        """Whether both sides are known to each other."""
        return bool(self._context.complete)

    def begin(self) -> bytes:
        """The first token; it may wait for files and for the network. Raises: NoTicketError."""
        try:
            self._context = GssContext(
                name=Name(self._service, NameType.hostbased_service),
                creds=self._tickets.credentials(),
                usage="initiate",
                mech=MechType.kerberos,
                flags=FLAGS,
            )
            return self.step(None)
        except GSSError as error:  # its text is known in this thread only
            raise NoTicketError(reason_of(error)) from error

    def step(self, token: bytes | None) -> bytes:
        """Take the broker's token; returns the next one. Raises: GSSError."""
        return bytes(self._context.step(token) or b"")

    def choose_no_layer(self, offer: bytes) -> bytes:
        """Take what layers the broker offers; returns that none is used.

        Raises:
            GSSError: the broker has not wrapped it.
            SaslError: the broker demands a layer.
        """
        layers = SecurityLayers.decode(self._context.unwrap(offer).message).layers
        if not layers & NO_LAYER:
            raise SaslError("it demands a security layer, which Kafka does not use")
        return bytes(self._context.wrap(SecurityLayers().encode(), False).message)


def reason_of(error: Exception) -> str:
    """What Kerberos says of an error, without its numbers."""
    if not isinstance(error, GSSError):
        return str(error)
    code, is_major = (error.min_code, False) if error.min_code else (error.maj_code, True)
    return ": ".join(str(each) for each in error.get_all_statuses(code, is_major))
