"""The table of what can be requested over HTTP; docs/control.md is written from it.

Each function is given the `ServedCluster` and what the request says, and returns what `json_of`
takes. The cluster may be one broker: that is a cluster, too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from .. import conditions
from ..conditions import Condition
from ..faults import kinds
from ..faults.fault import Fault
from ..inspection.records import ConsumerRecord, read_partition
from ..inspection.requests import Requests
from ..running_broker import Broker
from ..waiting import wait_until_async
from .operation import Choice, OperationTable, RequestRefused
from .served_cluster import ServedCluster, ServedFault, strikes_of

TABLE = OperationTable()
operation = TABLE.operation

LIMIT = 1000
"""How many records or requests an answer holds unless the request says otherwise."""
LIMIT_MAX = 100_000
TIMEOUT_SECONDS = 30.0
TIMEOUT_SECONDS_MAX = 3600.0
LOG_TAIL_BYTES = 64 * 1024

FAULTS: dict[str, Callable[..., Fault]] = {
    each.__name__: each
    for each in (
        kinds.answer,
        kinds.delay,
        kinds.delay_answer,
        kinds.drop,
        kinds.drop_answer,
        kinds.disconnect,
        kinds.lose_answer,
        kinds.truncate_answer,
        kinds.corrupt_answer,
        kinds.corrupt_records,
        kinds.throttle,
        kinds.half_open,
        kinds.refuse_login,
        kinds.expire_session,
        kinds.refuse_connections,
    )
}
"""What `POST /faults` may name, as `odradek.testing.faults` names it."""

CONDITIONS: dict[str, Callable[..., Condition]] = {
    each.__name__: each
    for each in (
        conditions.topic_exists,
        conditions.topic_gone,
        conditions.records_in,
        conditions.record_matching,
        conditions.offset_reached,
        conditions.group_stable,
        conditions.group_in_state,
        conditions.group_empty,
        conditions.group_gone,
        conditions.no_lag,
        conditions.lag_is,
        conditions.records_in_flight,
        conditions.delivery_count_reached,
        conditions.share_group_settled,
        conditions.leader_is,
        conditions.isr_is,
        conditions.transaction_is,
    )
}
"""What `POST /wait` may name, as `odradek.testing.conditions` names it."""

MEANINGS = {
    "after": "strike all requests but the first so many",
    "after_applying": "whether the request takes effect all the same",
    "api": "Kafka's name of the API, such as Produce",
    "at_least": "how many records there are to be",
    "broker": "the id of a broker",
    "brokers": "the ids of brokers",
    "byte": "which byte is turned over, from 0; without it one at random",
    "bytes_per_second": "how fast bytes pass",
    "client_id": "as the client's settings have it",
    "committed_only": "leave out what was aborted, and all from the first open transaction on",
    "count": "how often a record is to have been handed out",
    "config": "settings by Kafka's names",
    "days": "of 24 hours",
    "error": "Kafka's name of an error, such as NOT_LEADER_OR_FOLLOWER",
    "every": "strike every n-th request",
    "group": "the id of a group",
    "hours": "of 60 minutes",
    "id": "the number of a fault",
    "internal": "whether Kafka's own topics are named, too",
    "key": "of a record, as text",
    "limit": f"how many the answer holds at most, up to {LIMIT_MAX}",
    "member": "a member id, instance id or client id; without it all members",
    "members": "how many members there are to be; without it any number from 1 on",
    "minutes": "of 60 seconds",
    "most": "how many offsets it may be behind",
    "number": "of a log directory, from 0; without it all of them",
    "offset": "of a record",
    "on": "strike only the n-th request, from 1",
    "one": "the id of a broker",
    "other": "the id of another broker",
    "partition": "its number",
    "partitions": "how many",
    "probability": "strike each request with this probability, from 0 to 1",
    "probability_seed": "of the choice: the same seed strikes the same requests",
    "replication_factor": "how many replicas; without it three, or as many as there are brokers",
    "room_bytes": "how many bytes can still be written",
    "seconds": "in seconds, fractions too",
    "seed": "of the random choice",
    "silent": "nothing comes through and no connection is reset, as where a cable is pulled",
    "size": "how many bytes",
    "state": "as Kafka's tools print it",
    "timeout": f"how long to wait, in seconds, up to {TIMEOUT_SECONDS_MAX:g}",
    "times": "so often",
    "to": "the id of the broker",
    "topic": "the name of a topic",
    "transactional_id": "of a producer",
    "user": "who is logged in",
    "value": "of a record, as text",
    "version": "of the API: 9, 3-9 or 12+",
}
"""What arguments mean, by name: one name means one thing everywhere."""


# -- the cluster and its brokers ------------------------------------------------------------------


@operation("GET", "/", "where its brokers are, whether they run, and which `cut_links` there are")
def show_cluster(served: ServedCluster) -> dict[str, Any]:
    """Show the cluster's addresses and brokers. A broker is `running`, `frozen` or `down`."""
    return {
        "bootstrap_servers": served.cluster.bootstrap_servers,
        "brokers": [_broker_of(each) for each in served.cluster.brokers],
        "cut_links": served.cluster.cut_links(),
    }


