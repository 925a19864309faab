"""Plain command lines of `serve` say what argparse takes them for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from odradek.cli.serve.options import DEFAULTS, VALUES, Options, plain_options
from odradek.cli.serve.parser import make_parser

LINES = [
    [],
    ["--data-dir", "here", "-o", "listeners=PLAINTEXT://127.0.0.1:0"],
    ["-o", "a=1", "--listen", ":9092", "-o", "b=", "--listen", "localhost:0"],
    ["--ephemeral", "--listen", "127.0.0.1:0", "--metrics", "localhost:9404"],
    ["--config", "server.properties", "--data-dir", ""],
]

NOT_PLAIN = [
    ["--help"],
    ["--data-dir"],
    ["--data-dir", "--ephemeral"],
    ["--data-dir", "here", "--ephemeral"],
    ["--data-dir=here"],
    ["--data", "here"],
    ["-oa=1"],
    ["-o", "-1=2"],
    ["here"],
    ["here", "there"],
    ["--brokers", "3"],
    ["--log-level", "info"],
]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_plain_line_is_read_as_argparse_reads_it(line: list[str]) -> None:
    plain = plain_options(line)
    assert plain is not None
    assert plain == make_parser().parse_args(line, Options())


@pytest.mark.parametrize("line", NOT_PLAIN, ids=" ".join)
def test_another_is_left_to_argparse(line: list[str]) -> None:
    assert plain_options(line) is None


def test_each_option_has_a_default_and_each_plain_one_is_argparses() -> None:
    read = vars(make_parser().parse_args([]))
    assert read == {**DEFAULTS, "settings": []}
    for option, name in VALUES.items():
        assert vars(make_parser().parse_args([option, "x"])) == {**read, name: "x"}


def test_a_plain_line_does_not_import_argparse() -> None:
    code = (
        "import sys; from odradek.cli.serve import command; "
        "assert command.read_options(['--data-dir', 'here', '-o', 'a=1']).data_dir == 'here'; "
        "assert 'argparse' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
