"""Four people meet odradek for the first time, with the wheel alone: what each does must work.

Run by `.ci/smoke` in an empty folder, with the Python that the wheel was installed for. A reader
goes through the tutorial; someone who tests with pytest takes tests from docs/testing.md; a data
engineer moves records with commands; an operator looks at a broker that runs. The pages, and what
reads them, are copies beside this file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from support.documented import Terminal, blocks_of
from support.ports import ports_in_a_row

SETTINGS = "[pytest]\naddopts = -p no:cacheprovider\nfilterwarnings = ignore::DeprecationWarning\n"
NEEDS_MORE = re.compile(r"aiokafka|confluent|tls=True|sasl=|schema_registry")
"""Blocks with these need packages that this reader has not installed."""
TIMEOUT_S = 120


def read_and_repeat(terminal: Terminal, folder: Path) -> None:
    """The reader: README.md's first program, and all of the tutorial."""
    (tested,) = blocks_of("docs/tutorial.md", "python")
    (folder / "test_orders.py").write_text(tested.text)
    commands = sum(terminal.run(each) for each in blocks_of("docs/tutorial.md", "console"))
    assert commands > 10, commands
    (program,) = blocks_of("README.md", "python")
    (folder / "hello.py").write_text(terminal.local(program.text))
    assert terminal.bash("python -W ignore hello.py") == "0 b'en' b'hello'\n"


def test_with_fixtures(terminal: Terminal, folder: Path) -> None:
    """The pytest user: every test of docs/testing.md that needs kafka-python only."""
    blocks = [
        each.text
        for each in blocks_of("docs/testing.md", "python")
        if "from kafka" in each.text and not NEEDS_MORE.search(each.text)
    ]
    for number, block in enumerate(blocks):
        (folder / f"test_of_page_{number}.py").write_text(block)
    tests = sum(block.count("def test_") for block in blocks)
    assert len(blocks) >= 5
    printed = terminal.bash("pytest -q test_of_page_*.py")
    assert f"{tests} passed" in printed, printed


def move_records(terminal: Terminal, folder: Path) -> None:
    """The data engineer: JSON, large records, formats, sentences for mistakes."""
    run = terminal.bash
    run("odradek topics create copy --partitions 1 && odradek topics create large")
    run("echo far | odradek produce orders --partition 2")
    source = "odradek consume orders --from-beginning --until-end --format json"
    refused = fails(terminal, f"{source} | odradek produce copy --format json")
    assert "partition" in refused
    assert "Traceback" not in refused
    run(f"{source} | odradek produce copy --format json --repartition")
    kept = r"odradek consume copy --from-beginning --until-end --format '%k=%s\n' 2>/dev/null"
    assert "bob=1 pear\n" in run(kept)
    (folder / "large.txt").write_text("x" * 900_000 + "\r\n")
    run("odradek produce large --file large.txt")
    assert len(run("odradek consume large --from-beginning --until-end 2>/dev/null")) == 900_001
    (folder / "wrong.properties").write_text("security.protocl=SSL\n")
    wrong = fails(terminal, "odradek topics list --command-config wrong.properties")
    assert "security.protocol" in wrong
    assert "retention.ms" in fails(terminal, "odradek topics create y -c retention.mss=1")
    run("odradek configs alter --topic copy retention.ms=3600000")
    assert "3600000" in run("odradek configs describe --topic copy")
    run("odradek groups reset-offsets packers --all-topics --to-earliest --execute")
    described = run("odradek groups describe packers")
    assert re.search("lag [1-9]", described), described


def look_after_it(folder: Path) -> None:
    """The operator: probes, metrics, logs, verification of files, a stop, and another start."""
    program = [str(Path(sys.executable).with_name("odradek"))]
    arguments = ["--log-level", "info", "--log-format", "json", "--metrics", "127.0.0.1:0"]
    serve = [*program, "serve", "--listen", "127.0.0.1:0", "--data-dir", "looked-after"]
    for topics in (["create", "kept"], ["describe", "kept"]):
        with (folder / "log").open("w") as log:
            broker = subprocess.Popen(
                [*serve, *arguments], stdout=subprocess.PIPE, stderr=log, text=True
            )
        try:
            assert broker.stdout is not None
            metrics, ready = broker.stdout.readline(), broker.stdout.readline()
            url = re.search(r"http://\S+(?=/metrics)", metrics)
            address = re.search(r"127\.0\.0\.1:\d+", ready)
            assert url is not None, metrics
            assert address is not None, ready
            assert json.loads(page(f"{url[0]}/health"))["status"] == "ok"
            assert json.loads(page(f"{url[0]}/ready"))["state"] == "running"
            assert "kafka_log_logmanager_offlinelogdirectorycount" in page(f"{url[0]}/metrics")
            there = ["--bootstrap-server", address[0]]
            for command in (
                ["topics", *topics, *there],
                ["cluster", "--once", *there],
                ["log", "verify", "--live", "looked-after"],
            ):
                done(program, command)
            broker.terminate()
            assert broker.wait(TIMEOUT_S) == 0
        finally:
            broker.kill()
            broker.wait()
        events = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
        assert {"timestamp", "level", "logger", "message", "broker_id"} <= events[0].keys()
    assert "0 findings" in done(program, ["log", "verify", "looked-after"])


def done(program: list[str], command: list[str]) -> str:
    """What a command says that must do its work."""
    ended = subprocess.run(
        [*program, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def page(url: str) -> str:
    """What a page says."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        text: str = answer.read().decode()
    return text


def fails(terminal: Terminal, command: str) -> str:
    """What a command says that must fail."""
    return terminal.bash(f"if {command} 2>&1; then exit 9; fi")


def main() -> None:
    """Fail with an assertion at the first thing that is not as it should be."""
    folder = Path.cwd()
    (folder / "pytest.ini").write_text(SETTINGS)
    began = time.monotonic()
    with ports_in_a_row(4) as first:
        ports = dict(zip((9092, 9192, 9193, 9194), range(first, first + 4), strict=True))
        with Terminal(folder, ports) as terminal:
            read_and_repeat(terminal, folder)
            reader = time.monotonic()
            move_records(terminal, folder)
            engineer = time.monotonic()
            test_with_fixtures(terminal, folder)
            tester = time.monotonic()
    look_after_it(folder)
    took = (reader - began, engineer - reader, tester - engineer, time.monotonic() - tester)
    names = ("reader", "data engineer", "pytest user", "operator")
    print("walks:", ", ".join(f"{name} {s:.0f} s" for name, s in zip(names, took, strict=True)))


if __name__ == "__main__":
    main()
