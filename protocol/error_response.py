from typing import Any
def error_response(api_key: int, api_version: int, body: Any, code: Any, message: Any = None) -> Any:
    raise AssertionError("temporary")