def _broker_of(broker: Broker) -> dict[str, Any]:
    running = "frozen" if broker.is_frozen else "running"
    return {
        "id": broker.broker_id,
        "address": broker.bootstrap_servers,
        "state": running if broker.is_running else "down",
    }


@operation("POST", "/reset", "nothing")
def reset(served: ServedCluster) -> None:
    """Empty the cluster: topics, groups, transactions and settings of topics are gone.

    Faults are lifted. Connected clients stay so, and find their topics gone.
    """
    served.lift_all()
    served.cluster.reset()


@operation("POST", "/brokers", "the new broker", changes_processes=True)
def add_broker(served: ServedCluster, config: dict[str, str] | None = None) -> dict[str, Any]:
    """Start one broker more, of the next id. It has no replicas before a topic is made there."""
    return _broker_of(served.cluster.add_broker(config))


@operation("DELETE", "/brokers/{broker}", "nothing", changes_processes=True)
def remove_broker(served: ServedCluster, broker: int) -> None:
    """Stop a broker in good order, for good, and remove what it kept."""
    served.cluster.remove_broker(broker)


@operation("GET", "/brokers/{broker}/log", "the last 64 KB of the broker's log, as `log`")
def show_log(served: ServedCluster, broker: int) -> dict[str, str]:
    """Show what a broker has logged; faults and outages are in there, too."""
    return {"log": served.cluster.broker(broker).log[-LOG_TAIL_BYTES:]}


@operation("POST", "/brokers/{broker}/kill", "the broker", changes_processes=True)
def kill(served: ServedCluster, broker: int) -> dict[str, Any]:
    """End a broker's process at once (SIGKILL). Its data and port stay."""
    found = served.cluster.broker(broker)
    found.kill()
    return _broker_of(found)


@operation("POST", "/brokers/{broker}/stop", "the broker", changes_processes=True)
def stop(served: ServedCluster, broker: int) -> dict[str, Any]:
    """Stop a broker in good order (SIGTERM). Its data and port stay."""
    found = served.cluster.broker(broker)
    if found.is_running:
        found.stop()
    return _broker_of(found)


@operation("POST", "/brokers/{broker}/start", "the broker, which is ready", changes_processes=True)
def start(served: ServedCluster, broker: int) -> dict[str, Any]:
    """Start a broker that is down, on the same port and data."""
    found = served.cluster.broker(broker)
    if not found.is_running:
        found.start()
    return _broker_of(found)


@operation("POST", "/brokers/{broker}/freeze", "the broker", changes_processes=True)
def freeze(served: ServedCluster, broker: int) -> dict[str, Any]:
    """Stop a broker's process where it is (SIGSTOP): its sockets stay open, and nobody answers."""
    found = served.cluster.broker(broker)
    if not found.is_running:
        raise RequestRefused(409, f"broker {broker} is down, so it cannot be frozen")
    found.freeze()
    return _broker_of(found)


