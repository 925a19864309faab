"""The authorizer that a broker's settings name, and how it decides about requests."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from ...config.broker_config import AUTHORIZER_SETTINGS
from ...config.definition import ConfigError
from .authorization import Authorizations, AuthorizeSomewhere, IsBroker

if TYPE_CHECKING:
    from ...config.broker_config import BrokerConfig
    from ...runtime.steps import Steps
    from ...security.authorizer.acl_authorizer import AclAuthorizer
    from ...security.authorizer.python_authorizer import PythonAuthorizer
    from .requests import Request

KAFKAS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""Kafka's authorizers, of KRaft and of ZooKeeper's time; both mean ours."""


def authorizer_of(config: BrokerConfig) -> AclAuthorizer | PythonAuthorizer | None:
    """The authorizer of `authorizer.class.name`; None where it is empty.

    Raises:
        ConfigError: there is none of that name, or its settings cannot be used.
    """
    name = config["authorizer.class.name"]
    if not name:
        _require_no_rules(config, "without an authorizer")
        return None
    if name not in KAFKAS:
        return _python_authorizer(config, name)
    from ...security.authorizer.acl_authorizer import AclAuthorizer

    allows = config.static.get("allow.everyone.if.no.acl.found", "false").strip().lower()
    if allows not in ("true", "false"):
        raise ConfigError(f"allow.everyone.if.no.acl.found={allows} must be true or false.")
    return AclAuthorizer(_super_users(config), allows_without_acl=allows == "true")


def _python_authorizer(config: BrokerConfig, name: str) -> PythonAuthorizer:
    from ...security.authorizer.python_authorizer import find_authorizer

    try:
        found = find_authorizer(name, config.static)
    except ValueError as error:
        raise ConfigError(
            f"authorizer.class.name={name} cannot be used: it is none of {', '.join(KAFKAS)}, and "
            f"{error}."
        ) from error
    _require_no_rules(config, f"with the authorizer {name}, which decides by itself")
    return found


def _require_no_rules(config: BrokerConfig, where: str) -> None:
    for setting in sorted(AUTHORIZER_SETTINGS):
        if setting in config.static:
            raise ConfigError(
                f"{setting} has no effect {where}: set authorizer.class.name to {KAFKAS[0]}, or "
                "leave it out."
            )


def _super_users(config: BrokerConfig) -> list[str]:
    users = [each.strip() for each in config.static.get("super.users", "").split(";")]
    for user in filter(None, users):
        kind, colon, name = user.partition(":")
        if not (kind and colon and name):
            raise ConfigError(
                f"super.users: {user!r} cannot be used: expected User:NAME, several of them with "
                "semicolons between."
            )
    return [user for user in users if user]


def by_authorizer(
    authorizer: AclAuthorizer | PythonAuthorizer, is_broker: IsBroker
) -> tuple[Authorizations, AuthorizeSomewhere]:
    """How an authorizer decides, which is logged as Kafka does.

    A broker of the cluster that has proven itself needs none to act as one: where it logs in over a
    listener without authentication, there is no principal that an ACL could name.
    """
    from ...security.authorizer.acl_authorizer import audit, audit_log

    if audit_log.level == logging.NOTSET:
        audit_log.setLevel(logging.INFO)  # what is refused is for operators, however quiet the rest

    def authorize(
        request: Request[object],
        operation: str,
        resource_type: str,
        resource_name: str,
        /,
        *,
        log_if_allowed: bool = True,
        log_if_denied: bool = True,
    ) -> bool:
        connection = request.connection
        who = (connection.principal, connection.peer_host)
        decision = authorizer.decide(*who, operation, resource_type, resource_name)
        if not decision.is_allowed and operation == "CLUSTER_ACTION" and is_broker(connection):
            return True
        if log_if_allowed if decision.is_allowed else log_if_denied:
            audit(decision, who, operation, (resource_type, resource_name), request.route.name)
        return decision.is_allowed

    def authorize_somewhere(
        request: Request[object], operation: str, resource_type: str
    ) -> Steps[bool]:
        connection = request.connection
        return authorizer.may_somewhere(
            connection.principal, connection.peer_host, operation, resource_type
        )

    return authorize, authorize_somewhere
