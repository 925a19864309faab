"""Every request and response of Kafka's protocol, by name: `messages.FetchRequest`.

One module per API; a module is imported when one of its messages is first asked for, and
with the first of them construct. What type checkers see are the stubs beside the modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..api_keys import ApiKey

if TYPE_CHECKING:
    from ..message import Message


def request_message(api_key: int) -> Message:
    """The request of an API.

    Raises:
        ValueError: there is no such API.
    """
    return _message(ApiKey(api_key), "Request")


def response_message(api_key: int) -> Message:
    """The response of an API.

    Raises:
        ValueError: there is no such API.
    """
    return _message(ApiKey(api_key), "Response")


def message_names() -> list[str]:
    """The names of all messages, in the order of their API keys."""
    return [f"{_base_name(key)}{side}" for key in ApiKey for side in ("Request", "Response")]


def module_name(api_key: ApiKey) -> str:
    """The module here that holds an API's messages."""
    return api_key.name.lower()


def _base_name(api_key: ApiKey) -> str:
    return "".join(word.capitalize() for word in api_key.name.split("_"))


def _message(api_key: ApiKey, side: str) -> Message:
    message: Message = __getattr__(f"{_base_name(api_key)}{side}")
    return message


_api_keys: dict[str, ApiKey] = {}


def __getattr__(name: str) -> Any:
    if not _api_keys:
        _api_keys.update(
            (f"{_base_name(key)}{side}", key) for key in ApiKey for side in ("Request", "Response")
        )
    api_key = _api_keys.get(name)
    if api_key is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{module_name(api_key)}", __name__)
    message = getattr(module, name)
    globals()[name] = message
    return message


def __dir__() -> list[str]:
    return [*globals(), *message_names()]
