"""`docs/metrics.md`, written from the table of metrics."""

from __future__ import annotations

from ...broker.metrics.metric import Metric, MetricType
from ...broker.metrics.metric_table import METRICS

METRICS_PAGE_HEAD = """# Metrics

Written by `python -m odradek.tools.docs.metrics_page`; a test holds it current.

```console
$ odradek serve --metrics localhost:9404
$ curl http://localhost:9404/metrics
```

With `--brokers N` each broker has its own page, on N ports from that one on, as N Kafka brokers
would; with `--processes` there is one page, on which each sample has a label `broker`, and which
says in `odradek_broker_up` and `odradek_broker_restarts_total` how the processes are
([operations.md](operations.md#several-processes-one-command)).
`odradek cluster --metrics URL` shows some of it live. `/health` and `/ready` are beside it:
[operations.md](operations.md#is-it-well-does-it-serve). A dashboard for Grafana is
[grafana-dashboard.json](grafana-dashboard.json), which `python -m odradek.broker.metrics.dashboard`
prints.

The names are those under which Prometheus knows Kafka: what the JMX exporter makes of Kafka's
MBeans by `examples/kafka-2_0_0.yml` of its repository. Dashboards and alerts made for that work.
They were compared with what Apache Kafka 4.3.1 shows that way; three things differ:

- `kafka_network_requestmetrics_totaltimems` is a summary with `_count` and `_sum`; the exporter
  has no sum, and since its version 1.0 it writes `_count_total`.
- `kafka_server_socket_server_metrics_...` are not named by those rules; they have the form that
  the exporter gives to what no rule names.
- A log directory stands in its label without the quotation marks that JMX needs.

Counters of a topic appear when they are first counted, as Kafka's do. So does what else has labels
once there is something to tell: a group, a partition, a refused write; and what is measured for
quotas and limits of connections where there is one. A topic that is no more on
a broker takes its counters with it; the totals, which have no label `topic`, keep them. Records
and bytes count when they are appended in memory; if the disk then refuses them, the producer
gets an error, and they were counted. A Fetch counts once for each of its partitions, in Kafka
twice if it had to wait.

A quantile is taken from the requests of the last minute or two, or of the time since the scrape
before that. Times under 64 ms are exact to the millisecond, longer ones to a thirty-second.

While there is a subscription, clients push their metrics (KIP-714):

```console
$ odradek configs alter --client-metrics all metrics='*' interval.ms=10000
```

The newest values stand on the page of the broker that a client pushes to:
`org.apache.kafka.producer.record.send.total` of a Java producer is
`client_org_apache_kafka_producer_record_send_total`, labelled with `client_id` and
`client_instance_id`.

Besides these there are prometheus-client's own `process_...`: memory, CPU time, open files. They
are the process's, so brokers that share one show the same.

| name | type | labels | Kafka's MBean | meaning |
|---|---|---|---|---|
"""


def metrics_page() -> str:
    """The whole page."""
    return METRICS_PAGE_HEAD + "".join(_row(metric) for metric in METRICS.values())


def _row(metric: Metric) -> str:
    labels = [*metric.labels, *(["quantile"] if metric.type is MetricType.SUMMARY else [])]
    cells = (
        f"`{metric.name}`",
        metric.type.value,
        ", ".join(labels),
        f"`{metric.mbean}`" if metric.mbean else "only odradek",
        metric.help,
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    print(metrics_page(), end="")