@operation("POST", "/brokers/{broker}/thaw", "the broker", changes_processes=True)
def thaw(served: ServedCluster, broker: int) -> dict[str, Any]:
    """Let a frozen broker go on."""
    found = served.cluster.broker(broker)
    found.thaw()
    return _broker_of(found)


# -- links and disks ------------------------------------------------------------------------------


@operation("POST", "/links/cut", "nothing")
def cut(served: ServedCluster, one: int, other: int, silent: bool = False) -> None:
    """Cut the link between two brokers, both ways; clients reach both of them as before."""
    served.cluster.cut(one, other, silent=silent)


@operation("POST", "/links/heal", "nothing")
def heal(served: ServedCluster, one: int | None = None, other: int | None = None) -> None:
    """Heal the link between two brokers, all links of one, or all there are."""
    served.cluster.heal(one, other)


@operation("POST", "/brokers/{broker}/isolate", "nothing")
def isolate(served: ServedCluster, broker: int, silent: bool = False) -> None:
    """Cut all links of a broker to others."""
    served.cluster.broker(broker)
    served.cluster.isolate(broker, silent=silent)


@operation("POST", "/brokers/{broker}/fill-disk", "nothing")
def fill_disk(
    served: ServedCluster, broker: int, room_bytes: int = 0, number: int | None = None
) -> None:
    """Fill the disks of a broker's log directories: appends are refused until there is room."""
    served.cluster.broker(broker).fill_disk(room_bytes=room_bytes, number=number)


@operation("POST", "/brokers/{broker}/free-disk", "nothing")
def free_disk(served: ServedCluster, broker: int, number: int | None = None) -> None:
    """Give the disks of a broker's log directories room again."""
    served.cluster.broker(broker).free_disk(number=number)


@operation(
    "GET", "/disks", "of each running broker, as `brokers`: its `id`, and which are `filled`"
)
def show_disks(served: ServedCluster) -> dict[str, Any]:
    """Show which disks of log directories are filled, by their numbers from 0."""
    running = served.cluster.running()
    return {"brokers": [{"id": each.broker_id, "filled": each.filled_disks()} for each in running]}


@operation("POST", "/brokers/{broker}/expire-metadata-session", "nothing")
def expire_metadata_session(served: ServedCluster, broker: int) -> None:
    """Have a broker's session with the metadata store expire, as after a long pause."""
    served.cluster.broker(broker).expire_metadata_session()


# -- topics ---------------------------------------------------------------------------------------


@operation("GET", "/topics", "their names, as `topics`")
def list_topics(served: ServedCluster, internal: bool = False) -> dict[str, list[str]]:
    """List the topics."""
    return {"topics": served.cluster.topics(internal=internal)}


@operation("POST", "/topics", "the topic, as `GET /topics/{topic}` shows it")
def create_topic(
    served: ServedCluster,
    topic: str,
    partitions: int = 1,
    replication_factor: int | None = None,
    config: dict[str, str] | None = None,
) -> object:
    """Create a topic; answered when all brokers know who leads its partitions."""
    served.cluster.create_topic(topic, partitions, replication_factor, config)
    return served.cluster.topic(topic)


@operation("GET", "/topics/{topic}", "its id, settings, and of each partition leader, ISR, offsets")
def show_topic(served: ServedCluster, topic: str) -> object:
    """Show a topic and its partitions, as their leaders see them."""
    return served.cluster.topic(topic)


@operation("DELETE", "/topics/{topic}", "nothing")
def delete_topic(served: ServedCluster, topic: str) -> None:
    """Delete a topic; answered when it and its logs are gone."""
    served.cluster.delete_topic(topic)


