"""Where a Kerberos principal's key or tickets are, by Kafka's settings.

The options are those of Java's Krb5LoginModule, as far as they mean something here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

SERVICE_NAME: Final = "sasl.kerberos.service.name"


class KerberosLogin(NamedTuple):
    """Who logs in, and what by.

    Attributes:
        principal: without a realm it is of the default one; None: whom the tickets are of.
        keytab: the file of its keys; None: tickets that are there are used.
        ticket_cache: of these tickets; None: the default one (`KRB5CCNAME`).
    """

    principal: str | None
    keytab: str | None
    ticket_cache: str | None = None


def login_of(options: Mapping[str, str]) -> KerberosLogin:
    """The login that a JAAS entry describes.

    Raises:
        ValueError: it names neither keys nor tickets.
    """
    principal = options.get("principal")
    if _is_true(options, "useKeyTab"):
        keytab = options.get("keyTab")
        if keytab is None:
            raise ValueError("useKeyTab=true needs keyTab, the file of the keys")
        if principal is None:
            raise ValueError("useKeyTab=true needs principal, whose keys are in the file")
        return KerberosLogin(principal, keytab)
    if _is_true(options, "useTicketCache"):
        return KerberosLogin(principal, None, options.get("ticketCache"))
    raise ValueError("it has neither useKeyTab=true nor useTicketCache=true")


def service_name_of(options: Mapping[str, str], setting: str | None) -> str:
    """The name that brokers run under, from the JAAS entry or from `sasl.kerberos.service.name`.

    Raises:
        ValueError: neither has one, or they differ (Kafka's KerberosLogin).
    """
    option = options.get("serviceName")
    if option is not None and setting is not None and option != setting:
        raise ValueError(f"serviceName={option} is not {SERVICE_NAME}={setting}")
    found = option or setting
    if not found:
        raise ValueError(f"no service name is set: set {SERVICE_NAME}")
    return found


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"
