"""`python -m odradek.testing.process.broker`: a broker that ends with the test run that started it.

It is the product's broker with one thing added: it ends by itself, and leaves nothing behind, when
the process it was started for is gone, however that one ended. `odradek serve` knows nothing of
it.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

from ...broker.start import Environment, StartError, run_brokers
from ...common.log_lines import log_to_stderr
from ...config.broker_config import BrokerConfig
from ...config.definition import ConfigError
from ...config.properties import Properties
from ..control.framing import TOKEN_VARIABLE
from ..control.server import ADDRESS_PREFIX, ControlServer
from .process_end import wait_for_end
from .secret_settings import ADD_SCRAM, take_secret_settings


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
    settings |= take_secret_settings()
    log_to_stderr(logging.INFO)
    first_user = settings.pop(ADD_SCRAM, None)
    if first_user is not None:
        _add_scram_user(settings.get("metadata.log.dir") or folder, first_user)

    control = _open_control() if options.control else None

    def announce(addresses: str) -> None:
        if control is not None:
            control.start()
            print(f"{ADDRESS_PREFIX}{control.address}", flush=True)
        seconds = time.monotonic() - began
        print(f"odradek ready at {addresses}, data in {folder}, {seconds:.2f} s", flush=True)

    try:
        config = BrokerConfig.from_sources(Properties(""), settings)
        run_brokers([config], announce, stop.is_set, environment=_surroundings(control, options))
    except (ConfigError, StartError) as error:
        print(f"odradek.testing.process.broker: {error}", file=sys.stderr)
        return 1
    return 0


def _add_scram_user(folder: str, user: str) -> None:
    """Have a user in the metadata before the broker starts, who may be the broker itself.

    Args:
        folder: of the metadata store.
        user: mechanism, name and password, as a JSON list.
    """
    import json
    from pathlib import Path

    import trio

    from ...broker.dynamic_config.stored_users import users_in_folder
    from ...protocol.sasl.scram import ITERATIONS_MIN

    mechanism, name, password = json.loads(user)

    async def add() -> None:
        async with users_in_folder(Path(folder)) as users:
            if mechanism not in (await users.describe()).get(name, {}):
                await users.set_password(name, password, mechanism, ITERATIONS_MIN)

    trio.run(add)


def _open_control() -> ControlServer:
    """A control channel for whoever holds the token of this process's environment.

    The token is taken out of the environment, so that no child inherits it.
    """
    token = os.environ.pop(TOKEN_VARIABLE, "")
    if not token:
        raise SystemExit(f"--control needs a token in the environment variable {TOKEN_VARIABLE}")
    return ControlServer(token)


def _surroundings(control: ControlServer | None, options: argparse.Namespace) -> Environment | None:
    """What the broker lives in if it may be broken; the operating system's if not."""
    if control is None:
        return None
    from ..outages.environment import breakable_environment

    return breakable_environment(
        control.attach,
        ahead_ms=options.time_ahead,
        skew_ms=options.clock_wrong,
        cuts={**dict.fromkeys(options.cut, False), **dict.fromkeys(options.cut_silently, True)},
    )


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m odradek.testing.process.broker",
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
    parser.add_argument(
        "--control",
        action="store_true",
        help=f"open a control channel on 127.0.0.1, for holders of the token in {TOKEN_VARIABLE}",
    )
    outages = parser.add_argument_group("outages that hold from the start, with --control")
    outages.add_argument(
        "--time-ahead", metavar="MS", type=int, default=0, help="how far its time is ahead"
    )
    outages.add_argument(
        "--clock-wrong", metavar="MS", type=int, default=0, help="how wrong its wall clock is"
    )
    for option, how in (("--cut", "is refused"), ("--cut-silently", "lets nothing through")):
        outages.add_argument(
            option,
            metavar="PORT",
            type=int,
            action="append",
            default=[],
            help=f"the link to the broker at this port {how}",
        )
    return parser


def _setting(text: str) -> str:
    key, equals, _ = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"write it as -o KEY=VALUE, not {text!r}")
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
