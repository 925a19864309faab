"""The verbs that change one node, as transactions of one operation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from .store import ANY_VERSION, Create, Delete, Operation, Result, SetData


class MultiVerbs(ABC):
    """The half of a `MetadataStore` that follows from its `multi`."""

    @abstractmethod
    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations in order, or none. See `MetadataStore.multi`."""

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Make a node and return its path. Raises: see `MetadataStore.create`."""
        (created,) = await self.multi([Create(path, data, ephemeral, sequential)])
        assert isinstance(created, str)
        return created

    async def set(self, path: str, data: bytes, expected_version: int = ANY_VERSION) -> int:
        """Replace a node's data. Raises: see `MetadataStore.set`."""
        (version,) = await self.multi([SetData(path, data, expected_version)])
        assert isinstance(version, int)
        return version

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        """Remove a node. Raises: see `MetadataStore.delete`."""
        await self.multi([Delete(path, expected_version)])
