"""The syntax of a properties file, held to what Java's own reader made of the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.config.definition import ConfigError
from odradek.config.properties import parse_properties

DATA = Path(__file__).parent / "data"


def test_file_reads_as_java_reads_it():
    read_by_java = json.loads((DATA / "tricky-properties-read-by-java.json").read_text())
    assert parse_properties((DATA / "tricky.properties").read_bytes()) == read_by_java


def test_line_numbers_count_comments_and_continuations():
    properties = parse_properties("# one\na=1\n\nb=2,\\\n  3\nc=4\n", "my.properties")
    assert properties.place("a") == "my.properties, line 2"
    assert properties.place("b") == "my.properties, line 4"
    assert properties.place("c") == "my.properties, line 6"


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system(line_end):
    assert parse_properties(line_end.join(["a=1", "b=2\\", "  3", ""])) == {"a": "1", "b": "23"}


def test_bytes_are_utf_8_or_else_latin_1():
    assert parse_properties("dir=/données".encode())["dir"] == "/données"
    assert parse_properties("dir=/données".encode("latin-1"))["dir"] == "/données"


@pytest.mark.parametrize("escape", ["\\u12", "\\uzzzz", "\\u", "\\u 123"])
def test_broken_unicode_escape_is_refused_with_its_line(escape):
    with pytest.raises(ConfigError, match=r"^x\.properties, line 2: "):
        parse_properties(f"a=1\nb={escape}", "x.properties")


def test_nothing_in_it_is_no_settings():
    assert parse_properties(b"") == {}
    assert parse_properties(b"\n \n\t\n# only this\n") == {}
