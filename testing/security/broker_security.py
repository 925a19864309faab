"""The settings of a broker that clients log in to, or that goes by ACLs."""

from __future__ import annotations

import json
import re
import secrets

from ...client.security.jaas import LOGIN_MODULES, format_jaas, parse_jaas
from ..client_settings import Sasl, User, security_protocol
from ..process.secret_settings import ADD_SCRAM

PLAIN = "PLAIN"
MECHANISMS = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512")
ADMIN = "admin"
ACL_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN}",
}


OF_OTHERS = {
    "GSSAPI": "tickets are a KDC's, and there is none beside a test's broker",
    "OAUTHBEARER": "tokens are an identity provider's, and there is none beside a test's broker",
}
"""Mechanisms whose users a broker does not have itself, so that no test could add one to it."""


def require_mechanism(mechanism: object) -> str:
    """The mechanism by which clients log in to a broker for tests.

    Raises:
        ValueError: there is no such mechanism, or none whose users such a broker could have.
    """
    if mechanism in MECHANISMS:
        return str(mechanism)
    reason = OF_OTHERS.get(str(mechanism))
    if reason is None:
        raise ValueError(f"sasl={mechanism!r} is none of {', '.join(MECHANISMS)}")
    raise ValueError(
        f"sasl={mechanism!r} cannot be had: {reason}; give the broker the settings of your own,"
        f" sasl.enabled.mechanisms={mechanism} and so on, as docs/security.md has them"
    )


def make_sasl(mechanism: str) -> Sasl:
    """A mechanism, and an administrator with a password that nobody has had yet.

    Raises:
        ValueError: there is no such mechanism.
    """
    return Sasl(require_mechanism(mechanism), User(ADMIN, secrets.token_urlsafe()))


def jaas_key(mechanism: str, *, tls: bool) -> str:
    """The setting that holds the users of PLAIN, and whom the broker itself logs in as."""
    listener = security_protocol(tls=tls, sasl=True)
    return f"listener.name.{listener}.{mechanism}.sasl.jaas.config".lower()


def sasl_settings(sasl: Sasl, *, tls: bool) -> dict[str, str]:
    """The settings of a broker, all of whose listeners have clients log in so."""
    mechanism, admin = sasl
    options = {"username": admin.name, "password": admin.password}
    settings = {
        "security.inter.broker.protocol": security_protocol(tls=tls, sasl=True),
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.enabled.mechanisms": mechanism,
    }
    if mechanism == PLAIN:
        options[f"user_{admin.name}"] = admin.password
    else:
        settings[ADD_SCRAM] = json.dumps([mechanism, *admin])
    return {
        **settings,
        jaas_key(mechanism, tls=tls): format_jaas(LOGIN_MODULES[mechanism], options),
    }


def with_plain_user(entry: str, name: str, password: str | None) -> str:
    """A JAAS entry of PLAIN with a user, or without if there is no password.

    Raises:
        ValueError: the name cannot stand in a JAAS entry.
    """
    if re.search(r"[\s=;\"'/\\]", name):
        raise ValueError(f"a user of PLAIN cannot be called {name!r}, for it is a word of JAAS")
    module, options = parse_jaas(entry)
    changed = {key: value for key, value in options.items() if key != f"user_{name}"}
    if password is not None:
        changed[f"user_{name}"] = password
    return format_jaas(module, changed)
