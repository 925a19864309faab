"""All options of `odradek serve`, as argparse reads and explains them."""

from __future__ import annotations

import argparse

from ..common.passed_options import PASSED_ON
from .options import DEFAULT_DATA_DIR, DEFAULT_LISTEN, DEFAULTS

BROKERS_MAX = 100
"""Long before that, several machines serve better."""
LOG_LEVELS = ("fatal", "error", "warn", "info", "debug", "trace")
"""Those of `LEVELS` in `common/log_lines.py`, which is not imported for a help text."""

DESCRIPTION = """\
Start a Kafka broker and serve until it is stopped with Ctrl-C or SIGTERM.

When it is ready it prints one line: address, data folder, and the seconds it took."""

EXAMPLES = """\
examples:
  odradek serve                                  on localhost:9092, data in ./odradek-data
  odradek serve --ephemeral --listen 127.0.0.1:0 any free port, data gone when it stops
  odradek serve --ephemeral --json               for tests in any language: docs/control.md
  odradek serve -o num.partitions=4 -o auto.create.topics.enable=false
  odradek serve --config server.properties       Kafka's own settings file
  odradek serve --brokers 3                      a cluster in one process
  odradek serve --brokers 3 --processes          one process for each, on as many cores
  odradek serve --metrics localhost:9404         with metrics for Prometheus
  odradek serve --console localhost:9440         and with a page to look at in a browser
  odradek serve --log-level info --log-format json
                                                 what it does, for a collector of logs
  odradek serve --broker-id 2 --listen localhost:9093 --data-dir two --cluster-dir shared
                                                 one of several processes of this machine
  odradek serve --broker-id 1 --zookeeper zk1:2181/kafka
                                                 one of several machines

Settings have Kafka's names and defaults; the command line wins over the file.
docs/configuration.md lists them all."""


def make_parser() -> argparse.ArgumentParser:
    """What reads any command line of `serve`, and shows its help."""
    parser = argparse.ArgumentParser(
        prog="odradek serve",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="where to accept connections; port 0 takes a free one, `localhost` is IPv4 and "
        f"IPv6 (default: {DEFAULT_LISTEN}, or what the settings file says)",
    )
    parser.add_argument(
        "--external",
        metavar="HOST:PORT",
        help="a second listener on all interfaces, for clients in containers and on other hosts: "
        "HOST is what they know this machine by, such as host.docker.internal; of N brokers on N "
        "ports from this one on",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--data-dir",
        metavar="DIR",
        help=f"where topics are kept (default: ./{DEFAULT_DATA_DIR})",
    )
    where.add_argument(
        "--ephemeral",
        action="store_true",
        help="keep topics in a temporary folder and delete it when the broker stops",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="with --ephemeral, for tests in any language: print one JSON line when ready, with "
        "addresses and an HTTP control channel; end when standard input is closed or the parent "
        "ends (docs/control.md)",
    )
    parser.add_argument(
        "--brokers",
        metavar="N",
        type=_broker_count,
        help="run a cluster of N brokers in this process, on N ports from --listen on",
    )
    parser.add_argument(
        "--processes",
        action="store_true",
        help="with --brokers, run each in a process of its own: one that ends is started again, "
        "all are stopped together, log lines have their broker's number, --metrics is one page",
    )
    parser.add_argument(
        "--broker-id",
        metavar="ID",
        type=int,
        help="this broker's number in its cluster; of N brokers the first one's (default: 1)",
    )
    cluster = parser.add_mutually_exclusive_group()
    cluster.add_argument(
        "--zookeeper",
        metavar="HOST:PORT[/CHROOT]",
        help="be part of the cluster that this ZooKeeper knows (needs odradek[zookeeper])",
    )
    cluster.add_argument(
        "--cluster-dir",
        metavar="DIR",
        help="be part of the cluster of those brokers of this machine that name the same folder",
    )
    parser.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        help="serve Prometheus metrics at http://HOST:PORT/metrics, by the names that Kafka's have "
        "there; of N brokers on N ports from this one on, with --processes on this one",
    )
    parser.add_argument(
        "--console",
        metavar="HOST:PORT",
        help="show the cluster in a browser at http://HOST:PORT, from a process of its own "
        "(needs odradek[console]; docs/console.md)",
    )
    parser.add_argument(
        "--console-write",
        action="store_true",
        help="with --console: allow changes there; without it the console is read-only",
    )
    for option in PASSED_ON:
        parser.add_argument(
            option.flag,
            metavar=option.metavar,
            action="append" if option.is_repeated else "store",
            help=f"with --console: {option.help[0].lower()}{option.help[1:].removesuffix('.')}",
        )
    parser.add_argument(
        "--config", metavar="FILE", help="a settings file in the form of Kafka's server.properties"
    )
    parser.add_argument(
        "-o",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one setting, by Kafka's name; may be given many times",
    )
    level = parser.add_mutually_exclusive_group()
    level.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        help="what is logged to standard error (default: %(default)s); kafka-configs --entity-type "
        "broker-loggers changes it while the broker runs, for each logger",
    )
    level.add_argument(
        "-v",
        "--verbose",
        dest="log_level",
        action="store_const",
        const="info",
        help="log what the broker does: --log-level info",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        help="lines of text, or an object of JSON on each (default: %(default)s)",
    )
    # What --processes gives to the processes that it starts.
    parser.add_argument("--stop-at-end-of-input", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--await-brokers", type=_broker_ids, help=argparse.SUPPRESS)
    parser.set_defaults(**DEFAULTS)
    return parser


def _broker_ids(text: str) -> frozenset[int]:
    return frozenset(map(int, text.split(",")))


def _broker_count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= BROKERS_MAX:
        raise argparse.ArgumentTypeError(f"from 1 to {BROKERS_MAX}, not {count}")
    return count
