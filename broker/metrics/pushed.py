"""What clients pushed (KIP-714), under names that Prometheus takes.

`org.apache.kafka.producer.record.send.total` becomes
`client_org_apache_kafka_producer_record_send_total`: the first word keeps clients from inventing
metrics of the broker's. Labels are the client's instance id, its id and what it sent itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...runtime.rng import uuid_to_text
from .source import MetricsContext

Labels = tuple[tuple[str, str], ...]

_NOT_IN_NAMES = re.compile("[^a-zA-Z0-9_]")


def pushed_samples(source: MetricsContext) -> Iterator[tuple[str, Labels, float]]:
    """The newest values: name, labels and value. Two may have the same name and labels."""
    for client in source.context.client_metrics.clients():
        own = {
            "client_instance_id": uuid_to_text(client.id),
            "client_id": client.attributes["client_id"],
        }
        for (name, labels), series in list(client.series.items()):
            total = "_total" if series.is_counter and not name.endswith(".total") else ""
            given = {_plain(label): value for label, value in labels}
            pairs = tuple(sorted((given | own).items()))
            yield f"client_{_plain(name)}{total}", pairs, series.value


def _plain(name: str) -> str:
    """A name of letters, digits and underscores; two in front are Prometheus's own."""
    plain = _NOT_IN_NAMES.sub("_", name).lstrip("_")
    return plain if plain and not plain[0].isdigit() else f"n_{plain}"
