"""The options of `odradek serve`: the usual ones are read here, the others by argparse.

To import argparse and to tell it all options takes 6 ms of a start. What is not plain (help, a
mistake, a rarer option, words that are joined or begin with a dash) is left to it. A test compares
the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

DEFAULT_LISTEN = "localhost:9092"
DEFAULT_DATA_DIR = "odradek-data"

VALUES: Final = {
    "--listen": "listen",
    "--data-dir": "data_dir",
    "--metrics": "metrics",
    "--config": "config",
}
"""Plain options that take a word, and the names of what they set."""

DEFAULTS: Final[Mapping[str, Any]] = {
    "listen": None,
    "external": None,
    "data_dir": None,
    "ephemeral": False,
    "json": False,
    "brokers": 1,
    "processes": False,
    "broker_id": None,
    "zookeeper": None,
    "cluster_dir": None,
    "metrics": None,
    "console": None,
    "console_write": False,
    "registry": None,
    "schema": None,
    "key_schema": None,
    "config": None,
    "log_level": "warn",
    "log_format": "text",
    "stop_at_end_of_input": False,
    "await_brokers": frozenset(),
}
"""Of all options but `-o`."""


class Options(SimpleNamespace):
    """What a command line says, by the options' names."""


def plain_options(arguments: Sequence[str]) -> Options | None:
    """What a plain command line says; None of any other."""
    options = Options(settings=[], **DEFAULTS)
    words = iter(arguments)
    for word in words:
        if word == "--ephemeral":
            options.ephemeral = True
            continue
        value = next(words, "-")
        if value.startswith("-"):
            return None
        if word == "-o":
            options.settings.append(value)
        elif word in VALUES:
            setattr(options, VALUES[word], value)
        else:
            return None
    return None if options.ephemeral and options.data_dir is not None else options
