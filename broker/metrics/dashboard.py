"""A Grafana dashboard of a cluster's metrics, as JSON that Grafana imports.

Rows go from what must be looked at now to what is good to know. Every query is one that Prometheus
is sent; a test runs each against a Prometheus that scrapes brokers at work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

COLUMNS = 24
"""Of Grafana's grid."""
HEIGHT = 8
SCHEMA_VERSION = 39
RATE = "$__rate_interval"
JOB = 'job=~"$job"'
BROKER = 'job=~"$job",instance=~"$instance"'
TOTAL = ',topic=""'
OF_A_TOPIC = ',topic!=""'
ERRORS = ',error!="NONE"'
P99 = ',quantile="0.99"'


class Panel(NamedTuple):
    """One panel.

    Attributes:
        title: above it.
        unit: Grafana's name of one.
        queries: PromQL, each with its legend.
        width: in columns of the grid.
        is_stat: a number, rather than a graph over time.
        alarm_from: numbers from this one on are red; None: none is.
    """

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    width: int = 8
    is_stat: bool = False
    alarm_from: float | None = None


def _select(metric: str, more: str = "") -> str:
    """A metric of the brokers that are chosen above the dashboard."""
    return f"{metric}{{{BROKER}{more}}}"


def _sum(by: str, metric: str, more: str = "") -> str:
    return f"sum by ({by}) ({_select(metric, more)})"


def _rate(by: str, metric: str, more: str = "") -> str:
    """Of a counter, a second."""
    return f"sum by ({by}) (rate({_select(metric, more)}[{RATE}]))"


def _number(title: str, query: str, alarm_from: float | None = None) -> Panel:
    return Panel(title, "short", ((query, ""),), 4, True, alarm_from)


def _alarm(title: str, metric: str) -> Panel:
    """How many there are of what there should be none of."""
    return _number(title, f"sum({metric}{{{JOB}}})", 1)


def _graph(title: str, unit: str, query: str, legend: str = "{{instance}}") -> Panel:
    return Panel(title, unit, ((query, legend),))


_CONTROLLER = "kafka_controller_kafkacontroller_"
_REPLICAS = "kafka_server_replicamanager_"
_TOPICS = "kafka_server_brokertopicmetrics_"
_REQUESTS = "kafka_network_requestmetrics_"
_GROUPS = "kafka_coordinator_group_groupmetadatamanager_"
_NETWORK = "kafka_server_socket_server_metrics_"
_WAITING = "kafka_server_delayedoperationpurgatory_numdelayedoperations"
_STATE = "kafka_server_kafkaserver_brokerstate"

ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Health",
        (
            _number("Brokers that serve", f"count({_STATE}{{{JOB}}} == 3) or vector(0)"),
            _number("Active controllers", f"sum({_CONTROLLER}activecontrollercount{{{JOB}}})"),
            _alarm("Partitions without a leader", f"{_CONTROLLER}offlinepartitionscount"),
            _alarm("Under-replicated partitions", f"{_REPLICAS}underreplicatedpartitions"),
            _alarm("Below min.insync.replicas", f"{_REPLICAS}underminisrpartitioncount"),
            _alarm("Offline directories", "kafka_log_logmanager_offlinelogdirectorycount"),
            _alarm("Full directories", "odradek_log_directory_full"),
            _graph(
                "Refused writes",
                "ops",
                _rate("instance, error", "odradek_refused_writes_total"),
                "{{instance}} {{error}}",
            ),
            _graph(
                "Failed background tasks",
                "ops",
                _rate("instance, task", "odradek_background_task_failures_total"),
                "{{instance}} {{task}}",
            ),
        ),
    ),
    (
        "Load",
        (
            _graph("Records in", "ops", _rate("instance", f"{_TOPICS}messagesin_total", TOTAL)),
            _graph("Bytes in", "Bps", _rate("instance", f"{_TOPICS}bytesin_total", TOTAL)),
            _graph("Bytes out", "Bps", _rate("instance", f"{_TOPICS}bytesout_total", TOTAL)),
            _graph(
                "Ten busiest topics, bytes in",
                "Bps",
                f"topk(10, {_rate('topic', f'{_TOPICS}bytesin_total', OF_A_TOPIC)})",
                "{{topic}}",
            ),
            _graph(
                "Bytes replicated",
                "Bps",
                _rate("instance", f"{_TOPICS}replicationbytesin_total"),
            ),
            _graph("Size of the logs", "bytes", _sum("instance", "kafka_log_log_size")),
        ),
    ),
    (
        "Requests",
        (
            _graph(
                "Requests", "reqps", _rate("request", f"{_REQUESTS}requests_total"), "{{request}}"
            ),
            _graph(
                "Time to the answer, 99 %",
                "ms",
                f"max by (request) ({_select(f'{_REQUESTS}totaltimems', P99)})",
                "{{request}}",
            ),
            _graph(
                "Errors",
                "ops",
                _rate("request, error", f"{_REQUESTS}errors_total", ERRORS) + " > 0",
                "{{request}} {{error}}",
            ),
            _graph(
                "Requests that wait",
                "short",
                _sum("delayedOperation", _WAITING),
                "{{delayedOperation}}",
            ),
            _graph(
                "Connections",
                "short",
                _sum("instance, listener", f"{_NETWORK}connection_count"),
                "{{instance}} {{listener}}",
            ),
            _graph(
                "Connections refused",
                "ops",
                _rate("instance, reason", "odradek_connections_refused_total"),
                "{{instance}} {{reason}}",
            ),
        ),
    ),
    (
        "Replication",
        (
            _graph(
                "Largest lag of a replica, in records",
                "short",
                f"max by (instance) ({_select('kafka_server_replicafetchermanager_maxlag')})",
            ),
            Panel(
                "Changes of ISRs",
                "ops",
                (
                    (_rate("instance", f"{_REPLICAS}isrshrinks_total"), "{{instance}} shrinks"),
                    (_rate("instance", f"{_REPLICAS}isrexpands_total"), "{{instance}} expands"),
                ),
            ),
            _graph("Leaders", "short", _sum("instance", f"{_REPLICAS}leadercount")),
        ),
    ),
    (
        "Groups and process",
        (
            _graph(
                "Groups",
                "short",
                _sum("protocol", "kafka_server_group_coordinator_metrics_group_count"),
                "{{protocol}}",
            ),
            _graph(
                "Classic groups that rebalance",
                "short",
                _sum("instance", f"{_GROUPS}numgroupspreparingrebalance")
                + " + "
                + _sum("instance", f"{_GROUPS}numgroupscompletingrebalance"),
            ),
            _graph("CPU", "percentunit", _rate("instance", "process_cpu_seconds_total")),
            _graph("Memory", "bytes", _sum("instance", "process_resident_memory_bytes")),
            _graph(
                "Open files",
                "percentunit",
                f"{_select('process_open_fds')} / {_select('process_max_fds')}",
            ),
        ),
    ),
)

