"""Writes the stubs beside the message modules: `python -m odradek.protocol.stubs`.

At run time a message is one object and the classes of its values are made when first
used; the stubs show readers and type checkers each as a class with typed fields. They are
committed, and a test compares them with what this would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from . import messages
from .message import Message
from .types import Array, Field, Records, Struct
from .values import UNKNOWN_TAGS

HEADER = """\
# Written by `python -m odradek.protocol.stubs`: change the schema, not this file.
# fmt: off
"""
LINE_LENGTH = 100
UNKNOWN_TAGS_TYPE = "dict[int, bytes] | None"


def stub_files() -> dict[str, str]:
    """The name and text of each stub in the folder of the message modules."""
    stubs = {}
    for module_name in messages.module_names():
        module = import_module(f".{module_name}", messages.__name__)
        found = [value for value in vars(module).values() if isinstance(value, Message)]
        stubs[f"{module_name}.pyi"] = module_stub(found)
    stubs["__init__.pyi"] = package_stub()
    return stubs


def module_stub(found: list[Message]) -> str:
    """The stub of a module with these messages."""
    has_records = any(
        field.type is Records
        for message in found
        for struct in (message, *message.structs())
        for field in struct.fields
    )
    has_structs = any(message.structs() for message in found)
    lines = ["from typing import Any", ""] if has_records else []
    lines.append(f"from ..values import MessageValue{', Value' if has_structs else ''}")
    for message in found:
        lines.append("")
        for line in _class_lines(message, message):
            lines.extend(_folded(line))
    return HEADER + "\n".join(lines) + "\n"


def package_stub() -> str:
    """The stub of the package: every message by name, and its functions."""
    lines = ["from ..api_keys import ApiKey", "from ..message import Message"]
    for module_name, names in sorted(messages.names_by_module().items()):
        for name in names:
            line = f"from .{module_name} import {name} as {name}"
            if len(line) > LINE_LENGTH:
                line = f"from .{module_name} import (\n    {name} as {name},\n)"
            lines.append(line)
    lines += [
        "",
        "def request_message(api_key: int) -> Message: ...",
        "def response_message(api_key: int) -> Message: ...",
        "def message_names() -> list[str]: ...",
        "def module_names() -> list[str]: ...",
        "def names_by_module() -> dict[str, tuple[str, ...]]: ...",
        "def module_name(api_key: ApiKey) -> str: ...",
    ]
    return HEADER + "\n".join(lines) + "\n"


def _class_lines(struct: Struct, message: Message) -> Iterator[str]:
    is_message = struct is message
    yield f"class {struct.name}({'MessageValue' if is_message else 'Value'}):"
    if is_message:
        for inner in message.structs():
            for line in _class_lines(inner, message):
                yield f"    {line}" if line else ""
            yield ""
    for field in struct.fields:
        yield f"    {field.name}: {_annotation(field, message)}"
    yield "    def __init__("
    yield "        self,"
    yield "        *,"
    for field in struct.fields:
        yield f"        {field.name}: {_annotation(field, message)} = ...,"
    yield f"        {UNKNOWN_TAGS}: {UNKNOWN_TAGS_TYPE} = ...,"
    yield "    ) -> None: ..."


def _folded(line: str) -> list[str]:
    """A line, or the three that stand for it if it is too long; such a line has a list."""
    if len(line) <= LINE_LENGTH:
        return [line]
    head, _, rest = line.partition("list[")
    element, _, tail = rest.partition("]")
    indent = line[: len(line) - len(line.lstrip())]
    return [f"{head}list[", f"{indent}    {element}", f"{indent}]{tail}"]


def _annotation(field: Field, message: Message) -> str:
    """How a stub names a field's values; inner structs are named within their message."""
    if field.type is Records:
        return "Any"
    inner = field.type.element if isinstance(field.type, Array) else field.type
    name = f"{message.name}.{inner.name}" if isinstance(inner, Struct) else inner.python_type
    if isinstance(field.type, Array):
        name = f"list[{name}]"
    return f"{name} | None" if field.nullable or field.default is None else name


def main() -> None:
    """Write the stubs where they belong, and remove those of modules that are gone."""
    folder = Path(messages.__file__).parent
    stubs = stub_files()
    for path in folder.glob("*.pyi"):
        if path.name not in stubs:
            path.unlink()
    for name, text in stubs.items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
