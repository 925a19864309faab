"""docs/apis.md, written from the handlers' registry: `python -m odradek.tools.docs.api_table`."""

from __future__ import annotations

from ...broker.handlers.registry import REGISTRATIONS
from ...protocol.api_keys import ApiKey
from ...protocol.messages import request_message

KAFKA_ADVERTISES = {
    0: (0, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 2),
    28: (0, 5),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    34: (1, 2),
    35: (1, 5),
    36: (0, 2),
    37: (0, 3),
    38: (1, 3),
    39: (1, 2),
    40: (1, 2),
    41: (1, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    49: (0, 1),
    50: (0, 0),
    51: (0, 0),
    55: (0, 2),
    57: (0, 2),
    60: (0, 2),
    61: (0, 0),
    64: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
    76: (1, 1),
    77: (1, 1),
    78: (1, 2),
    79: (1, 2),
    80: (0, 1),
    81: (0, 0),
    83: (0, 0),
    84: (0, 0),
    85: (0, 1),
    86: (0, 0),
    87: (0, 1),
    88: (0, 0),
    89: (0, 0),
    90: (0, 1),
    91: (0, 0),
    92: (0, 0),
}
"""API key to first and last version, as a Kafka 4.3.1 broker answers ApiVersions."""

ADVERTISED_WHERE = {
    ApiKey.ALTER_PARTITION: "where ZooKeeper keeps the cluster, as by Kafka 3.9",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "while there is a `client-metrics` subscription",
    ApiKey.PUSH_TELEMETRY: "while there is a `client-metrics` subscription",
}
"""What ApiVersions names under a condition only."""

_OF_QUORUMS = "between controllers of KRaft, of which there are none"
_TO_CONTROLLERS = "from brokers of KRaft to their controllers"
_OF_VOTERS = "for the voters of KRaft, of which there are none"

NOT_SERVED = {
    ApiKey.VOTE: _OF_QUORUMS,
    ApiKey.BEGIN_QUORUM_EPOCH: _OF_QUORUMS,
    ApiKey.END_QUORUM_EPOCH: _OF_QUORUMS,
    ApiKey.DESCRIBE_QUORUM: (
        "there is no quorum; Kafka's tools and kafbat-ui take a cluster without this API for one "
        "with ZooKeeper, and go on"
    ),
    ApiKey.ENVELOPE: (
        "requests for the controller are sent on as they are; Kafka 3.9 with ZooKeeper sends none"
    ),
    ApiKey.FETCH_SNAPSHOT: _OF_QUORUMS,
    ApiKey.BROKER_REGISTRATION: _TO_CONTROLLERS,
    ApiKey.BROKER_HEARTBEAT: _TO_CONTROLLERS,
    ApiKey.UNREGISTER_BROKER: (
        "a broker is registered for as long as its session lives: one that stopped needs no more"
    ),
    ApiKey.CONTROLLER_REGISTRATION: _OF_QUORUMS,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: _TO_CONTROLLERS,
    ApiKey.ADD_RAFT_VOTER: _OF_VOTERS,
    ApiKey.REMOVE_RAFT_VOTER: _OF_VOTERS,
    ApiKey.UPDATE_RAFT_VOTER: _OF_VOTERS,
}
"""Why not."""

API_PAGE_HEAD = """# APIs

Written by `python -m odradek.tools.docs.api_table`; a test holds it current.

"Served" are the versions that this broker answers, "advertised" those that ApiVersions
names where they differ, "schema" those that `odradek.protocol` can read and write: all that
Kafka 4.3.1 or 3.9 has. "Kafka 4.3.1" is what its brokers advertise; it is empty for APIs of
controllers (4 to 7 ended with ZooKeeper). An API without a served range is not advertised;
requests for it close the connection, as with any Kafka that does not know them. The last column
says why an API is not served, or where it is advertised.

| key | API | served | advertised | schema | Kafka 4.3.1 | remarks |
|---:|---|---|---|---|---|---|
"""


def api_table() -> str:
    """The whole page."""
    rows = []
    for api_key in ApiKey:
        registration = REGISTRATIONS.get(api_key)
        served = advertised = ""
        if registration is not None:
            served = _format(registration.versions)
            if registration.advertised is None:
                advertised = "no"
            elif registration.advertised != registration.versions:
                advertised = _format(registration.advertised)
        kafka = KAFKA_ADVERTISES.get(api_key)
        name = request_message(api_key).name.removesuffix("Request")
        schema = _format(request_message(api_key).versions)
        theirs = "" if kafka is None else _format(range(kafka[0], kafka[1] + 1))
        remark = NOT_SERVED.get(api_key, "")
        if registration is not None:
            where = ADVERTISED_WHERE.get(api_key)
            remark = f"advertised {where}" if where else ""
        cells = (str(int(api_key)), name, served, advertised, schema, theirs, remark)
        rows.append("| " + " | ".join(cells) + " |")
    return API_PAGE_HEAD + "\n".join(rows) + "\n"


def _format(versions: range) -> str:
    first, last = versions.start, versions.stop - 1
    return str(first) if first == last else f"{first}-{last}"


if __name__ == "__main__":
    import sys

    sys.stdout.write(api_table())
