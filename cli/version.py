"""What `odradek --version` prints."""

from __future__ import annotations


def version_line() -> str:
    """The program and its version."""
    from importlib.metadata import version

    return f"odradek {version('odradek')}"
