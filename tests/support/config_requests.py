"""Settings asked for and changed over a raw connection: also what client libraries refuse to
send, such as a change for all brokers."""

from __future__ import annotations

from collections.abc import Sequence

from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

from .config_cases import Change
from .raw_connection import RawConnection


def alter_configs(
    connection: RawConnection, kind: int, name: str, changes: Sequence[Change]
) -> int:
    """Change one resource; returns the error code."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    resource.AlterableConfig(
                        name=change[0],
                        config_operation=change[1],
                        value=change[2] if len(change) == 3 else None,
                    )
                    for change in changes
                ],
            )
        ],
        validate_only=False,
    )
    response = connection.ask(request, IncrementalAlterConfigsResponse, 1)
    (answer,) = response.responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return int(answer.error_code)


def describe_config(
    connection: RawConnection, kind: int, name: str, key: str
) -> tuple[str | None, int] | None:
    """One setting's value and source; None where it is not told."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[resource(resource_type=kind, resource_name=name, configuration_keys=[key])],
        include_synonyms=False,
        include_documentation=False,
    )
    (answer,) = connection.ask(request, DescribeConfigsResponse, 4).results
    assert answer.error_code == 0
    return next(((entry.value, entry.config_source) for entry in answer.configs), None)
