"""What the interop tests need: other languages' tools, built once, and a way to run them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.java_tools import JavaTools
from support.kafka_jars import command_of_java, kafka_jars
from support.kafka_process import KafkaProcess

HERE = Path(__file__).parent
RUN_SECONDS_MAX = 300
BUILD_SECONDS_MAX = 600

Run = Callable[..., str]


def need(tool: str, how: str) -> str:
    """The path of a tool; without it the test fails, because nobody would notice a skip."""
    path = shutil.which(tool)
    if path is None:
        pytest.fail(f"`{tool}` is not installed: {how}", pytrace=False)
    return path


def run_to_end(*command: str, seconds_max: int = RUN_SECONDS_MAX, **how: object) -> str:
    """Run a program and return its standard output; it fails the test if it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds_max, check=False, **how
        )
    except subprocess.TimeoutExpired as error:
        reported = f"{error.stdout or b''!r}\n{error.stderr or b''!r}"
        pytest.fail(f"{command} took more than {seconds_max} s\n{reported}", pytrace=False)
    return output_of(done)


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    """The standard output of what ran to its end; it fails the test if it failed."""
    if done.returncode != 0:
        reported = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        pytest.fail(f"{done.args} ended with {done.returncode}\n{reported}", pytrace=False)
    return done.stdout


@pytest.fixture
def run() -> Run:
    return run_to_end


@pytest.fixture(scope="session")
def kafka_libs() -> Path:
    """The folder of Kafka's jars, with `java/`'s classes built."""
    return kafka_jars()


@pytest.fixture(scope="session")
def java_command() -> list[str]:
    """What goes before the name of a class of Kafka's, or of `java/`, to run it."""
    return command_of_java()


@pytest.fixture(scope="session")
def tools(java_command: list[str]) -> Iterator[JavaTools]:
    """Kafka's tools, in one process."""
    with JavaTools(java_command) as tools:
        yield tools


@pytest.fixture(scope="session")
def java(java_command: list[str], tools: JavaTools) -> Run:
    """Run a class of Kafka's, or of `java/`, by its name: `java("org...Tool", "--option")`.

    One of `java/`, one that reads standard input, and one that has work left for its end, such as
    `VerifiableProducer`, has a process of its own.
    """

    def run_class(name: str, *arguments: str, **how: object) -> str:
        if how or name.startswith("odradek.") or name.endswith(".VerifiableProducer"):
            return run_to_end(*java_command, name, *arguments, **how)
        return output_of(tools.run(name, *arguments))

    return run_class


@pytest.fixture(scope="session")
def kafka(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    """A real Kafka, whose files tests may look at and exchange while it is stopped."""
    settings = {
        "log.retention.check.interval.ms": "3600000",
        "log.cleaner.backoff.ms": "50",
        "log.flush.offset.checkpoint.interval.ms": "200",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "transaction.state.log.num.partitions": "1",
        "auto.create.topics.enable": "false",
    }
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaProcess(kafka_libs, folder / "data", settings=settings) as process:
        yield process


@pytest.fixture(scope="session")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the franz-go program of `go/`."""
    go = need("go", "install Go, of the version that tests/interop/go/go.mod names or later.")
    program = tmp_path_factory.mktemp("go") / "roundtrip"
    build = (go, "build", "-o", str(program), ".")
    run_to_end(*build, cwd=HERE / "go", seconds_max=BUILD_SECONDS_MAX)
    return str(program)


@pytest.fixture(scope="session")
def node() -> Run:
    """Run a script of `node/` with KafkaJS at hand."""
    runtime = need("node", "install Node.js of 18 or later, such as Debian's nodejs.")
    npm = need("npm", "install npm, such as Debian's npm.")
    install = (npm, "ci", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=5")
    run_to_end(*install, cwd=HERE / "node", seconds_max=BUILD_SECONDS_MAX)

    def run_script(name: str, *arguments: str, **how: object) -> str:
        return run_to_end(runtime, str(HERE / "node" / name), *arguments, **how)

    return run_script


@pytest.fixture(scope="session")
def kcat() -> Run:
    """Run kcat."""
    program = need("kcat", "install it, such as Debian's kcat.")

    def run_kcat(*arguments: str, **how: object) -> str:
        # By itself it gives a broker five seconds for metadata, and a busy machine may need more.
        return run_to_end(program, "-m", "60", *arguments, **how)

    return run_kcat
