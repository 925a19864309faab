"""`docs/control.md`, written from the table of operations."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ...testing.faults.matcher import LOOKED_AT
from ...testing.http_control.operation import IN_PATH, Argument, Operation, arguments_of
from ...testing.http_control.operations import CONDITIONS, FAULTS, MEANINGS, TABLE

CONTROL_PAGE_HEAD = """# Brokers for tests in any language

Written by `python -m odradek.tools.docs.control_page`; a test holds it current. Tests in Python
have [fixtures](testing.md) that do the same.

A test starts a process and reads one line:

```console
$ odradek serve --ephemeral --json --brokers 3
{"bootstrap_servers": "127.0.0.1:41001,127.0.0.1:41003,127.0.0.1:41005",
 "control": "http://127.0.0.1:41007", "control_port": 41007,
 "brokers": [{"id": 1, "address": "127.0.0.1:41001"}, ...], "pid": 4242}
```

The line (it is one line) comes when all brokers serve, less than a second later. `--brokers` is 1
unless it is given, `-o KEY=VALUE` and `--config FILE` are settings of all of them, and
`--listen HOST:PORT` says where the first one listens. With `--external host.docker.internal:0` the
line has `external_bootstrap_servers`, too, [for containers](testing.md#containers-and-other-hosts).
Ports are free ones, and data lie in a temporary folder that goes with the process. The settings
differ from Kafka's defaults as those of the [fixtures](testing.md#settings) do.

## How it ends

- When its **standard input is closed**, if that is a pipe: keep the pipe open as long as the test
  runs. A process that ends, also by SIGKILL, closes its pipes, so a crashed test run leaves nothing
  behind.
- When the **process that started it has ended**. That holds without a pipe, too: Go's
  `exec.Command` gives `/dev/null`, which says nothing.
- By SIGTERM or Ctrl-C.

Brokers end with it, however it ends, and the temporary folder is removed. In a shell,
`odradek serve --ephemeral --json &` ends with that shell.

## Examples

Each starts a broker, produces and consumes, sets a fault and sees it strike, lets time pass, waits,
and stops; the one of share groups looks at the records in flight, and takes one back from its
worker. They run in `make test-all`.

"""
REQUESTS = """
## Requests

```console
$ curl -s -X POST localhost:41007/faults \\
    -d '{"fault": "lose_answer", "api": "Produce", "topic": "orders", "times": 1}'
{"id": 1, "fault": "handle Produce for topic 'orders', and close the connection in place of
 the answer; once", "strikes": 0, "matches": 0}
```

Arguments of a POST are the fields of a JSON object, which may be left out where nothing is needed;
those of GET and DELETE stand in the query; those in the path are encoded as in any URL. Answers are
JSON objects, `{}` where there is nothing to say. An error is `{"error": "..."}`, a sentence that
says what would be right, or what was seen in place of what was waited for.

| status | means |
|---|---|
| 200 | it is done |
| 400, 404, 405, 413, 431 | the request is wrong |
| 403 | it comes from a page in a browser, or names another host |
| 409 | the cluster refuses |
| 503 | there are 128 connections already |
| 504 | what was waited for has not come about in time |

Requests that wait are answered as soon as it is true: the server looks at the brokers, every 50 ms
at the latest, so a client has nothing to poll. Any number of requests may be under way at once;
those that start and end brokers are done one after another.

## Who may send them

The channel listens on 127.0.0.1 only. It wants no password: whoever has a shell on the machine can
use it, as they can the brokers. Pages in a browser cannot: a request is refused unless its `Host`
is 127.0.0.1, localhost or [::1] (which DNS rebinding cannot have), and if it has an `Origin` that
is not one of these. A body is at most 1 MB, and there are at most 128 connections.

## Operations

What is bold must be given.

"""
FAULTS_HEAD = """
## Faults

What `POST /faults` takes as `fault`, with the arguments that each has besides those above. All but
`refuse_connections` take {narrowing}, too: what is left out is not looked at.
What clients make of each fault is in [faults.md](faults.md).

"""
CONDITIONS_HEAD = """
## Conditions

What `POST /wait` takes as `condition`, with the arguments that each has besides `timeout`.

"""
ARGUMENTS_HEAD = """
## Arguments

A name means the same everywhere.

| argument | meaning |
|---|---|
"""


EXAMPLE_FILES = (
    (
        "Java (JUnit 5)",
        "kafka-clients",
        "java/src/test/java/shop",
        "OrdersTest.java",
        "Odradek.java",
    ),
    (
        "Java (JUnit 5), share groups",
        "kafka-clients",
        "java/src/test/java/shop",
        "SharedWorkTest.java",
        "Odradek.java",
    ),
    ("Go (`testing`)", "franz-go", "go", "orders_test.go", "odradek.go"),
    ("JavaScript (`node:test`)", "KafkaJS", "javascript", "orders.test.js", "odradek.js"),
)
EXAMPLES = [
    [language, client, *(f"[{file}](../examples/{folder}/{file})" for file in files)]
    for language, client, folder, *files in EXAMPLE_FILES
]


def control_page() -> str:
    """The whole page."""
    return "".join(
        [
            CONTROL_PAGE_HEAD,
            _table(["language", "client", "test", "helper"], EXAMPLES),
            REQUESTS,
            _table(["request", "arguments", "what it does", "answers"], map(_row, TABLE)),
            FAULTS_HEAD.format(narrowing=", ".join(f"`{name}`" for name in LOOKED_AT)),
            _functions("fault", FAULTS, LOOKED_AT),
            CONDITIONS_HEAD,
            _functions("condition", CONDITIONS),
            ARGUMENTS_HEAD,
            *(f"| `{name}` | {meaning} |\n" for name, meaning in sorted(MEANINGS.items())),
        ]
    )


def _row(operation: Operation) -> list[str]:
    in_path = set(IN_PATH.findall(operation.path))
    arguments = [each for name, each in operation.arguments.items() if name not in in_path]
    shown = [_shown(each) for each in arguments]
    if operation.choice is not None:
        field = operation.choice.field
        shown.insert(0, f"**`{field}`**: a [{field}](#{field}s)")
    summary = " ".join(operation.summary.split())
    return [
        f"`{operation.method} {operation.path}`",
        ", ".join(shown),
        summary,
        operation.answers,
    ]


def _shown(argument: Argument) -> str:
    """An argument with its type; what is needed is bold."""
    if argument.is_required:
        return f"**`{argument.name}`**: {argument.words}"
    default = "" if argument.default is None else f" = {json.dumps(argument.default)}"
    return f"`{argument.name}`: {argument.words}{default}"


def _functions(
    head: str, functions: Mapping[str, Callable[..., Any]], but: Collection[str] = ()
) -> str:
    rows = [
        [
            f"`{name}`",
            ", ".join(map(_shown, arguments_of(function, but).values())),
            (function.__doc__ or "").partition("\n\n")[0].replace("\n    ", " "),
        ]
        for name, function in functions.items()
    ]
    return _table([head, "arguments", "what it is"], rows)


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    print(control_page(), end="")
