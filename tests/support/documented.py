"""The blocks of code in README.md and docs/, and a terminal for those that hold commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from typing import Self

ROOT = Path(__file__).parents[2]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")),
)
SECONDS_MAX = 120
_FENCED = re.compile(r"^```(\w*) ?(.*)\n((?s:.*?))^```$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: the page's path, from the root of the repository.
        language: what stands behind the fence; empty where nothing does.
        argument: what stands behind the language, such as a file's name.
    """

    page: str
    language: str
    argument: str
    text: str


def blocks_of(page: str, language: str | None = None) -> list[Block]:
    """The blocks of a page in their order; of one language, if it is given."""
    found = _FENCED.findall((ROOT / page).read_text())
    blocks = [Block(page, *each) for each in found]
    return [each for each in blocks if language in (None, each.language)]


def indented_blocks_of(page: str) -> list[str]:
    """What Markdown takes for code because it is indented, which no test finds by its language."""
    text = _FENCED.sub("", (ROOT / page).read_text())
    return re.findall(r"(?:\A|\n\n)((?: {4,}\S.*\n)+)", text)


def commands_of(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each on one line, and what each prints by the page."""
    assert block.text.startswith("$ "), block.text
    commands = []
    for each in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, printed = re.sub(r"\\\n *", "", each).partition("\n")
        commands.append((command.partition("    #")[0].rstrip(), printed))
    return commands


class Terminal:
    """Runs the commands of console blocks in a folder, as bash does, and compares what they print.

    A line that begins with `$ ` is a command; the lines below it, if any, are what it prints.
    There, `...` stands for anything, and alone in a line for any number of lines. `odradek serve`,
    `console` and `record` go on in the background when they have printed their lines, and what is
    exported counts for what follows. The ports of the pages may be some other program's, so that
    others are taken.

    Args:
        folder: where the commands run.
        ports: the port to use for each port of a page.
    """

    def __init__(self, folder: Path, ports: dict[int, int]) -> None:
        self._folder = folder
        self._ports = ports
        self._served: list[subprocess.Popen[str]] = []
        scripts = str(Path(sys.executable).parent)
        self._environment = {
            **os.environ,
            "PATH": os.pathsep.join([scripts, os.environ["PATH"]]),
            "PYTHONUNBUFFERED": "1",
            "ODRADEK_BOOTSTRAP_SERVER": self.local("localhost:9092"),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._served:
            process.send_signal(signal.SIGINT)
        codes = [process.wait(SECONDS_MAX) for process in self._served]
        assert codes == [0] * len(codes)

    def local(self, text: str) -> str:
        """The text with the ports that are used in place of the page's."""
        return re.sub(
            r"\b(localhost|127\.0\.0\.1):(\d+)",
            lambda found: f"{found[1]}:{self._ports[int(found[2])]}",
            text,
        )

    def run(self, block: Block) -> int:
        """Run a block's commands; returns how many there were."""
        commands = commands_of(block)
        for command, expected in commands:
            self.command(command, expected)
        return len(commands)

    def command(self, command: str, expected: str = "") -> str:
        """Run a command, as it stands on a page, and compare what it prints; returns that."""
        command, expected = self.local(command), self.local(expected)
        name, _, value = command.removeprefix("export ").partition("=")
        if command.startswith("export "):
            self._environment[name] = self.bash(f"printf %s {value}")
            return ""
        printed = self.start(command, expected) if _goes_on(command) else self.bash(command)
        assert not expected or re.fullmatch(_pattern(expected), printed), f"{command}\n{printed}"
        return printed

    def bash(self, command: str) -> str:
        """Run a command; returns what it printed. It must end well."""
        try:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS_MAX,
            )
        except subprocess.TimeoutExpired as late:
            pytest.fail(f"{command}: still runs after {SECONDS_MAX} s\n{late.stdout!r}")
        assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def start(self, command: str, expected: str) -> str:
        """Start what goes on in the background; returns as many lines of it as are expected."""
        if command.startswith("odradek serve") and "--listen" not in command:
            command += f" --listen {self.local('localhost:9092')}"
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._served.append(process)
        assert process.stdout is not None
        return "".join(process.stdout.readline() for _ in expected.splitlines())


def _goes_on(command: str) -> bool:
    return command.startswith(("odradek serve", "odradek console", "odradek record"))


def _pattern(expected: str) -> str:
    lines = (
        "(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n"
        for line in expected.splitlines()
    )
    return "".join(lines)
