"""The helps, from what commands declare: fit for any width, and without loading what renders text.

A command's docstring is its help. Of Markdown it has paragraphs, lists, examples between fences,
**bold** and `code`.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Literal, get_args, get_origin

from .commands import COMMANDS, load_command
from .common.show import BOLD, styled
from .declarations import CommandGroup
from .plain_arguments import Declared, declared_parameters

HELP_WORDS = frozenset({"-h", "--help"})
COLUMNS_MIN, COLUMNS_MAX = 40, 100
NAMES_COLUMNS = 28
"""Where the second column begins; in a narrow terminal it stands below the first."""
NARROW_COLUMNS = 72

PROGRAM_HELP = """\
A Kafka broker in Python, and the tools to look into one.

**Start a broker** and leave it running:

```
odradek serve
```

**In another terminal**, or against any Kafka:

```
odradek topics create events --partitions 3
echo "hello" | odradek produce events
odradek consume events --from-beginning --until-end
```

Brokers are looked for at 127.0.0.1:9092; give another address with --bootstrap-server, or in
the variable ODRADEK_BOOTSTRAP_SERVER. Every command has a --help with examples.
"""
SERVE_HELP = "Run a broker until Ctrl-C. See: odradek serve --help"

METAVARS = {int: "N", float: "NUMBER", str: "TEXT", Path: "FILE"}


def help_for(arguments: Sequence[str], columns: int) -> str | None:
    """The help that a command line requests, by --help or by naming a group of commands alone.

    Args:
        arguments: without the program's name.
        columns: how wide a line may be.

    Returns:
        None where it requests none, or names no command.
    """
    words = list(arguments)
    is_requested = bool(HELP_WORDS & set(words[: words.index("--") if "--" in words else None]))
    if not words or words[0] in HELP_WORDS:
        entries = [("serve", SERVE_HELP), *((name, _summary_of(name)) for name in COMMANDS)]
        return _of_group("odradek", PROGRAM_HELP, entries, columns)
    command = load_command(words[0]) if words[0] in COMMANDS else None
    name = f"odradek {words[0]}"
    if isinstance(command, CommandGroup):
        if len(words) == 1 or words[1] in HELP_WORDS:
            entries = [(each, _first_line(called)) for each, called in command.commands.items()]
            return _of_group(name, command.help, entries, columns)
        command, name = command.commands.get(words[1]), f"{name} {words[1]}"
    if command is None or not is_requested:
        return None
    return _of_command(name, command, declared_parameters(command), columns)


def terminal_columns() -> int:
    """How wide a help may be."""
    columns = shutil.get_terminal_size((80, 24)).columns
    return min(max(columns, COLUMNS_MIN), COLUMNS_MAX)


def _summary_of(name: str) -> str:
    command = load_command(name)
    return command.help if isinstance(command, CommandGroup) else _first_line(command)


def _first_line(function: Callable[..., object]) -> str:
    return cleandoc(function.__doc__ or "").partition("\n\n")[0]


def _of_group(name: str, text: str, entries: Sequence[tuple[str, str]], columns: int) -> str:
    blocks = [f"Usage: {name} COMMAND ...", _paragraphs(text, columns), styled(BOLD, "Commands:")]
    lines = [line for entry in entries for line in _entry(*entry, columns)]
    return "\n\n".join(blocks) + "\n" + "\n".join(lines)


def _of_command(
    name: str, function: Callable[..., object], parameters: Sequence[Declared], columns: int
) -> str:
    options = [each for each in parameters if each.words]
    arguments = [each for each in parameters if not each.words]
    usage = " ".join([name, "[OPTIONS]", *map(_argument, arguments)])
    text = "\n".join(textwrap.wrap(f"Usage: {usage}", columns, subsequent_indent="    "))
    text += "\n\n" + _paragraphs(cleandoc(function.__doc__ or ""), columns)
    explained = [each for each in arguments if each.info.help]
    for title, entries in (("Arguments:", explained), ("Options:", options)):
        lines = [line for each in entries for line in _entry(_names(each), _about(each), columns)]
        if lines:
            text += f"\n\n{styled(BOLD, title)}\n" + "\n".join(lines)
    return text


def _argument(argument: Declared) -> str:
    name = (argument.info.metavar or argument.name.upper()).strip("[]")
    repeats = "..." if argument.is_list and not name.endswith("...") else ""
    is_required = argument.info.default is ...
    return f"{name}{repeats}" if is_required else f"[{name}{repeats}]"


def _names(parameter: Declared) -> str:
    if not parameter.words:
        return _argument(parameter)
    names = ", ".join(sorted(parameter.words, key=len))
    if parameter.flags:
        return names
    type_ = parameter.type
    choices = "|".join(get_args(type_)) if get_origin(type_) is Literal else None
    return f"{names} {parameter.info.metavar or choices or METAVARS.get(type_, 'VALUE')}"


def _about(parameter: Declared) -> str:
    info = parameter.info
    about = [info.help] if info.help else []
    if info.min is not None and info.min > 0:
        about.append(f"[at least {info.min}]")
    if parameter.words and info.default is ...:
        about.append("[required]")
    if info.envvar:
        about.append(f"[variable: {info.envvar}]")
    if isinstance(info.show_default, str):
        about.append(f"[default: {info.show_default}]")
    elif info.show_default and info.default not in (None, ..., False, True, ""):
        about.append(f"[default: {info.default}]")
    return " ".join(about)


def _entry(names: str, about: str, columns: int) -> Iterator[str]:
    """The lines of one option, argument or command."""
    is_narrow = columns < NARROW_COLUMNS
    indent = 6 if is_narrow else NAMES_COLUMNS
    lines = textwrap.wrap(about, columns - indent, break_on_hyphens=False) or [""]
    first = f"  {names}"
    if is_narrow or len(first) > indent - 2:
        yield from textwrap.wrap(first, columns, subsequent_indent="    ", break_on_hyphens=False)
    else:
        yield first.ljust(indent) + lines.pop(0)
    yield from (" " * indent + line for line in lines if line)


def _paragraphs(text: str, columns: int) -> str:
    """Markdown as plain text: paragraphs are wrapped, and the lines of examples indented."""
    blocks = []
    for index, part in enumerate(re.split(r"^```\w*\n?", text, flags=re.MULTILINE)):
        if index % 2:
            lines = [line for each in part.splitlines() for line in _continued(each, columns - 2)]
            blocks.append("\n".join(f"  {line}" for line in lines))
            continue
        for paragraph in re.split(r"\n\n+", part.strip("\n")):
            items = re.split(r"\n(?=[-*] )", paragraph)
            wrapped = [_wrapped(item, columns) for item in items if item.strip()]
            blocks += ["\n".join(wrapped)] if wrapped else []
    return "\n\n".join(blocks)


def _wrapped(paragraph: str, columns: int) -> str:
    indent = "  " if paragraph.startswith(("- ", "* ")) else ""
    lines = textwrap.wrap(
        paragraph, columns, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    text = re.sub(r"`([^`]+)`", r"\1", "\n".join(lines))
    text = re.sub(r"\*\*([^*]+)\*\*", lambda found: styled(BOLD, found[1]), text)
    return re.sub(r"\*(\w[^*]*)\*", r"\1", text)


def _continued(line: str, columns: int) -> Iterator[str]:
    """A line of a shell, continued on others as a shell would have it where it is too long."""
    while len(line) > columns:
        outside = [
            each.start()
            for each in re.finditer(" ", line[: columns - 1])
            if line[: each.start()].count("'") % 2 == 0 == line[: each.start()].count('"') % 2
        ]
        cut = outside[-1] if outside and outside[-1] > len(line) - len(line.lstrip()) else 0
        if not cut:
            break
        yield line[:cut] + " \\"
        line = "    " + line[cut + 1 :]
    yield line
