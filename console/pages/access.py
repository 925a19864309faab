"""Who may do what, and how much of it: ACLs, users with passwords, quotas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from ...client.admin.acl_admin import AclAdmin
from ...client.admin.admin import CLIENT_QUOTAS
from ...client.admin.scram_admin import ScramAdmin
from ...common.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    camel,
    parse_principal,
)
from ...protocol.sasl.scram import ITERATIONS_MAX, ITERATIONS_MIN, SCRAM_MECHANISMS, is_user_name
from ..cluster.gathering import gather_what_answers
from ..context import ANSWER_MS_MAX, ConsoleContext, context_of
from ..explaining import explain
from ..forms import done, read_form
from ..paging import page_of
from ..parameters import ParameterError, Parameters

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

ALL_ACLS = AclFilter(
    ResourceType.ANY, PatternType.ANY, None, None, None, Operation.ANY, Permission.ANY
)
RESOURCE_TYPES: Final = {camel(each): each for each in ResourceType if each is not ResourceType.ANY}
PATTERN_TYPES: Final = {camel(each): each for each in (PatternType.LITERAL, PatternType.PREFIXED)}
OPERATIONS: Final = {camel(each): each for each in Operation if each is not Operation.ANY}
PERMISSIONS: Final = {camel(each): each for each in (Permission.ALLOW, Permission.DENY)}
"""By Kafka's names; the first of each is what an empty field means."""
MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
ENTITIES: Final = {"user": "User", "client-id": "Client id", "ip": "Address"}
"""Whose quotas there are: Kafka's entity types, and what forms call them."""


async def show(request: Request) -> Response:
    """The page: each part for itself, for a login may see one and not another."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    text = parameters.text("search").strip().lower()
    acls, users, quotas = await gather_what_answers(
        lambda: _acls(context).describe(ALL_ACLS),
        lambda: _users(context).describe(),
        lambda: context.admin.describe_client_quotas(),
    )
    failures = {
        name: explain(answer, context.settings.cluster)
        for name, answer in (("acls", acls), ("users", users), ("quotas", quotas))
        if isinstance(answer, Exception)
    }
    found = [] if isinstance(acls, Exception) else [each for each in acls if _has(each, text)]
    return context.render.page(
        request,
        "access.html",
        section="access",
        title="Access",
        search=text,
        page=page_of(found, parameters.number("page", 1, 1)),
        users={} if isinstance(users, Exception) else users,
        quotas=[] if isinstance(quotas, Exception) else quotas,
        failures=failures,
        camel=camel,
        resource_types=tuple(RESOURCE_TYPES),
        operations=tuple(OPERATIONS),
        mechanisms=MECHANISMS,
        iterations=(ITERATIONS_MIN, ITERATIONS_MAX),
        entities=ENTITIES,
        client_quotas=CLIENT_QUOTAS,
    )


def _has(acl: AclBinding, text: str) -> bool:
    return text in acl.entry.principal.lower() or text in acl.pattern.name.lower()


async def add_acl(request: Request) -> Response:
    """Add an ACL."""
    form = await read_form(request)
    await _acls(context_of(request)).create([acl_of(form)])
    return done("/access")


async def remove_acl(request: Request) -> Response:
    """Remove just the ACL that a form names."""
    form = await read_form(request)
    await _acls(context_of(request)).delete([_only(acl_of(form))])
    return done("/access")


def acl_of(form: Parameters) -> AclBinding:
    """The ACL that a form names. Raises ParameterError."""
    kind = RESOURCE_TYPES[form.choice("resource", tuple(RESOURCE_TYPES))]
    is_cluster = kind is ResourceType.CLUSTER
    pattern = PATTERN_TYPES[form.choice("pattern", tuple(PATTERN_TYPES))]
    try:
        principal = parse_principal(form.text("principal").strip())
    except ValueError as error:
        raise ParameterError(str(error)) from error
    return AclBinding(
        ResourcePattern(
            kind,
            # The cluster has just the one name.
            PatternType.LITERAL if is_cluster else pattern,
            CLUSTER_NAME if is_cluster else form.required("name", 40_000),
        ),
        AclEntry(
            principal,
            form.text("host").strip() or WILDCARD,
            OPERATIONS[form.choice("operation", tuple(OPERATIONS))],
            PERMISSIONS[form.choice("permission", tuple(PERMISSIONS))],
        ),
    )


def _only(acl: AclBinding) -> AclFilter:
    (resource_type, pattern_type, name), (principal, host, operation, permission) = acl
    return AclFilter(resource_type, pattern_type, name, principal, host, operation, permission)


async def set_password(request: Request) -> Response:
    """Add a user who logs in by SCRAM, or give one another password."""
    form = await read_form(request)
    user, password = form.required("user"), form.required("password")
    if not is_user_name(user):
        raise ParameterError("a user of SCRAM has a name of ASCII characters")
    await _users(context_of(request)).set_password(
        user,
        password,
        form.choice("mechanism", MECHANISMS),
        form.number("iterations", ITERATIONS_MIN, ITERATIONS_MIN, ITERATIONS_MAX),
    )
    return done("/access#users-title")


async def remove_user(request: Request) -> Response:
    """Have a user log in by one mechanism no more."""
    form = await read_form(request)
    mechanism = form.choice("mechanism", tuple(SCRAM_MECHANISMS))
    await _users(context_of(request)).remove(form.required("user", 40_000), mechanism)
    return done("/access#users-title")


async def set_quota(request: Request) -> Response:
    """Set one quota of a user, a client id, both together, or an address; or remove it."""
    form = await read_form(request)
    key = form.choice("quota", tuple(CLIENT_QUOTAS))
    value = None if form.flag("remove") else quota_of(form)
    await context_of(request).admin.alter_client_quotas(entity_of(form), {key: value})
    return done("/access#quotas-title")


def entity_of(form: Parameters) -> dict[str, str | None]:
    """Whose quota a form is about; None as a name: all that have none of their own.

    Raises:
        ParameterError: nobody's, or of an address together with others.
    """
    entity: dict[str, str | None] = {}
    for kind in ENTITIES:
        name, is_default = form.text(kind, length_max=40_000), form.flag(f"{kind}-default")
        if name and is_default:
            raise ParameterError(f"give a {kind}, or choose the default of all, not both")
        if name or is_default:
            entity[kind] = name or None
    if not entity:
        raise ParameterError("say whose quota it is: a user's, a client id's or an address's")
    if "ip" in entity and len(entity) > 1:
        raise ParameterError("an address has quotas of its own: leave out user and client id")
    return entity


def quota_of(form: Parameters) -> float:
    """The value of a quota. Raises ParameterError."""
    text = form.required("value", 40).strip()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise ParameterError(f"a quota is a number, such as 1048576, not {text!r}")
    return value


def _acls(context: ConsoleContext) -> AclAdmin:
    return AclAdmin(context.client, ANSWER_MS_MAX)


def _users(context: ConsoleContext) -> ScramAdmin:
    return ScramAdmin(context.client, ANSWER_MS_MAX)


ROUTES = [
    Route("/access", show, methods=["GET"]),
    Route("/access/acls", add_acl, methods=["POST"]),
    Route("/access/acls/remove", remove_acl, methods=["POST"]),
    Route("/access/users", set_password, methods=["POST"]),
    Route("/access/users/remove", remove_user, methods=["POST"]),
    Route("/access/quotas", set_quota, methods=["POST"]),
]