VARIABLES = (
    ("job", f"label_values({_STATE}, job)"),
    ("instance", f"label_values({_STATE}{{{JOB}}}, instance)"),
)


def dashboard() -> str:
    """The dashboard as Grafana imports it; it has the data source chosen when it is imported."""
    panels: list[dict[str, object]] = []
    y = 0
    for title, row in ROWS:
        panels.append({**_place(len(panels), 0, y, COLUMNS, 1), "type": "row", "title": title})
        panels += _panels(row, len(panels), y + 1)
        y += 1 + HEIGHT * -(-sum(each.width for each in row) // COLUMNS)
    variables = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        *(
            {
                "name": name,
                "type": "query",
                "query": query,
                "datasource": _DATA_SOURCE,
                "refresh": 2,
                "multi": True,
                "includeAll": True,
                "current": {"text": "All", "value": "$__all"},
            }
            for name, query in VARIABLES
        ),
    ]
    made = {
        "title": "odradek",
        "uid": "odradek",
        "tags": ["kafka", "odradek"],
        "schemaVersion": SCHEMA_VERSION,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": variables},
        "panels": panels,
    }
    return json.dumps(made, indent=1) + "\n"


_DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def _place(number: int, x: int, y: int, width: int, height: int) -> dict[str, object]:
    return {"id": number + 1, "gridPos": {"x": x, "y": y, "w": width, "h": height}}


def _panels(row: Sequence[Panel], number: int, y: int) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    x = 0
    for panel in row:
        if x + panel.width > COLUMNS:
            x, y = 0, y + HEIGHT
        made.append({**_place(number + len(made), x, y, panel.width, HEIGHT), **_content(panel)})
        x += panel.width
    return made


def _content(panel: Panel) -> dict[str, object]:
    steps: list[dict[str, object]] = [{"color": "green", "value": None}]
    if panel.alarm_from is not None:
        steps.append({"color": "red", "value": panel.alarm_from})
    defaults = {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    return {
        "type": "stat" if panel.is_stat else "timeseries",
        "title": panel.title,
        "datasource": _DATA_SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": query, "legendFormat": legend}
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }


if __name__ == "__main__":
    print(dashboard(), end="")
