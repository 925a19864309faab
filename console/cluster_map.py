"""A test broker's cluster as a map: brokers in a circle, and what was broken of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any, Final, NamedTuple

BROKERS_MAX: Final = 12
RADIUS: Final = 90
CIRCLE_RADIUS: Final = 17
BEND: Final = 0.22
"""How far the arrow of a moved leader swings out from the link that it would cover."""
MOVES_MAX: Final = 200


class Place(NamedTuple):
    """A broker on the map."""

    broker: int
    state: str
    x: float
    y: float
    is_full: bool
    """Whether a disk of it is filled."""


class Link(NamedTuple):
    """The link between two brokers on the map: "cut", or "idle" where one of them does not run."""

    one: Place
    other: Place
    state: str


class Arrow(NamedTuple):
    """From a broker to one to which partitions were moved.

    Attributes:
        path: as SVG writes it.
        x, y: where it swings out most.
    """

    path: str
    x: float
    y: float
    partitions: int


class ClusterMap(NamedTuple):
    """Brokers in a circle, and what is between them."""

    places: list[Place]
    links: list[Link]
    arrows: list[Arrow]

    @property
    def cut(self) -> list[Link]:
        """The links that are cut."""
        return [each for each in self.links if each.state == "cut"]


class Move(NamedTuple):
    """A partition whose leader was moved here."""

    topic: str
    partition: int
    origin: int
    to: int


class Moves:
    """The partitions whose leaders were moved and not moved back, the latest `MOVES_MAX`."""

    def __init__(self) -> None:
        self._moves: dict[tuple[str, int], Move] = {}

    def shown(self) -> list[Move]:
        """All of them, the earliest first."""
        return list(self._moves.values())

    def note(self, topic: str, partition: int, origin: int, to: int) -> None:
        """A leader is going to be moved; where it was moved from at first, it is back then."""
        former = self._moves.pop((topic, partition), None)
        origin = origin if former is None else former.origin
        if origin != to:
            self._moves[topic, partition] = Move(topic, partition, origin, to)
        while len(self._moves) > MOVES_MAX:
            del self._moves[next(iter(self._moves))]


def map_of(
    cluster: Mapping[str, Any], full: Collection[int] = (), moves: Collection[Move] = ()
) -> ClusterMap | None:
    """The map of what a control channel shows; None for one broker, or more than can be drawn.

    Args:
        cluster: its answer; brokers of former versions say nothing of links.
        full: the brokers with a disk that is filled.
        moves: of leaders.
    """
    brokers = cluster["brokers"]
    if not 1 < len(brokers) <= BROKERS_MAX:
        return None
    cut = {frozenset(each) for each in cluster.get("cut_links", ())}
    places = []
    for number, broker in enumerate(brokers):
        angle = 2 * math.pi * number / len(brokers) - math.pi / 2
        x, y = RADIUS * math.cos(angle), RADIUS * math.sin(angle)
        is_full = broker["id"] in full
        places.append(Place(broker["id"], broker["state"], round(x, 1), round(y, 1), is_full))
    links = []
    for one, other in combinations(places, 2):
        is_idle = one.state != "running" or other.state != "running"
        is_cut = frozenset((one.broker, other.broker)) in cut
        links.append(Link(one, other, "cut" if is_cut else "idle" if is_idle else "up"))
    return ClusterMap(places, links, _arrows(places, moves))


def _arrows(places: list[Place], moves: Collection[Move]) -> list[Arrow]:
    by_broker = {each.broker: each for each in places}
    counts: dict[tuple[int, int], int] = {}
    for move in moves:
        if move.origin in by_broker and move.to in by_broker:
            pair = move.origin, move.to
            counts[pair] = counts.get(pair, 0) + 1
    return [
        _arrow(by_broker[origin], by_broker[to], count) for (origin, to), count in counts.items()
    ]


def _arrow(origin: Place, to: Place, partitions: int) -> Arrow:
    """From the edge of one circle to that of another, as a curve with one point that pulls it."""
    begin, end = complex(origin.x, origin.y), complex(to.x, to.y)
    pull = (begin + end) / 2 + (end - begin) * 1j * BEND
    begin += _towards(begin, pull) * CIRCLE_RADIUS
    end += _towards(end, pull) * (CIRCLE_RADIUS + 5)
    middle = (begin + 2 * pull + end) / 4
    path = "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(
        *(part for point in (begin, pull, end) for part in (point.real, point.imag))
    )
    return Arrow(path, round(middle.real, 1), round(middle.imag, 1), partitions)


def _towards(point: complex, other: complex) -> complex:
    return (other - point) / abs(other - point)
