"""ApiVersions (18), versions 0-4: what this broker speaks.

Behaviour: lists the registry's advertised ranges. A version that is not served is
answered in version 0 with UNSUPPORTED_VERSION and this API's own range, so that a newer
client can try again (KIP-511).
Version notes: 3 is flexible, names the client's software, and still has response header
version 0; 4 lets features begin at version 0.
Departures from Kafka: no features are listed, since none of Kafka's (metadata.version,
group.version, transaction.version, ...) is in force here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ErrorCode
from .registry import handles

if TYPE_CHECKING:
    from ..broker import Broker
    from ..requests import Request

SOFTWARE_PATTERN = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What a client may call itself and its version (KIP-511)."""


@handles(ApiKey.API_VERSIONS, versions="0-4")
def handle_api_versions(broker: Broker, request: Request) -> messages.ApiVersionsResponse:
    """List the APIs; `request.body` is None for a version that is not served."""
    body: messages.ApiVersionsRequest | None = request.body
    if body is None:
        own_range = [key for key in _advertised(broker) if key.api_key == ApiKey.API_VERSIONS]
        return messages.ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own_range
        )
    if request.api_version >= 3 and not (
        SOFTWARE_PATTERN.fullmatch(body.client_software_name)
        and SOFTWARE_PATTERN.fullmatch(body.client_software_version)
    ):
        return messages.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return messages.ApiVersionsResponse(api_keys=_advertised(broker))


def _advertised(broker: Broker) -> list[messages.ApiVersionsResponse.ApiVersion]:
    return [
        messages.ApiVersionsResponse.ApiVersion(
            api_key=registration.api_key,
            min_version=registration.advertised.start,
            max_version=registration.advertised.stop - 1,
        )
        for registration in broker.dispatcher.registrations.values()
        if registration.advertised is not None
    ]
