"""The links from a broker to others, cut and healed; clients are served all the same."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..control.verbs import VerbError
from .links import Links

if TYPE_CHECKING:
    from ..control.verbs import Controlled

logger = logging.getLogger(__name__)


def cut(target: Controlled, port: int, silent: bool = False) -> None:
    """Cut the link to the broker at a port; a cut that is there is changed into this one."""
    _links(target).link(port).cut(silent=silent)
    what = "nothing comes through" if silent else "connections break and are refused"
    logger.warning("outage: the link to the broker at port %d is cut: %s", port, what)


def heal(target: Controlled, port: int | None = None) -> None:
    """Heal the link to the broker at a port, or all links."""
    links = _links(target)
    if port is None:
        links.heal_all()
        logger.warning("outage: all links to other brokers are whole")
        return
    links.link(port).heal()
    logger.warning("outage: the link to the broker at port %d is whole", port)


def _links(target: Controlled) -> Links:
    links = getattr(target.broker.links.connect, "__self__", None)
    if not isinstance(links, Links):
        raise VerbError("this broker's links to others are the system's, which nobody can cut")
    return links
