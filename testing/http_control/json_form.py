"""What operations answer, as JSON: named tuples as objects, bytes as text where they are UTF-8."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import fields
from typing import TypeAlias

from ...common.topic_partition import TopicPartition
from ..faults.fault import Fault
from ..inspection.request_log import LoggedRequest
from ..inspection.states import InspectedGroup, InspectedSharePartition

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def json_of(value: object) -> Json:
    """A value of the test kit as JSON.

    Bytes that are no UTF-8 become `{"base64": "..."}`. What a group has of each partition becomes a
    list of objects, since keys in JSON are texts.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return _text_of(value)
    if isinstance(value, Fault):
        return str(value)
    if isinstance(value, InspectedGroup):
        return _group_of(value)
    if isinstance(value, InspectedSharePartition):
        return json_of({**value._asdict(), "lag": value.lag})
    if isinstance(value, LoggedRequest):
        return _request_of(value)
    if isinstance(value, Mapping):
        return {str(key): json_of(each) for key, each in value.items()}
    if hasattr(value, "_asdict"):
        return {name: json_of(each) for name, each in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [json_of(each) for each in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _text_of(value: bytes) -> Json:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _group_of(group: InspectedGroup) -> Json:
    lags = group.lags
    offsets = [
        {**tp._asdict(), "offset": offset, "end": group.ends.get(tp), "lag": lags[tp]}
        for tp, offset in group.offsets.items()
    ]
    named = {name: each for name, each in group._asdict().items() if name != "ends"}
    return json_of({**named, "offsets": offsets, "lag": group.lag})


def _request_of(request: LoggedRequest) -> Json:
    named = {each.name: getattr(request, each.name) for each in fields(request)}
    return json_of({**named, "partitions": [TopicPartition(*each) for each in request.partitions]})
