"""`python -m odradek.testing.broker`: a broker that ends with the test run that started it.

It is the product's broker with one thing added: it ends by itself, and leaves nothing behind, when
a process that it was told of is gone, however that one ended. `odradek serve` knows nothing of
it.
"""

from __future__ import annotations

import argparse
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Sequence

from ..broker.config.broker_config import BrokerConfig
from ..broker.config.definition import ConfigError
from ..broker.config.properties import Properties
from ..broker.start import StartError, run_brokers

LOOK_SECONDS = 0.5
"""How often it is looked whether the parent is alive, where the system cannot tell by itself."""


def main(arguments: Sequence[str]) -> int:
    """Run a broker until SIGTERM, SIGINT, or the end of the process named; returns the exit code.

    Args:
        arguments: the command line.
    """
    options = _parser().parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if options.exit_with is not None:
        _end_with(options.exit_with, options.leftovers)
    return _serve(options, stop)


def _serve(options: argparse.Namespace, stop: threading.Event) -> int:
    began = time.monotonic()
    folder = options.data_dir
    settings = {"listeners": f"PLAINTEXT://{options.listen}", "log.dirs": folder}
    settings |= dict(setting.split("=", 1) for setting in options.settings)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )

    def announce(addresses: str) -> None:
        seconds = time.monotonic() - began
        print(f"odradek ready at {addresses}, data in {folder}, {seconds:.2f} s", flush=True)

    try:
        config = BrokerConfig.from_sources(Properties(""), settings)
        run_brokers([config], announce, stop.is_set)
    except (ConfigError, StartError) as error:
        print(f"odradek.testing.broker: {error}", file=sys.stderr)
        return 1
    return 0


def _end_with(pid: int, leftovers: Sequence[str]) -> None:
    """Have this process end, and remove folders, once process `pid` is gone.

    Nobody needs what it would keep by stopping in good order. It becomes the program that
    removes the folders, so that nothing of it can write to them meanwhile; of several brokers
    with one folder the last removes what the others have left or made.
    """

    def wait() -> None:
        wait_for_end(pid)
        os.execvp("rm", ["rm", "-rf", "--", *leftovers])

    threading.Thread(target=wait, name=f"waits for the end of {pid}", daemon=True).start()


def wait_for_end(pid: int) -> None:
    """Block until a process that is no child of this one is gone.

    Args:
        pid: its number.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # not on this system
        while _is_alive(pid):
            time.sleep(LOOK_SECONDS)
        return
    try:
        select.select([descriptor], [], [])
    finally:
        os.close(descriptor)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m odradek.testing.broker",
        description="Start a broker for tests; it prints one line when it is ready.",
    )
    parser.add_argument("--listen", metavar="HOST:PORT", default="127.0.0.1:0")
    parser.add_argument("--data-dir", metavar="DIR", required=True, help="where topics are kept")
    parser.add_argument(
        "-o", dest="settings", metavar="KEY=VALUE", action="append", default=[], type=_setting
    )
    parser.add_argument(
        "--exit-with", metavar="PID", type=int, help="stop when this process is gone"
    )
    parser.add_argument(
        "--leftover",
        dest="leftovers",
        metavar="DIR",
        action="append",
        default=[],
        help="a folder to remove if that process is gone first",
    )
    return parser


def _setting(text: str) -> str:
    key, equals, _ = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"write it as -o KEY=VALUE, not {text!r}")
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
