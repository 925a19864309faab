"""Secrets among a broker's changed settings, on their way to the metadata store and back.

The store holds them encrypted under `password.encoder.secret`, as Kafka 3.9's DynamicBrokerConfig
keeps them in ZooKeeper. Keys are derived in a thread: each takes milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ...config.definition import ConfigError, ConfigType, ConfigValues
from ...config.tables.broker_table import BROKER_DEFINITIONS
from ...runtime.offload import run_in_thread

if TYPE_CHECKING:
    from ...security.password_encoder import PasswordEncoder

logger = logging.getLogger(__name__)

Overrides = Mapping[str, str]

PASSWORDS: Final = tuple(
    name
    for name, definition in BROKER_DEFINITIONS.items()
    if definition.dynamic and definition.type is ConfigType.PASSWORD
)
"""Kafka's DynamicPasswordConfigs: what ends like one of these is a secret, too."""

SECRET, OLD_SECRET = "password.encoder.secret", "password.encoder.old.secret"


class StoredPasswords(NamedTuple):
    """How a broker's secrets are kept in the store.

    Attributes:
        encoder: under `password.encoder.secret`; None: no secret is taken.
        old_encoder: under `password.encoder.old.secret`, while secrets may still be under that.
    """

    encoder: PasswordEncoder | None = None
    old_encoder: PasswordEncoder | None = None

    @classmethod
    def of(cls, config: ConfigValues) -> StoredPasswords:
        """As a broker's settings have it.

        Raises:
            ConfigError: `password.encoder.*` cannot be used.
        """
        if config[SECRET] is None and config[OLD_SECRET] is None:
            return NO_PASSWORDS
        if config[SECRET] is None:
            raise ConfigError(
                f"{OLD_SECRET} is set and {SECRET} is not: name the secret that passwords are to "
                "be encoded under from now on."
            )
        from ...security.password_encoder import password_encoder

        return cls(password_encoder(config, SECRET), password_encoder(config, OLD_SECRET))

    async def to_persistent(self, overrides: Overrides, broker: str | None) -> Overrides:
        """What the store is to hold (Kafka's toPersistentProps).

        Args:
            overrides: a broker's settings, or the cluster's.
            broker: its id; None for the cluster.

        Raises:
            KafkaError: INVALID_REQUEST; a secret cannot be kept.
        """
        passwords = _passwords(overrides)
        if not passwords:
            return overrides
        if broker is None:
            raise _invalid("", "Password config can be defined only at broker level")
        if self.encoder is None:
            raise _invalid(broker, "Password encoder secret not configured")
        encode = self.encoder.encode
        encoded = await run_in_thread(
            lambda: {name: encode(text) for name, text in passwords.items()}
        )
        return {**overrides, **encoded}

    async def from_persistent(self, persistent: Overrides) -> dict[str, str]:
        """What the store holds, readable (Kafka's fromPersistentProps).

        A secret that cannot be decoded is logged, by its name, and left out.
        """
        overrides = dict(persistent)
        decoded = await self._decoded(self.encoder, persistent)
        for name in _passwords(persistent):
            if name in decoded:
                overrides[name] = decoded[name]
            else:
                logger.error(
                    "Dynamic password config %s could not be decoded, ignoring. It was encoded "
                    "under another password.encoder.secret than this broker has.",
                    name,
                )
                del overrides[name]
        return overrides

    async def re_encoded(self, persistent: Overrides) -> Overrides:
        """What the store is to hold after `password.encoder.secret` was exchanged.

        What is not under the old secret stays: the old secret may have been left in the file.
        """
        decoded = await self._decoded(self.old_encoder, persistent)
        if not decoded or self.encoder is None:
            return persistent
        encode = self.encoder.encode
        logger.info("encoding %s under password.encoder.secret", ", ".join(sorted(decoded)))
        encoded = await run_in_thread(
            lambda: {name: encode(text) for name, text in decoded.items()}
        )
        return {**persistent, **encoded}

    async def _decoded(
        self, encoder: PasswordEncoder | None, persistent: Overrides
    ) -> dict[str, str]:
        """Those secrets that an encoder can decode."""
        passwords = _passwords(persistent)
        if encoder is None or not passwords:
            return {}
        return await run_in_thread(partial(_decode_all, encoder, passwords))


NO_PASSWORDS: Final = StoredPasswords()


def _passwords(overrides: Overrides) -> dict[str, str]:
    return {name: text for name, text in overrides.items() if name.endswith(PASSWORDS)}


def _decode_all(encoder: PasswordEncoder, passwords: Overrides) -> dict[str, str]:
    from ...security.password_encoder import UndecodablePassword

    decoded = {}
    for name, text in passwords.items():
        try:
            decoded[name] = encoder.decode(text)
        except UndecodablePassword:
            continue
    return decoded


def _invalid(broker: str, reason: str) -> KafkaError:
    """As Kafka's ZkAdminManager words it."""
    resource = f"ConfigResource(type=BROKER, name='{broker}')"
    return KafkaError(
        ErrorCode.INVALID_REQUEST, f"Invalid config value for resource {resource}: {reason}"
    )
