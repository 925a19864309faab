"""`odradek serve --console`: the page's command, and a console that lives as long as its broker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from support.documented import Terminal, blocks_of, commands_of
from support.http_control import ServedBrokers
from support.ports import ports_in_a_row

from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

PAGE = "docs/console.md"
SECONDS_MAX = 60


def status_of(url: str) -> int | None:
    """The status of a page; None where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS_MAX) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


@contextmanager
def serving(*arguments: str, ready: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker with a console, and where that is; `ready` begins a line that it says first."""
    program = [sys.executable, "-m", "odradek", "serve", "--ephemeral", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*program, "--console", "localhost:0", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for begin in filter(None, (ready, "odradek ready at ")):
            assert process.stdout.readline().startswith(begin)
        found = re.fullmatch(r"console at (http://localhost:\d+)\n", process.stdout.readline())
        assert found is not None
        yield process, found[1]
    finally:
        process.kill()
        process.wait(SECONDS_MAX)
        process.stdout.close()


def test_command_of_the_page_starts_both(tmp_path: Path) -> None:
    with ports_in_a_row(2) as first, Terminal(tmp_path, {9092: first, 9440: first + 1}) as terminal:
        block, *_ = blocks_of(PAGE, "console")
        assert terminal.run(block) == 1
        assert status_of(f"http://localhost:{first + 1}/topics") == 200
    assert status_of(f"http://localhost:{first + 1}/topics") is None


def test_other_commands_of_the_page_start_a_console(tmp_path: Path) -> None:
    _, alone, shared, of_tests = blocks_of(PAGE, "console")
    with ServedBrokers() as served, ports_in_a_row(1) as port:
        page = {
            "kafka1:9092": served.bootstrap_servers,
            "127.0.0.1:41001": served.bootstrap_servers,
            "http://127.0.0.1:41007": served.ready["control"],
            "0.0.0.0:9440": f"127.0.0.1:{port}",
        }
        for block in (alone, shared, of_tests):
            with Terminal(tmp_path, {9092: port}) as terminal:
                for command, _ in commands_of(block):
                    for name, value in page.items():
                        command = command.replace(name, value)
                    if command.startswith("export "):
                        terminal.command(command)
                        continue
                    if "--listen" not in command:
                        command += f" --listen localhost:{port}"
                    assert terminal.start(command, "console at ...").startswith("console at http")
                    assert status_of(f"http://localhost:{port}/topics") == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_console_ends_with_its_broker(number: signal.Signals) -> None:
    with serving() as (process, url):
        assert status_of(f"{url}/") == 200
        process.send_signal(number)
        process.wait(SECONDS_MAX)
        wait_until(lambda: status_of(f"{url}/") is None)


def test_console_beside_a_broker_is_read_only_unless_told() -> None:
    with serving() as (_, url):
        assert status_of(f"{url}/new-topic") == 200
        with urllib.request.urlopen(f"{url}/") as page:
            assert b"Read-only" in page.read()
    with serving("--console-write") as (_, url), urllib.request.urlopen(f"{url}/") as page:
        assert b"Changes allowed" in page.read()


def test_metrics_of_the_broker_are_on_the_first_page() -> None:
    with serving("--metrics", "127.0.0.1:0", ready="metrics at ") as (_, url):

        def shown() -> bool:
            status_of(f"{url}/topics")  # has the console ask for metadata, now and then
            with urllib.request.urlopen(f"{url}/traffic") as part:
                text = part.read().decode()
            return "Metadata" in text and "Bytes in" in text

        with urllib.request.urlopen(f"{url}/") as page:
            assert b'hx-get="/traffic"' in page.read()
        wait_until(shown)


def test_schemas_of_keys_and_values_are_passed_on(tmp_path: Path) -> None:
    fields = [{"name": "id", "type": "long"}]
    schema = {"type": "record", "name": "Order", "fields": fields}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    (tmp_path / "id.avsc").write_text('"int"')
    of_files = [f"--schema=orders={tmp_path}/order.avsc", f"--key-schema=orders={tmp_path}/id.avsc"]
    arguments = ["--registry", "http://127.0.0.1:1", *of_files]
    with serving("--console-write", *arguments) as (_, url):
        page = urllib.request.urlopen(f"{url}/login").read().decode()
        (secret,) = re.findall('name="csrf" value="([^"]+)"', page)

        def post(path: str, **fields: str) -> str:
            body = urlencode({"csrf": secret, **fields}).encode()
            request = urllib.request.Request(f"{url}{path}", body, {"Origin": url})
            with urllib.request.urlopen(request) as answer:  # of the page that it leads to
                return str(answer.read().decode())

        post("/topics", name="orders")
        as_hex = {"key_as": "hex", "value_as": "hex"}
        shown = post("/topics/orders/produce", key="8001", value="8001", **as_hex)
    assert "By the schema in order.avsc." in shown
    assert "By the schema in id.avsc." in shown
    assert "&#34;id&#34;: 64" in shown  # as Avro's specification has the example of 80 01


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--console", "9440"], "write it as HOST:PORT"),
        (["--console-write"], "give --console HOST:PORT"),
        (["--schema", "a=b.avsc"], "--schema is for a console: give --console HOST:PORT"),
        (["--key-schema", "a=b.avsc"], "--key-schema is for a console"),
        (["--registry", "http://localhost"], "--registry is for a console"),
        (["--ephemeral", "--json", "--console", "localhost:0"], "--json has no --console"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "odradek", "serve", "--listen", "127.0.0.1:0", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        cwd=tmp_path,
    )
    assert outcome.returncode == 2
    assert sentence in outcome.stderr


def test_broker_without_a_console_imports_nothing_for_it() -> None:
    program = (
        "import sys\n"
        "import odradek.cli.serve.command, odradek.broker.start\n"
        "print([name for name in sys.modules if 'console' in name or 'starlette' in name"
        " or 'jinja2' in name or 'hypercorn' in name])\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    ).stdout
    assert printed == "[]\n"
