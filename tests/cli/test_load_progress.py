"""The line that `odradek serve` shows while it loads many logs."""

from __future__ import annotations

import io

from odradek.cli.serve.load_progress import LoadProgressLine


class Terminal(io.StringIO):
    """Text that goes to a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_is_written_over() -> None:
    out = Terminal()
    line = LoadProgressLine(out)
    line("loading logs: 100 of 200")
    line("loading logs: 9 of 9")
    line.end()
    line.end()
    assert out.getvalue() == ("\rloading logs: 100 of 200\rloading logs: 9 of 9    \n")


def test_elsewhere_lines_come_ever_more_seldom() -> None:
    out = io.StringIO()
    line = LoadProgressLine(out)
    for second in range(1, 101):
        line(f"after {second} s")
    line.end()
    seconds = [int(text.split()[3]) for text in out.getvalue().splitlines()]
    assert seconds == [1, 2, 4, 8, 16, 32, 64, 96]
    assert out.getvalue().startswith("odradek serve: after 1 s\n")


def test_a_quick_start_shows_nothing() -> None:
    out = Terminal()
    LoadProgressLine(out).end()
    assert out.getvalue() == ""