@operation(
    "GET", "/topics/{topic}/records", "the records, as `records`, and whether there are `more`"
)
def read_records(
    served: ServedCluster,
    topic: str,
    partition: int | None = None,
    offset: int = 0,
    committed_only: bool = False,
    limit: int = LIMIT,
) -> dict[str, Any]:
    """Read what consumers could read now, without a client: one partition, or one after the other.

    Keys, values and headers that are no UTF-8 are `{"base64": "..."}`.
    """
    most = _limit(limit)
    numbers = [each.partition for each in served.cluster.topic(topic).partitions]
    if partition is not None and partition not in numbers:
        raise RequestRefused(404, f"topic {topic} has no partition {partition}")
    found: list[ConsumerRecord] = []
    for number in numbers if partition is None else [partition]:
        control = served.cluster.leader_of(topic, number).control()
        records = read_partition(
            control, topic, number, offset=offset, committed_only=committed_only
        )
        found += islice(records, most + 1 - len(found))
    return {"records": found[:most], "more": len(found) > most}


@operation("GET", "/topics/{topic}/producers", "them, as `producers`")
def list_producers(served: ServedCluster, topic: str, partition: int = 0) -> dict[str, object]:
    """List the idempotent producers that the leader of a partition remembers."""
    return {"producers": served.cluster.producers(topic, partition)}


@operation("POST", "/topics/{topic}/partitions/{partition}/move-leader", "nothing")
def move_leader(served: ServedCluster, topic: str, partition: int, to: int) -> None:
    """Have another broker of the ISR lead a partition; answered when all brokers know."""
    served.cluster.move_leader(topic, partition, to)


@operation("POST", "/topics/{topic}/partitions/{partition}/shrink-isr", "the ISR then, as `isr`")
def shrink_isr(
    served: ServedCluster, topic: str, partition: int, broker: int
) -> dict[str, list[int]]:
    """Have a follower out of the ISR: it does not fetch until `restore-isr` or a restart."""
    return {"isr": served.cluster.shrink_isr(topic, partition, broker)}


@operation("POST", "/topics/{topic}/partitions/{partition}/restore-isr", "nothing")
def restore_isr(served: ServedCluster, topic: str, partition: int, broker: int) -> None:
    """Have a follower fetch again; answered when it is in the ISR."""
    served.cluster.restore_isr(topic, partition, broker)


# -- groups and transactions ----------------------------------------------------------------------


@operation("GET", "/groups", "their ids, as `groups`")
def list_groups(served: ServedCluster) -> dict[str, list[str]]:
    """List the groups."""
    return {"groups": served.cluster.groups()}


@operation("GET", "/groups/{group}", "its state, members, committed offsets and lag")
def show_group(served: ServedCluster, group: str) -> object:
    """Show a group; its state is `Dead` where there is no such group."""
    return served.cluster.group(group)


@operation("POST", "/groups/{group}/expire-session", "the member ids of those that are out")
def expire_session(
    served: ServedCluster, group: str, member: str | None = None
) -> dict[str, list[str]]:
    """End the session of a group's members now: they are out, and their partitions go to others."""
    return {"members": served.cluster.expire_session(group, member)}


@operation("GET", "/groups/{group}/share-partitions", "them, as `share_partitions`")
def list_share_partitions(served: ServedCluster, group: str) -> dict[str, object]:
    """List what a share group has of each partition: start offset, lag, and records in flight.

    Of these their state, delivery count and owner.
    """
    return {"share_partitions": served.cluster.share_partitions(group)}


@operation("GET", "/client-metrics", "them, as `clients`")
def list_client_metrics(served: ServedCluster) -> dict[str, object]:
    """List the clients that push metrics (KIP-714), and what they have pushed."""
    return {"clients": served.cluster.client_metrics()}


@operation("POST", "/groups/{group}/expire-lock", "how many records it were, as `records`")
def expire_lock(
    served: ServedCluster, group: str, topic: str, partition: int = 0, offset: int | None = None
) -> dict[str, int]:
    """Have locks of records expire now that members of a share group have acquired.

    Without `offset` of all those of the partition.
    """
    return {"records": served.cluster.expire_lock(group, topic, partition, offset)}


