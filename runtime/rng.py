"""Identifiers made with an rng that the caller hands in, so that a seed can replay them.

Secrets come from the operating system: nobody may be able to replay those.
"""

from __future__ import annotations

import base64
import os
import random

UUID_BYTES = 16


def random_uuid(source: random.Random) -> bytes:
    """A random UUID (version 4) as 16 bytes.

    Its base64 text never begins with '-', which command lines would take for an option;
    Kafka's Uuid.randomUuid makes the same promise.
    """
    while True:
        raw = bytearray(source.getrandbits(8 * UUID_BYTES).to_bytes(UUID_BYTES, "big"))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if raw[0] >> 2 != 62:  # 62 is '-' in the URL-safe alphabet
            return bytes(raw)


def random_secret(size: int) -> bytes:
    """So many bytes that nobody can guess."""
    return os.urandom(size)


def uuid_to_text(raw: bytes) -> str:
    """Kafka's text form of a UUID: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The 16 bytes of a UUID in Kafka's text form.

    Raises:
        ValueError: the text is not 16 bytes in URL-safe base64.
    """
    raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if len(raw) != UUID_BYTES:
        raise ValueError(f"{text!r} is not a UUID: it holds {len(raw)} bytes, not {UUID_BYTES}")
    return raw
