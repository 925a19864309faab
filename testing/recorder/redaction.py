"""Secrets, taken out of frames before anybody sees them.

What is recorded may be shown, kept and sent to others. Passwords, what proves that somebody knows
one, and keys of delegation tokens are taken out; the message stays whole otherwise, and tells its
new length. What cannot be decoded, and may hold a secret, keeps its header alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol import encode_body
from ...protocol.api_keys import ApiKey
from ...protocol.errors import EncodeError, ProtocolError, UnsupportedVersionError
from ...protocol.headers import read_request_header, read_response_header
from ...protocol.messages import request_message, response_message
from ...protocol.varints import Buffer
from ..process.secret_settings import SECRET_SETTINGS

HIDDEN = "(not recorded)"


def _without_auth_bytes(message: Any) -> bool:
    message.auth_bytes = b""
    return True


def _without_salted_passwords(message: Any) -> bool:
    for upsertion in message.upsertions:
        upsertion.salt = upsertion.salted_password = b""
    return bool(message.upsertions)


def _without_key(message: Any) -> bool:
    message.hmac = b""
    return True


def _without_keys(message: Any) -> bool:
    for token in message.tokens:
        token.hmac = b""
    return bool(message.tokens)


def _without_secret_settings(message: Any) -> bool:
    is_changed = False
    for resource in message.resources:
        for config in resource.configs:
            if config.value and config.name.lower().endswith(SECRET_SETTINGS):
                config.value = HIDDEN
                is_changed = True
    return is_changed


def _without_envelope(message: Any) -> bool:
    message.request_data = b""
    return True


Clean = Callable[[Any], bool]
"""Takes secrets out of a message; says whether there were any."""

IN_REQUESTS: dict[int, Clean] = {
    ApiKey.SASL_AUTHENTICATE: _without_auth_bytes,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _without_salted_passwords,
    ApiKey.RENEW_DELEGATION_TOKEN: _without_key,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _without_key,
    ApiKey.ALTER_CONFIGS: _without_secret_settings,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _without_secret_settings,
    ApiKey.ENVELOPE: _without_envelope,
}
IN_ANSWERS: dict[int, Clean] = {
    ApiKey.SASL_AUTHENTICATE: _without_auth_bytes,
    ApiKey.CREATE_DELEGATION_TOKEN: _without_key,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _without_keys,
}


def redacted(api_key: int, version: int, frame: Buffer, *, is_answer: bool) -> bytes | None:
    """A frame without its secrets; None if it has none.

    Args:
        api_key: of the request.
        version: of the request.
        frame: all of it but the length.
        is_answer: whether it is the answer to that request.
    """
    clean = (IN_ANSWERS if is_answer else IN_REQUESTS).get(api_key)
    if clean is None:
        return None
    position = 0
    try:
        if is_answer:
            _, position = read_response_header(frame, api_key, version)
            message, end = response_message(api_key).decoder(version)(frame, position)
        else:
            _, _, position = read_request_header(frame)
            message, end = request_message(api_key).decoder(version)(frame, position)
        if not clean(message):
            # A broker overlooks what trails a message, and there may be anything in it.
            return None if end == len(frame) else bytes(frame[:end])
        return bytes(frame[:position]) + encode_body(message, version)
    except (ProtocolError, UnsupportedVersionError, EncodeError):
        return bytes(frame[:position])