@operation("POST", "/groups/{group}/rebalance", "nothing")
def force_rebalance(served: ServedCluster, group: str) -> None:
    """Have a group's members share its partitions anew."""
    served.cluster.force_rebalance(group)


@operation("GET", "/transactions", "them, as `transactions`")
def list_transactions(served: ServedCluster) -> dict[str, object]:
    """List the transactional ids, with their states, producers and partitions."""
    return {"transactions": served.cluster.transactions()}


@operation(
    "POST", "/transactions/{transactional_id}/fence", "the valid `producer_id` and `epoch` then"
)
def fence_producer(served: ServedCluster, transactional_id: str) -> dict[str, int]:
    """Fence a producer off, as another one with its transactional id does at its start."""
    producer_id, epoch = served.cluster.fence_producer(transactional_id)
    return {"producer_id": producer_id, "epoch": epoch}


@operation("POST", "/transactions/{transactional_id}/expire", "nothing")
def expire_transaction(served: ServedCluster, transactional_id: str) -> None:
    """Abort a producer's open transaction as one that took too long; its producer is fenced."""
    served.cluster.expire_transaction(transactional_id)


# -- requests -------------------------------------------------------------------------------------


@operation(
    "GET", "/requests", "how many there were, as `count`, and the last of them, as `requests`"
)
def list_requests(
    served: ServedCluster,
    api: str | None = None,
    client_id: str | None = None,
    topic: str | None = None,
    partition: int | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
    error: str | None = None,
    broker: int | None = None,
    limit: int = LIMIT,
) -> dict[str, Any]:
    """List requests that brokers were sent, oldest first, and what they answered."""
    most = _limit(limit)
    count, found = 0, []
    for each in _brokers(served, broker):
        which: Requests = each.requests.of(
            api,
            client_id=client_id,
            topic=topic,
            partition=partition,
            group=group,
            transactional_id=transactional_id,
            error=error,
        )
        count += which.count()
        found += which.list(most)
    found.sort(key=lambda logged: logged.time)
    return {"count": count, "requests": found[-most:]}


@operation("DELETE", "/requests", "nothing")
def forget_requests(served: ServedCluster, broker: int | None = None) -> None:
    """Have brokers forget the requests that they were sent."""
    for each in _brokers(served, broker):
        each.requests.clear()


def _brokers(served: ServedCluster, broker: int | None) -> list[Broker]:
    """The broker of an id, or all that run."""
    return served.cluster.running() if broker is None else [served.cluster.broker(broker)]


def _limit(limit: int) -> int:
    if not 1 <= limit <= LIMIT_MAX:
        raise RequestRefused(400, f"limit is from 1 to {LIMIT_MAX}, not {limit}")
    return limit


# -- faults ---------------------------------------------------------------------------------------


@operation("POST", "/faults", "the fault, with its `id`", Choice("fault", FAULTS))
def add_fault(
    served: ServedCluster,
    fault: Fault,
    broker: int | None = None,
    times: int | None = None,
    on: int | None = None,
    after: int | None = None,
    every: int | None = None,
    probability: float | None = None,
    probability_seed: int = 0,
) -> dict[str, Any]:
    """Have a fault strike from now on, on one broker or on all that run now.

    Without `times`, `on`, `after`, `every` or `probability` it strikes every request that it is
    about, until it is lifted.
    """
    triggers = {
        "times": times,
        "on": on,
        "after": after,
        "every": every,
        "probability": probability,
    }
    given = {name: value for name, value in triggers.items() if value is not None}
    if len(given) > 1:
        raise RequestRefused(400, f"one of {', '.join(given)} says when it strikes, not several")
    for name, value in given.items():
        if name == "probability":
            fault = fault.with_probability(value, probability_seed)
        else:
            fault = getattr(fault, name)(value)
    return _fault_of(served.add_fault(fault, _brokers(served, broker)))


