"""Who may do what, and how much of it: ACLs, users with passwords, quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from ...client.admin.acl_admin import AclAdmin
from ...client.admin.scram_admin import ScramAdmin
from ...common.acl import AclBinding, AclFilter, Operation, PatternType, Permission, ResourceType
from ..cluster.gathering import gather_what_answers
from ..context import ANSWER_MS_MAX, context_of
from ..explaining import explain
from ..paging import page_of
from ..parameters import Parameters

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

ALL_ACLS = AclFilter(
    ResourceType.ANY, PatternType.ANY, None, None, None, Operation.ANY, Permission.ANY
)


async def show(request: Request) -> Response:
    """The page: each part for itself, for a login may see one and not another."""
    context = context_of(request)
    parameters = Parameters(request.query_params)
    text = parameters.text("search").strip().lower()
    acls, users, quotas = await gather_what_answers(
        lambda: AclAdmin(context.client, ANSWER_MS_MAX).describe(ALL_ACLS),
        lambda: ScramAdmin(context.client, ANSWER_MS_MAX).describe(),
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
    )


def _has(acl: AclBinding, text: str) -> bool:
    return text in acl.entry.principal.lower() or text in acl.pattern.name.lower()


ROUTES = [Route("/access", show, methods=["GET"])]
