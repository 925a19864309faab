"""ApiVersions (18), versions 0-4: what this broker speaks, and what its cluster has finalized.

Behaviour: lists the registry's advertised ranges, the features this broker supports, and the
levels that the cluster has finalized (KIP-584); producers take `transaction.version` from
there (KIP-890). A version that is not served is answered in version 0 with
UNSUPPORTED_VERSION and this API's own range, so that a newer client can try again (KIP-511).
Version notes: 3 is flexible, names the client's software, has features, and still has response
header version 0; before 4, supported features that begin at level 0 are left out, since older
clients cannot read them: that is all of them.
Departures from Kafka: metadata.version, kraft.version and eligible.leader.replicas.version are not
listed, since nothing here goes by them. AlterPartition is listed where Kafka's brokers may be in
the cluster, as a Kafka 3.9 broker lists it.
"""

from __future__ import annotations

import re

from ...common.errors import ErrorCode
from ...metadata.features import SUPPORTED
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ..request.context import HandlerContext
from ..request.outcomes import Answer
from ..request.requests import Request
from .registry import Registration

SOFTWARE_PATTERN = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""What a client may call itself and its version (KIP-511)."""

TELEMETRY = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""Advertised while there is a subscription: clients say in their logs that they have asked for one.
Kafka advertises them where a plug-in takes what is pushed (ClientMetricsReceiverPlugin)."""

FEATURES_SINCE = 3
FEATURES_FROM_ZERO_SINCE = 4


def handle_api_versions(
    context: HandlerContext, request: Request[messages.ApiVersionsRequest | None]
) -> Answer[messages.ApiVersionsResponse]:
    """List the APIs; `request.body` is None for a version that is not served."""
    body = request.body
    if body is None:
        own_range = [key for key in _advertised(context) if key.api_key == ApiKey.API_VERSIONS]
        return Answer(
            messages.ApiVersionsResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own_range
            )
        )
    if request.api_version >= FEATURES_SINCE and not (
        SOFTWARE_PATTERN.fullmatch(body.client_software_name)
        and SOFTWARE_PATTERN.fullmatch(body.client_software_version)
    ):
        return Answer(messages.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
    response = messages.ApiVersionsResponse(api_keys=_advertised(context))
    if request.api_version >= FEATURES_SINCE:
        request.connection.client_software = (
            body.client_software_name,
            body.client_software_version,
        )
        _add_features(context, request.api_version, response)
    if request.connection.authenticator is not None:
        request.connection.authenticator.note_api_versions()
    return Answer(response)


def _add_features(
    context: HandlerContext, version: int, response: messages.ApiVersionsResponse
) -> None:
    make = messages.ApiVersionsResponse
    response.supported_features = [
        make.SupportedFeatureKey(
            name=each.name, min_version=each.min_version, max_version=each.max_version
        )
        for each in SUPPORTED
        if each.min_version > 0 or version >= FEATURES_FROM_ZERO_SINCE
    ]
    response.finalized_features = [
        make.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in context.features.levels.items()
    ]
    response.finalized_features_epoch = context.features.epoch


def _advertised(context: HandlerContext) -> list[messages.ApiVersionsResponse.ApiVersion]:
    return [
        messages.ApiVersionsResponse.ApiVersion(
            api_key=registration.api_key,
            min_version=versions.start,
            max_version=versions.stop - 1,
        )
        for registration in context.registrations.values()
        if (versions := _advertised_versions(context, registration)) is not None
    ]


def _advertised_versions(context: HandlerContext, registration: Registration) -> range | None:
    if registration.api_key in TELEMETRY and not context.client_metrics.overrides:
        return None
    if registration.api_key == ApiKey.ALTER_PARTITION and context.config["zookeeper.connect"]:
        return registration.versions
    return registration.advertised