@operation("GET", "/faults", "them, as `faults`")
def list_faults(served: ServedCluster) -> dict[str, list[dict[str, Any]]]:
    """List the faults that are not lifted."""
    return {"faults": [_fault_of(each) for each in list(served.faults.values())]}


@operation("GET", "/faults/{id}", "its sentence, how often it has struck, of how many requests")
def show_fault(served: ServedCluster, id: int) -> dict[str, Any]:
    """Show a fault."""
    return _fault_of(served.fault(id))


@operation("DELETE", "/faults/{id}", "nothing")
def lift_fault(served: ServedCluster, id: int) -> None:
    """Have a fault strike no more."""
    served.lift(served.fault(id))


@operation("DELETE", "/faults", "how many there were, as `lifted`")
def lift_faults(served: ServedCluster) -> dict[str, int]:
    """Have no fault strike any more."""
    return {"lifted": served.lift_all()}


@operation("POST", "/faults/{id}/wait", "the fault, as soon as it has struck so often")
async def wait_until_struck(
    served: ServedCluster, id: int, times: int = 1, timeout: float = TIMEOUT_SECONDS
) -> dict[str, Any]:
    """Wait until a fault has struck so often since it was added."""
    fault = served.fault(id)

    def otherwise() -> str:
        strikes, matches = strikes_of(fault)
        return (
            f"within {timeout:g} s the fault has struck {strikes} of {times} times, of {matches} "
            f"requests that it was about: {fault.fault}"
        )

    await wait_until_async(lambda: strikes_of(fault)[0] >= times, _timeout(timeout), otherwise)
    return _fault_of(fault)


def _fault_of(served: ServedFault) -> dict[str, Any]:
    strikes, matches = strikes_of(served)
    return {"id": served.id, "fault": served.fault, "strikes": strikes, "matches": matches}


# -- time and waiting -----------------------------------------------------------------------------


@operation("GET", "/time", "of each running broker, as `brokers`: its `id`, and its `time`")
def show_time(served: ServedCluster) -> dict[str, Any]:
    """Show what time it is for each broker, in seconds since the epoch."""
    running = served.cluster.running()
    return {"brokers": [{"id": each.broker_id, "time": each.clock()} for each in running]}


@operation("POST", "/time/advance", "how many seconds brokers are `ahead` of the system now")
def advance_time(
    served: ServedCluster,
    seconds: float = 0,
    minutes: float = 0,
    hours: float = 0,
    days: float = 0,
) -> dict[str, float]:
    """Let time pass for all brokers at once; answered when what ends by it has ended.

    Sessions of groups' members, transactions, records past their retention, committed offsets.
    Clients keep their own clocks.
    """
    ahead = served.cluster.advance_time(seconds, minutes=minutes, hours=hours, days=days)
    return {"ahead": ahead}


@operation("POST", "/brokers/{broker}/set-clock-wrong", "nothing")
def set_clock_wrong(served: ServedCluster, broker: int, seconds: float) -> None:
    """Have a broker's wall clock be wrong, ahead or behind; 0 sets it right. No time passes."""
    served.cluster.broker(broker).set_clock_wrong(seconds)


@operation(
    "POST", "/wait", "nothing, as soon as the condition holds", Choice("condition", CONDITIONS)
)
async def wait(
    served: ServedCluster, condition: Condition, timeout: float = TIMEOUT_SECONDS
) -> None:
    """Wait until something is true of the cluster.

    After `timeout` the answer is 504, and its sentence says what was seen instead. A client that
    closes its connection ends the wait.
    """
    await served.cluster.wait_until_async(condition, timeout=_timeout(timeout))


def _timeout(timeout: float) -> float:
    if not 0 <= timeout <= TIMEOUT_SECONDS_MAX:
        raise RequestRefused(
            400, f"timeout is from 0 to {TIMEOUT_SECONDS_MAX:g} seconds, not {timeout:g}"
        )
    return timeout
