"""The life of a group: `python -m support.group_history churn|static KIND BOOTSTRAP TOPIC COUNT`.

Members of the client KIND come and go, or restart; each AssertionError is something wrong.
"""

from __future__ import annotations

import os
import sys
import traceback

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # it has it
from kafka.admin import KafkaAdminClient

from .churn_clients import AiokafkaLoop, JoinGroup, confluent_group, kafka_python_group
from .group_churn import GroupChurn, check_static_restarts, instance_of
from .odradek_members import in_turns, odradek_group
from .own_process import watch_the_interpreter
from .watched_group import WatchedGroup

PARTITIONS = 24
SECONDS_MAX = 60.0
KINDS = [
    "confluent classic eager",
    "confluent classic cooperative",
    "confluent consumer uniform",
    "confluent consumer range",
    "kafka-python",
    "aiokafka",
    "odradek classic range",
    "odradek classic cooperative-sticky",
    "odradek consumer uniform",
    "odradek consumer range",
    "mixed classic range",
    "mixed classic cooperative-sticky",
    "mixed consumer uniform",
]
"""The mixed ones are groups of our members and of others at the same time."""


def churn(kind: str, bootstrap: str, topic: str, rebalances: int) -> None:
    """Let members come and go; nothing may be wrong, and their last commits are there."""
    watch = WatchedGroup(range(PARTITIONS))
    group = f"group-{topic}"
    join = join_group(kind, watch, bootstrap, topic, group)
    history = GroupChurn(watch, join, bootstrap, topic, seed=8)

    history.run(rebalances)

    history.check()
    generations = watch.ownership.generations()
    assert generations[-1] - generations[0] >= rebalances
    assert watch.resumption.resumed > rebalances
    assert committed(bootstrap, group) == watch.resumption.acknowledged


def restart_static_members(kind: str, bootstrap: str, topic: str, _: int) -> None:
    """Let static members restart; nobody else may notice."""
    watch = WatchedGroup(range(PARTITIONS), instance_of)
    join = join_group(kind, watch, bootstrap, topic, f"group-{topic}")
    check_static_restarts(watch, join, bootstrap, topic)


HISTORIES = {"churn": churn, "static": restart_static_members}


def join_group(kind: str, watch: WatchedGroup, bootstrap: str, topic: str, group: str) -> JoinGroup:
    """How to start members.

    Args:
        kind: one of `KINDS`.
        watch: whom they tell.
        bootstrap, topic, group: where they read.
    """
    where = (watch, bootstrap, topic, group)
    if kind == "kafka-python":
        return kafka_python_group(*where)
    if kind == "aiokafka":
        return AiokafkaLoop().__enter__().group(*where)  # it ends with the process
    library, protocol, assignor = kind.split()
    if library == "odradek":
        return odradek_group(*where, protocol=protocol, assignor=assignor)
    if library == "mixed":
        others = {
            "range": ["confluent classic eager", "kafka-python", "aiokafka"],
            "cooperative-sticky": ["confluent classic cooperative"],
            "uniform": ["confluent consumer uniform"],
        }[assignor]
        return in_turns(
            odradek_group(*where, protocol=protocol, assignor=assignor),
            *(join_group(other, *where) for other in others),
        )
    if protocol == "consumer":
        return confluent_group(*where, protocol=protocol, group_remote_assignor=assignor)
    strategy = {"eager": "range", "cooperative": "cooperative-sticky"}[assignor]
    return confluent_group(*where, protocol=protocol, partition_assignment_strategy=strategy)


def create_topic(bootstrap: str, topic: str) -> None:
    """Create the topic that a group reads."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})
    (made,) = admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
    made.result(SECONDS_MAX)


def committed(bootstrap: str, group: str) -> dict[int, tuple[int, str]]:
    """What the coordinator says was committed: by partition, the offset and the words with it."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    found = admin.list_group_offsets(group)[group]
    admin.close()
    # confluent-kafka ends the words it commits with a NUL.
    return {each.partition: (at.offset, at.metadata.rstrip("\0")) for each, at in found.items()}


def main() -> None:
    """Run the history that the command line names, on a topic made for this try."""
    watch_the_interpreter()
    history, kind, bootstrap, topic, rebalances = sys.argv[1:]
    topic = f"{topic}-{os.getpid()}"
    try:
        create_topic(bootstrap, topic)
        HISTORIES[history](kind, bootstrap, topic, int(rebalances))
    except BaseException:
        traceback.print_exc()
        code = 1
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a client that does not close after a failure would keep this process


if __name__ == "__main__":
    main()
