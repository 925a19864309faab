"""Entries of `odradek log dump` as lines: for people `name=value`, for programs JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...common.escaping import escaped_json
from ...common.record_json import put_bytes

INDENTED = {"record": "  "}
"""What belongs to the line above it."""

DECODED = ("decoded", "control")
RAW = ("key", "value")


def to_json(kind: str, fields: Mapping[str, Any], path: str) -> str:
    """One object, with the file it is from."""
    line = json.dumps({"type": kind, "file": path, **_plain(fields)}, ensure_ascii=False)
    return escaped_json(line)


def to_text(kind: str, fields: Mapping[str, Any]) -> str:
    """One line: the kind, and then each field with its value in JSON, bare where it is simple.

    Of a record that was decoded the bytes are left out.
    """
    meanings = [fields[name] for name in DECODED if isinstance(fields.get(name), Mapping)]
    if any("problem" not in meaning for meaning in meanings):
        fields = {name: value for name, value in fields.items() if name not in RAW}
    shown = " ".join(f"{name}={_value(value)}" for name, value in _plain(fields).items())
    return f"{INDENTED.get(kind, '')}{kind} {shown}"


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same without bytes, which JSON does not have."""
    plain: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "headers":
            plain[name] = [_plain({"key": key, "value": each}) for key, each in value]
        elif isinstance(value, bytes):
            put_bytes(plain, name, value)
        else:
            plain[name] = _plain_value(value)
    return plain


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, list):
        return [_plain_value(each) for each in value]
    if isinstance(value, bytes):
        return _plain({"value": value}).popitem()[1]
    return value


BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/+")


def _value(value: Any) -> str:
    """A word stands as it is, unless it could be taken for something else."""
    is_bare = isinstance(value, str) and value and BARE.issuperset(value)
    if is_bare and value not in ("null", "true", "false") and not value[0].isdigit():
        return str(value)
    return escaped_json(json.dumps(value, ensure_ascii=False))
