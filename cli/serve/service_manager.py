"""Tells a service manager, such as systemd, that the broker is ready (sd_notify)."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

NOTIFY_SOCKET = "NOTIFY_SOCKET"
"""The variable with the address to tell: a path, or a name behind an @."""


def notify_ready(addresses: str) -> None:
    """Say that clients are answered; where there is nobody to tell, nothing is done.

    Args:
        addresses: those that clients connect to.
    """
    address = os.environ.get(NOTIFY_SOCKET)
    if not address:
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    # A manager that does not listen does not wait, either.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto(f"READY=1\nSTATUS=serving at {addresses}".encode(), address)
