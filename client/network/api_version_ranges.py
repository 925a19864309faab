"""Which version of an API to speak with a broker: what it serves and we have a schema for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.codec.versions import format_versions
from ..errors import UnsupportedByBrokerError

if TYPE_CHECKING:
    from ...protocol.messages import ApiVersionsResponse


class ApiVersionRanges:
    """The versions that one broker serves.

    Args:
        ranges: by API key.
    """

    __slots__ = ("_ranges",)

    def __init__(self, ranges: Mapping[int, range]) -> None:
        self._ranges = ranges

    @classmethod
    def of(cls, response: ApiVersionsResponse) -> ApiVersionRanges:
        """What a broker answered to ApiVersions."""
        return cls(
            {api.api_key: range(api.min_version, api.max_version + 1) for api in response.api_keys}
        )

    @classmethod
    def fixed(cls, versions: Mapping[int, int]) -> ApiVersionRanges:
        """Versions agreed upon elsewhere, such as those between brokers of one release."""
        return cls({key: range(version, version + 1) for key, version in versions.items()})

    def served(self, api_key: int) -> range:
        """What the broker serves of an API; empty: nothing."""
        return self._ranges.get(api_key, range(0))

    def usable(
        self, api_key: int, *, version: int | None = None, version_max: int | None = None
    ) -> int:
        """The newest version that both sides have.

        Args:
            api_key: which API.
            version: this one and no other.
            version_max: none newer than this.

        Raises:
            UnsupportedByBrokerError: there is none.
        """
        ours = messages.request_message(api_key).versions
        served = self.served(api_key)
        first = max(ours.start, served.start)
        last = min(ours.stop, served.stop) - 1
        if version is not None:
            first, last = max(first, version), min(last, version)
        if version_max is not None:
            last = min(last, version_max)
        if first > last:
            requested = ours
            if version is not None:
                requested = range(version, version + 1)
            elif version_max is not None:
                requested = range(ours.start, version_max + 1)
            raise UnsupportedByBrokerError(
                f"the broker serves {ApiKey(api_key).name} at versions "
                f"{format_versions(served)}, and needed is one of {format_versions(requested)}"
            )
        return last
