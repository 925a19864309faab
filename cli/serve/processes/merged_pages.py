"""`/metrics`, `/health` and `/ready` of several brokers' processes at one address.

Each of them answers at an address of its own, for this process only, and is asked when somebody
asks here. Every sample gets a label `broker`, which is the only change: what a broker writes has
one form, so lines are given the label as they are. To have prometheus-client read a page and write
it again takes a hundred times as long, which would be taken from the brokers on the same cores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import trio

from ....broker.metrics.http_request import HEALTH_PATH, JSON, METRICS_PATH, answer
from ....runtime.offload import run_in_abandoned_thread, run_in_thread
from .broker_child import BrokerChild

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
ANSWER_SECONDS_MAX: Final = 5.0
"""Half of what Prometheus waits for a scrape, if nobody tells it otherwise."""
OK, UNAVAILABLE = 200, 503

UP: Final = "odradek_broker_up"
RESTARTS: Final = "odradek_broker_restarts_total"
OWN_HELP: Final = {
    UP: ("gauge", "Whether the broker's process runs, and has answered this scrape."),
    RESTARTS: ("counter", "How often the broker's process was started again after it ended."),
}
"""What a page says of the processes besides."""

_PAIR = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Answered(NamedTuple):
    """What a broker answered: a status of HTTP, and a body."""

    status: int
    body: bytes


class MergedPages:
    """The pages of several brokers.

    Args:
        children: their processes.
    """

    def __init__(self, children: Sequence[BrokerChild]) -> None:
        self._children = children
        self._turn = trio.Lock()

    async def answer(self, path: str) -> list[bytes]:
        """The whole answer of HTTP to a request.

        Args:
            path: one of `PATHS`.
        """
        if path == METRICS_PATH:
            async with self._turn:
                pages = await self._ask_all(path)
                text = await run_in_thread(lambda: self._metrics(pages))
            return answer(text.encode(), CONTENT_TYPE)
        return self._verdict(path, await self._ask_all(path))

    async def _ask_all(self, path: str) -> dict[int, Answered]:
        """What each broker answers; one that does not is left out."""
        answers: dict[int, Answered] = {}

        async def ask(child: BrokerChild) -> None:
            with trio.move_on_after(ANSWER_SECONDS_MAX):
                answered = await run_in_abandoned_thread(lambda: _get(child.metrics_url, path))
                if answered is not None:
                    answers[child.broker_id] = answered

        async with trio.open_nursery() as nursery:
            for child in self._children:
                if child.metrics_url:
                    nursery.start_soon(ask, child)
        return answers

    def _metrics(self, pages: Mapping[int, Answered]) -> str:
        texts = {
            broker_id: page.body.decode()
            for broker_id, page in sorted(pages.items())
            if page.status == OK
        }
        lines = []
        for name, (kind, help_) in OWN_HELP.items():
            lines += [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]
            for child in self._children:
                value = child.broker_id in texts if name == UP else max(child.starts - 1, 0)
                lines.append(f'{name}{{broker="{child.broker_id}"}} {int(value)}')
        return "\n".join(lines) + "\n" + merged(texts)

    def _verdict(self, path: str, answers: Mapping[int, Answered]) -> list[bytes]:
        """Of `/health` or `/ready`: each broker's own, and what they come to together.

        That a broker is between two lives is a warning in `/health`: it is started again already,
        and who restarts all for its sake takes away the others.
        """
        brokers, reasons, is_failing = [], [], False
        for child in self._children:
            answered = answers.get(child.broker_id)
            if answered is not None:
                found, is_wrong = json.loads(answered.body), answered.status != OK
            else:
                found = {"state": _state(child), "reasons": [_reason(child)]}
                is_wrong = path != HEALTH_PATH or bool(child.address)
            is_failing |= is_wrong
            reasons += [f"broker {child.broker_id}: {reason}" for reason in found["reasons"]]
            own = {"pid": child.pid, "restarts": max(child.starts - 1, 0)}
            brokers.append({"broker_id": child.broker_id} | found | own)
        body = {
            "status": "failing" if is_failing else "warning" if reasons else "ok",
            "reasons": reasons,
            "brokers": brokers,
        }
        text = json.dumps(body).encode("ascii") + b"\n"
        return answer(text, JSON, UNAVAILABLE if is_failing else OK)


def _state(child: BrokerChild) -> str:
    return "running" if child.address else "not running" if child.pid is None else "starting"


def _reason(child: BrokerChild) -> str:
    """Why a broker has not answered."""
    if child.address:
        return f"it has not answered for {ANSWER_SECONDS_MAX:.0f} s"
    return "its process has ended" if child.pid is None else "the broker is starting"


def _get(url: str, path: str) -> Answered | None:
    """What a broker answers; None if it does not. Blocks: for a thread."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=ANSWER_SECONDS_MAX)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return Answered(response.status, response.read())
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def merged(texts: Mapping[int, str]) -> str:
    """One page of several brokers' metrics.

    Args:
        texts: each broker's page, by its number.
    """
    families: dict[str, list[str]] = {}
    for broker_id, text in texts.items():
        family: list[str] = []
        is_first = True
        for line in text.splitlines():
            if line.startswith("# HELP "):
                name = line.split(" ", 3)[2]
                is_first = name not in families
                family = families.setdefault(name, [])
            if not line.startswith("#"):
                family.append(labelled(line, str(broker_id)))
            elif is_first:
                family.append(line)
    return "".join(f"{line}\n" for lines in families.values() for line in lines)


def labelled(sample: str, broker: str) -> str:
    """A line of a page, with the label that says which broker it is of.

    What has such a label with another value, as metrics that clients push may, keeps it as
    `exported_broker`: that is what Prometheus calls labels that meet its own.

    Args:
        sample: NAME VALUE or NAME{LABELS} VALUE.
        broker: the label's value.
    """
    label = f'broker="{broker}"'
    name, brace, rest = sample.partition("{")
    if not brace:
        name, _, value = sample.partition(" ")
        return f"{name}{{{label}}} {value}"
    if 'broker="' not in rest:
        return f"{name}{{{label},{rest}"
    pairs, end = [label], 0
    for pair in _PAIR.finditer(rest):
        if pair[0] != label:
            pairs.append(f"exported_{pair[0]}" if pair[1] == "broker" else pair[0])
        end = pair.end()
    return f"{name}{{{','.join(pairs)}{rest[end:]}"
