"""Writes the stubs beside the message modules: `python -m odradek.tools.docs.stubs`.

At run time a message is one object and the classes of its values are made when first
used; the stubs show readers and type checkers each as a class with typed fields. They are
committed, and a test compares them with what this would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ...protocol import internal, messages
from ...protocol.codec.message import Message
from ...protocol.codec.types import Array, Field, Records, Struct
from ...protocol.codec.values import UNKNOWN_TAGS

HEADER = """\
# Written by `python -m odradek.tools.docs.stubs`: change the schema, not this file.
# fmt: off
"""
LINE_LENGTH = 100
MESSAGE_NAMES = ("api_key", "decoder", "encoder", "flexible", "name", "version", "versions")
"""What `MessageValue` says of its schema; some messages have fields of these names."""
UNKNOWN_TAGS_TYPE = "dict[int, bytes] | None"

PACKAGES: dict[ModuleType, tuple[str, ...]] = {
    messages: (
        "from ..api_keys import ApiKey",
        "from ..codec.message import Message",
        "def request_message(api_key: int) -> Message: ...",
        "def response_message(api_key: int) -> Message: ...",
        "def message_names() -> list[str]: ...",
        "def module_names() -> list[str]: ...",
        "def names_by_module() -> dict[str, tuple[str, ...]]: ...",
        "def module_name(api_key: ApiKey) -> str: ...",
    ),
    internal: (
        "from ..codec.message import Message",
        "def find_message(name: str) -> Message: ...",
        "def message_names() -> list[str]: ...",
        "def names_by_module() -> dict[str, tuple[str, ...]]: ...",
    ),
}
"""The packages that have stubs, and what theirs say beside the messages."""


def stub_files(package: ModuleType = messages) -> dict[str, str]:
    """The name and text of each stub in the folder of a package of `PACKAGES`."""
    stubs = {}
    for module_name in package.names_by_module():
        module = import_module(f".{module_name}", package.__name__)
        found = [value for value in vars(module).values() if isinstance(value, Message)]
        stubs[f"{module_name}.pyi"] = module_stub(found)
    stubs["__init__.pyi"] = package_stub(package)
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
    lines.append(f"from ..codec.values import MessageValue{', Value' if has_structs else ''}")
    for message in found:
        lines.append("")
        for line in _class_lines(message, message):
            lines.extend(_folded(line))
    return HEADER + "\n".join(lines) + "\n"


def package_stub(package: ModuleType) -> str:
    """The stub of a package: every message by name, and its functions."""
    beside = PACKAGES[package]
    lines = [line for line in beside if line.startswith("from ")]
    for module_name, names in sorted(package.names_by_module().items()):
        for name in sorted(names):
            line = f"from .{module_name} import {name} as {name}"
            if len(line) > LINE_LENGTH:
                line = f"from .{module_name} import (\n    {name} as {name},\n)"
            lines.append(line)
    lines += ["", *(line for line in beside if line.startswith("def "))]
    return HEADER + "\n".join(lines) + "\n"


def _class_lines(struct: Struct, message: Message) -> Iterator[str]:
    is_message = struct is message
    hidden = MESSAGE_NAMES if is_message else ()
    yield f"class {struct.name}({'MessageValue' if is_message else 'Value'}):"
    if is_message:
        for inner in message.structs():
            for line in _class_lines(inner, message):
                yield f"    {line}" if line else ""
            yield ""
    for field in struct.fields:
        hides = "  # type: ignore  # hides what a message says" if field.name in hidden else ""
        yield f"    {field.name}: {_annotation(field, message)}{hides}"
    yield "    def __init__("
    yield "        self,"
    yield "        *,"
    for field in struct.fields:
        yield f"        {field.name}: {_annotation(field, message)} = ...,"
    yield f"        {UNKNOWN_TAGS}: {UNKNOWN_TAGS_TYPE} = ...,"
    yield "    ) -> None: ..."


def _folded(line: str) -> list[str]:
    """A line, or the three that stand for it if it is too long."""
    if len(line) <= LINE_LENGTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    head, bracket, rest = line.partition("list[")
    if bracket:
        element, _, tail = rest.partition("]")
        return [f"{head}list[", f"{indent}    {element}", f"{indent}]{tail}"]
    name, _, rest = line.partition(": ")
    annotation, equals, tail = rest.partition(" =")
    return [f"{name}: (", f"{indent}    {annotation}", f"{indent}){equals}{tail}"]


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
    for package in PACKAGES:
        folder = Path(str(package.__file__)).parent
        stubs = stub_files(package)
        for path in folder.glob("*.pyi"):
            if path.name not in stubs:
                path.unlink()
        for name, text in stubs.items():
            (folder / name).write_text(text)


if __name__ == "__main__":
    main()
