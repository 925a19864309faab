"""`odradek serve`: start a broker and say when it is ready.

This module is the fast path: it imports no more than a broker needs, so typer and rich
stay out, and `argparse` only reads what `options` does not, and shows the help.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ...runtime.collector import pause_collection, resume_collection
from ..common.passed_options import PASSED_ON
from .announced import metrics_line, ready_line
from .options import DEFAULT_DATA_DIR, DEFAULT_LISTEN, Options, plain_options

if TYPE_CHECKING:
    from ...broker.metrics.endpoint import MetricsListener
    from ...config.broker_config import BrokerConfig
    from .console_process import ConsoleProcess

ANY_PORT = "127.0.0.1:0"
SWITCH_SECONDS = 0.0002
"""A thread that imports lets the broker's loop have the interpreter after so long. Python's 5 ms
are waited for after each system call: an answer beside it would take 30."""


def main(arguments: Sequence[str]) -> int:
    """Run the broker; returns the exit code.

    Args:
        arguments: the command line after `serve`.
    """
    pause_collection()
    options = read_options(arguments)
    if options.processes and options.brokers == 1:
        print("odradek serve: --processes needs --brokers N, with two or more.", file=sys.stderr)
        return 2
    if options.stop_at_end_of_input:
        from .end_of_input import stop_at_end_of_input

        stop_at_end_of_input()
    if options.json:
        return _serve_for_tests(options)
    stop = EarlyStop()
    if not options.ephemeral:
        return _serve(options, options.data_dir, stop)
    return _serve_ephemeral(options, stop)


def read_options(arguments: Sequence[str]) -> Options:
    """What a command line of `serve` says; ends the process where it asks for help or is wrong."""
    plain = plain_options(arguments)
    if plain is not None:
        return plain
    from .parser import make_parser

    return make_parser().parse_args(arguments, Options())


class EarlyStop:
    """Keeps in mind that SIGINT or SIGTERM came while the broker was starting.

    An exception out of a signal handler can be lost in whatever code it meets; so the start
    goes on, a fraction of a second, and ends where the broker would listen to signals.
    """

    def __init__(self) -> None:
        self._requested = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: object) -> None:
        self._requested = True

    def __call__(self) -> bool:
        """Whether the broker is to stop before it has started."""
        return self._requested


def _serve_ephemeral(options: Options, stop: EarlyStop) -> int:
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="odradek-")
    try:
        return _serve(options, folder, stop)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _serve_for_tests(options: Options) -> int:
    """Brokers with a control channel, which keep nothing and end with whoever started them."""
    from ...config.definition import ConfigError
    from ...config.listeners import external_settings

    _begin_to_serve()
    refused = {
        "--json needs --ephemeral: its brokers are for tests, and keep nothing": (
            not options.ephemeral
        ),
        "--json has no --broker-id: brokers are numbered from 1": options.broker_id is not None,
        "--json has no --zookeeper: its brokers are a cluster of their own": (
            options.zookeeper is not None
        ),
        "--json has no --cluster-dir: its brokers are a cluster of their own": (
            options.cluster_dir is not None
        ),
        "--json has no --metrics": options.metrics is not None,
        "--json has no --processes: each of its brokers is one already": options.processes,
        "--json has no --console: run `odradek console` with the line's --bootstrap-server and "
        "--control": options.console is not None,
    }
    for sentence, is_so in refused.items():
        if is_so:
            print(f"odradek serve: {sentence}.", file=sys.stderr)
            return 2
    try:
        settings = {**_properties(options), **_overrides(options)}
        if options.external is not None:
            external_settings(f"PLAINTEXT://{options.listen or ANY_PORT}", options.external)
    except ConfigError as error:
        print(f"odradek serve: {error}", file=sys.stderr)
        return 2
    from ...testing.http_control.serving import serve

    _log_to_stderr(options)
    return serve(options.brokers, settings, options.listen or ANY_PORT, options.external)


def _serve(options: Options, data_dir: str | None, stop: EarlyStop) -> int:
    from ...config.broker_config import BrokerConfig
    from ...config.definition import ConfigError

    try:
        properties, overrides = _sources(options, data_dir)
        each = _with_external(options, overrides_of_each(options.brokers, properties, overrides))
        configs = [BrokerConfig.from_sources(properties, one) for one in each]
        metrics = _bind_metrics(options)
        console = _make_console(options)
    except ConfigError as error:
        print(f"odradek serve: {error}", file=sys.stderr)
        return 2
    _log_to_stderr(options)
    folder = overrides.get("log.dirs") or str(configs[0]["log.dirs"][0])
    with console or nullcontext():
        if options.processes:
            return _run_processes(options, each, folder, stop, metrics, console)
        return _run(configs, folder, stop, metrics, options.await_brokers, console)


def _make_console(options: Options) -> ConsoleProcess | None:
    """The console, if one is wanted.

    Raises:
        ConfigError: there can be none.
    """
    passed_on = [
        f"{option.flag}={value}"
        for option in PASSED_ON
        for value in _values(getattr(options, option.name))
    ]
    if options.console is None:
        flags = ["--console-write"] if options.console_write else passed_on
        if not flags:
            return None
        from ...config.definition import ConfigError

        flag, _, _ = flags[0].partition("=")
        raise ConfigError(f"{flag} is for a console: give --console HOST:PORT, too.")
    from .console_process import ConsoleProcess

    return ConsoleProcess(options.console, passed_on, may_write=options.console_write)


def _values(given: str | list[str] | None) -> Sequence[str]:
    """The values of an option, whether it may be repeated or not."""
    return [given] if isinstance(given, str) else given or []


def _bind_metrics(options: Options) -> Sequence[MetricsListener]:
    """Where metrics will be served, of each broker or of all; nowhere unless --metrics is given.

    Raises:
        ConfigError: the address cannot be had.
    """
    if options.metrics is None:
        return ()
    from ...broker.metrics.endpoint import bind_metrics

    return bind_metrics(options.metrics, 1 if options.processes else options.brokers)


def overrides_of_each(
    count: int, properties: Mapping[str, str], overrides: dict[str, str]
) -> list[dict[str, str]]:
    """The command line's settings for each of `count` brokers of one command.

    They get the ids from `broker.id` or 1 on, the ports that follow the first, a folder each below
    the data folder, and one file of metadata there.

    Raises:
        ConfigError: the settings cannot be shared out so.
    """
    from ...config.definition import ConfigError

    if count == 1:
        return [overrides]
    folder = overrides.get("log.dirs", "")
    if not folder or "," in folder:
        raise ConfigError("--brokers needs one data folder: name it with --data-dir.")
    host, _, port = overrides.get("listeners", "").rpartition(":")
    if "," in host or not port.isdigit():
        raise ConfigError("--brokers needs one listener: name it with --listen HOST:PORT.")
    first_id = overrides.get("broker.id", properties.get("broker.id", "1"))
    if not first_id.isdecimal():
        raise ConfigError(f"--brokers needs the first one's id to be a number, not {first_id}.")
    return [
        {
            **overrides,
            "broker.id": str(int(first_id) + number),
            "listeners": f"{host}:{int(port) + number if int(port) else 0}",
            "log.dirs": os.path.join(folder, f"broker-{int(first_id) + number}"),
            "metadata.log.dir": overrides.get("metadata.log.dir", folder),
        }
        for number in range(count)
    ]


def _with_external(options: Options, overrides: list[dict[str, str]]) -> list[dict[str, str]]:
    """The same, where each broker has a listener for containers and other hosts besides.

    Raises:
        ConfigError: `--external` cannot be had.
    """
    if options.external is None:
        return overrides
    from ...config.definition import ConfigError
    from ...config.listeners import external_settings

    host, _, port = options.external.rpartition(":")
    if not port.isdecimal() or int(port) == 0:
        raise ConfigError(f"--external {options.external}: write it as HOST:PORT, with a port.")
    if any("listeners" not in each or "," in each["listeners"] for each in overrides):
        raise ConfigError("--external needs one listener beside it: name it with --listen.")
    return [
        {**each, **external_settings(each["listeners"], f"{host}:{int(port) + number}")}
        for number, each in enumerate(overrides)
    ]


def _run(
    configs: Sequence[BrokerConfig],
    folder: str,
    stop: EarlyStop,
    metrics: Sequence[MetricsListener],
    companions: frozenset[int],
    console: ConsoleProcess | None,
) -> int:
    """Run brokers in this process.

    Args:
        configs: of each.
        folder: where topics are kept.
        stop: whether a signal has come already.
        metrics: where those of each are served.
        companions: brokers of other processes that are there before these are ready.
        console: looks at them, if one is wanted.
    """
    from ...broker.start import StartError, run_brokers
    from .load_progress import LoadProgressLine

    progress = LoadProgressLine(sys.stderr)

    def announce(addresses: str) -> None:
        progress.end()
        _announce(addresses, folder, metrics, console)

    try:
        run_brokers(configs, announce, stop, progress, metrics, companions=companions)
    except StartError as error:
        progress.end()
        print(f"odradek serve: {error}", file=sys.stderr)
        return 1
    return 0


def _run_processes(
    options: Options,
    settings: Sequence[Mapping[str, str]],
    folder: str,
    stop: EarlyStop,
    metrics: Sequence[MetricsListener],
    console: ConsoleProcess | None,
) -> int:
    """Run each broker in a process of its own.

    Args:
        options: of the command line.
        settings: of each broker.
        folder: where topics are kept.
        stop: whether a signal has come already.
        metrics: where those of all are served, if they are.
        console: looks at them, if one is wanted.
    """
    import trio

    from .processes.broker_child import BrokerChild
    from .processes.broker_processes import BrokerProcesses, ProcessesFailedError
    from .processes.merged_log import MergedLog

    arguments = ["--log-level", options.log_level, "--log-format", options.log_format]
    if options.config is not None:
        arguments += ["--config", options.config]
    if metrics:
        arguments += ["--metrics", ANY_PORT]
    log = MergedLog(sys.stderr, options.log_format)
    children = [BrokerChild(int(each["broker.id"]), each, arguments, log) for each in settings]

    def announce(addresses: str) -> None:
        _announce(addresses, folder, metrics, console)

    processes = BrokerProcesses(children, announce, metrics[0] if metrics else None)
    try:
        trio.run(processes.run, stop)
    except ProcessesFailedError as failure:
        print(f"odradek serve: {failure}", file=sys.stderr)
        return 1
    return 0


def _announce(
    addresses: str,
    folder: str,
    metrics: Sequence[MetricsListener],
    console: ConsoleProcess | None,
) -> None:
    """Say that all brokers serve, and start what looks at them."""
    from .service_manager import notify_ready

    _begin_to_serve()
    if metrics:
        print(metrics_line(",".join(each.url for each in metrics)), flush=True)
    print(ready_line(addresses, folder, seconds_since_start()), flush=True)
    notify_ready(addresses)
    if console is not None:
        console.start(addresses, [each.url for each in metrics])


def _properties(options: Options) -> dict[str, str]:
    """The settings file's settings.

    Raises:
        ConfigError: the file cannot be read.
    """
    from ...config.definition import ConfigError
    from ...config.properties import Properties, parse_properties

    if options.config is None:
        return Properties("")
    try:
        content = Path(options.config).read_bytes()
    except OSError as error:
        raise ConfigError(f"--config {options.config}: {error.strerror}.") from error
    return parse_properties(content, options.config)


def _overrides(options: Options) -> dict[str, str]:
    """The settings of `-o`.

    Raises:
        ConfigError: one is not KEY=VALUE.
    """
    from ...config.definition import ConfigError

    overrides: dict[str, str] = {}
    for setting in options.settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"-o {setting}: write it as -o KEY=VALUE.")
        overrides[key.strip()] = value.strip()
    return overrides


def _sources(options: Options, data_dir: str | None) -> tuple[dict[str, str], dict[str, str]]:
    """The settings file's settings, and those of the command line.

    Raises:
        ConfigError: the file cannot be read, or an option is not KEY=VALUE.
    """
    properties = _properties(options)
    overrides = _overrides(options)
    if options.broker_id is not None:
        overrides["broker.id"] = str(options.broker_id)
    if options.zookeeper is not None:
        overrides["zookeeper.connect"] = options.zookeeper
    if options.cluster_dir is not None:
        overrides["metadata.log.dir"] = options.cluster_dir
    if options.listen is not None:
        overrides["listeners"] = f"PLAINTEXT://{options.listen}"
    elif "listeners" not in properties and "listeners" not in overrides:
        overrides["listeners"] = f"PLAINTEXT://{DEFAULT_LISTEN}"
    if data_dir is not None:
        overrides["log.dirs"] = data_dir
    elif not {"log.dirs", "log.dir"} & {*properties, *overrides}:
        overrides["log.dirs"] = DEFAULT_DATA_DIR
    return properties, overrides


def _log_to_stderr(options: Options) -> None:
    from ...common.log_lines import LEVELS, log_to_stderr

    log_to_stderr(LEVELS[options.log_level.upper()], options.log_format)


def seconds_since_start() -> float:
    """Seconds since this process was started, as the operating system counts them.

    Where it cannot be read, since the interpreter began to run Python code.
    """
    try:
        with open("/proc/self/stat", encoding="ascii") as stat:
            started_ticks = int(stat.read().rpartition(")")[2].split()[19])
        started = started_ticks / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started
    except (OSError, ValueError, AttributeError):
        return time.process_time()


def _begin_to_serve() -> None:
    """What a start does not need, and threads that opened logs together would suffer from."""
    resume_collection()
    sys.setswitchinterval(SWITCH_SECONDS)
