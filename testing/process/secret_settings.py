"""Settings that are not for a command line, where everybody on the machine may read them."""

from __future__ import annotations

import json
import os

SECRET_SETTINGS = (
    "password",
    "passphrase",
    "jaas.config",
    "keystore.key",
    "certificates",
    "certificate.chain",
    "secret",
    "secret.key",
    "master.key",
    "digest",
)
"""What the names of settings end in whose values Kafka tells nobody."""

ADD_SCRAM = "odradek.testing.add.scram.secret"
"""No setting of a broker: a user of SCRAM to be there when it starts, as a JSON list of mechanism,
name and password."""

SETTINGS_VARIABLE = "ODRADEK_SECRET_SETTINGS"
"""The environment variable that hands them to the broker's process, as a JSON object."""


def take_secret_settings() -> dict[str, str]:
    """Take them out of this process's environment, so that no child inherits them."""
    settings: dict[str, str] = json.loads(os.environ.pop(SETTINGS_VARIABLE, "{}"))
    return settings
