"""Every request and response of Kafka's protocol, by name: `messages.FetchRequest`.

One module per API; a module is imported when one of its messages is first used, and
with the first of them construct. What type checkers see are the stubs beside the modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..api_keys import ApiKey

if TYPE_CHECKING:
    from ..codec.message import Message

SIDES = ("Request", "Response")


def request_message(api_key: int) -> Message:
    """The request of an API.

    Raises:
        ValueError: there is no such API.
    """
    return _find(_base_name(ApiKey(api_key)) + "Request")


def response_message(api_key: int) -> Message:
    """The response of an API.

    Raises:
        ValueError: there is no such API.
    """
    return _find(_base_name(ApiKey(api_key)) + "Response")


def message_names() -> list[str]:
    """The names of all messages, in the order of their API keys."""
    return list(_modules_by_message())


def module_names() -> list[str]:
    """The names of the modules here."""
    return list(names_by_module())


def names_by_module() -> dict[str, tuple[str, ...]]:
    """The names of the messages in each module."""
    return {module_name(key): tuple(_base_name(key) + side for side in SIDES) for key in ApiKey}


def module_name(api_key: ApiKey) -> str:
    """The module here that holds an API's messages."""
    return api_key.name.lower()


def _base_name(api_key: ApiKey) -> str:
    return "".join(word.capitalize() for word in api_key.name.split("_"))


_modules: dict[str, str] = {}


def _modules_by_message() -> dict[str, str]:
    if not _modules:
        for module, names in names_by_module().items():
            _modules.update((name, module) for name in names)
    return _modules


def _find(name: str) -> Message:
    found: Message = globals().get(name) or __getattr__(name)
    return found


def __getattr__(name: str) -> Any:
    module = _modules_by_message().get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = message
    return message


def __dir__() -> list[str]:
    return [*globals(), *message_names()]
