"""Users of SCRAM in the metadata of a cluster, changed in its folder and not through a broker.

So the first user is made before the first start (`kafka-storage format --add-scram`): brokers that
log in to each other by SCRAM, and an administrator, need one that is there. A broker that runs on
the folder hears of a change like of any other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ...common.errors import KafkaError
from ...metadata_store import znodes
from ...metadata_store.choice import METADATA_FILE
from ...metadata_store.embedded.embedded_store import EmbeddedStore
from ...metadata_store.store import ensure_paths
from ...protocol.sasl.scram import SCRAM_MECHANISMS
from ...runtime.clock import SystemClock
from ...runtime.rng import random_secret
from .config_manager import ConfigManager
from .scram_admin import ScramAlteration, alter_scram_credentials, scram_iterations

SALT_BYTES = 24


class StoredUsers:
    """The users of SCRAM that a metadata store holds.

    Args:
        manager: of the settings in the store.
    """

    def __init__(self, manager: ConfigManager) -> None:
        self._manager = manager

    async def describe(self) -> dict[str, dict[str, int]]:
        """By user, the iterations of each mechanism's credential, by the mechanism's name.

        Raises:
            MetadataStoreError: the store does not answer.
        """
        found = await scram_iterations(self._manager, None)
        return {
            user: {mechanism.name: number for mechanism, number in each.items()}
            for user, each in sorted(found.items())
        }

    async def set_password(self, name: str, password: str, mechanism: str, iterations: int) -> None:
        """Make a credential, or put another in its place.

        Args:
            name: of the user.
            password: of the user; what is kept of it does not log in.
            mechanism: SCRAM-SHA-256 or SCRAM-SHA-512.
            iterations: how often the password is hashed.

        Raises:
            KafkaError: the name or the iterations cannot be.
            MetadataStoreError: the store does not answer.
        """
        scram = SCRAM_MECHANISMS[mechanism]
        salt = random_secret(SALT_BYTES)
        salted = (salt, scram.salted_password(password, salt, iterations), iterations)
        await self._alter(ScramAlteration(name, scram.number, salted))

    async def remove(self, name: str, mechanism: str) -> None:
        """Remove a credential.

        Raises:
            KafkaError: there is none.
            MetadataStoreError: the store does not answer.
        """
        await self._alter(ScramAlteration(name, SCRAM_MECHANISMS[mechanism].number))

    async def _alter(self, alteration: ScramAlteration) -> None:
        for user, refusal in (await alter_scram_credentials(self._manager, [alteration])).items():
            if refusal is not None:
                raise KafkaError(refusal.code, f"user {user}: {refusal.message}")


@asynccontextmanager
async def users_in_folder(folder: Path) -> AsyncIterator[StoredUsers]:
    """The users in the embedded metadata store of a folder, which is made if it is not there.

    Raises:
        OSError: the folder cannot be made.
        MetadataStoreError: its file cannot be used.
    """
    folder.mkdir(parents=True, exist_ok=True)
    clock = SystemClock()
    store = EmbeddedStore(folder / METADATA_FILE, clock=clock)
    await store.open()
    try:
        await ensure_paths(store, [znodes.CONFIG_CHANGES])
        # Nothing is followed here, so there is nothing to be run beside.
        yield StoredUsers(ConfigManager(store, clock, lambda task: None))
    finally:
        await store.close()
