"""`odradek transactions`: list and describe transactions, find those that hang, and end them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..common.client_settings import CommandConfig
from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, with_client
from ..common.errors import fail
from ..common.show import JsonOutput, note, show_json, show_table
from ..common.times import parse_duration_ms
from ..declarations import Argument, CommandGroup, Option
from ..topics.partition_names import existing_partitions, parse_one_partition
from .shown import (
    HANGING,
    description_json,
    producer_json,
    show_description,
    state_legend,
    with_times,
)

if TYPE_CHECKING:
    from ...client.admin.transaction_descriptions import (
        HangingTransaction,
        ProducerOfPartition,
        TransactionDescription,
        TransactionListing,
    )
    from ...client.client import KafkaClient

TopicPartition = tuple[str, int]

app = CommandGroup(
    help="List and describe transactions, find those that hang, and end them.",
)

Ids = Annotated[list[str], Argument(metavar="ID", show_default=False)]
Id = Annotated[str, Argument(metavar="ID", show_default=False)]
Partition = Annotated[str, Argument(metavar="TOPIC:PARTITION", show_default=False)]
BrokerId = Annotated[
    int | None,
    Option("--broker-id", metavar="ID", help="Ask this replica; else who leads."),
]


@app.command("list")
def list_transactions(
    state: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Only in these, such as Ongoing; repeat, or use commas."),
    ] = None,
    producer_id: Annotated[
        list[int] | None, Option(metavar="N", help="Only of these producers; repeatable.")
    ] = None,
    longer_than: Annotated[
        str | None,
        Option(metavar="DURATION", help="Only open for longer than this, such as 90s."),
    ] = None,
    pattern: Annotated[
        str | None,
        Option(metavar="REGEX", help="Only ids that match this expression as a whole."),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """List the transactional ids, and what state each is in.

    ```
    odradek transactions list
    odradek transactions list --state Ongoing --longer-than 5m
    odradek transactions list --pattern 'orders-.*' --json
    ```
    """
    from ...client.admin.transaction_admin import NO_DURATION_FILTER, TransactionAdmin

    least_ms = NO_DURATION_FILTER if longer_than is None else parse_duration_ms(longer_than)
    states = [word.strip() for text in state or () for word in text.split(",")]

    async def ask(client: KafkaClient) -> list[TransactionListing]:
        return await TransactionAdmin(client).list_transactions(
            states, producer_id or (), least_ms, pattern
        )

    rows = [
        {
            "id": each.transactional_id,
            "state": each.state,
            "producer_id": each.producer_id,
            "coordinator": each.coordinator,
        }
        for each in with_client(bootstrap_server, ask, command_config)
    ]
    if json_output:
        show_json(rows)
        return
    show_table(
        ["id", "state", "producer id", "coordinator"],
        [with_times(row) for row in rows],
        legend=state_legend({str(row["state"]) for row in rows}),
        empty="there are no such transactional ids",
    )


@app.command("describe")
def describe_transactions(
    ids: Ids,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Show transactional ids: state, producer, age, and the partitions of the open transaction.

    ```
    odradek transactions describe orders-1
    ```
    """
    from ...client.admin.transaction_admin import TransactionAdmin

    async def ask(client: KafkaClient) -> dict[str, TransactionDescription | None]:
        return await TransactionAdmin(client).describe(ids)

    now_ms = _now_ms()
    for name, found in with_client(bootstrap_server, ask, command_config).items():
        if found is None:
            fail(f"transactional id {name}: there is none; see: odradek transactions list")
        age_ms = None if found.started_ms is None else max(now_ms - found.started_ms, 0)
        if json_output:
            show_json([description_json(found, age_ms)])
        else:
            show_description(found, age_ms)


@app.command("describe-producers")
def describe_producers(
    partitions: Annotated[list[str], Argument(metavar="TOPIC[:0,1]", show_default=False)],
    broker_id: BrokerId = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Show the producers that partitions remember, and where open transactions begin.

    Idempotent producers are among them, whether they use transactions or not.

    ```
    odradek transactions describe-producers events:0
    odradek transactions describe-producers events --broker-id 2
    ```
    """
    from ...client.admin.transaction_admin import TransactionAdmin

    async def ask(client: KafkaClient) -> dict[TopicPartition, list[ProducerOfPartition]]:
        _require_broker(client, broker_id)
        requested = await existing_partitions(client, partitions)
        return await TransactionAdmin(client).producers(requested, broker_id)

    rows = [
        {"topic": topic, "partition": index, **producer_json(producer)}
        for (topic, index), producers in sorted(
            with_client(bootstrap_server, ask, command_config).items()
        )
        for producer in producers
    ]
    if json_output:
        show_json(rows)
        return
    show_table(
        [name.replace("_", " ") for name in rows[0]] if rows else [],
        [with_times(row) for row in rows],
        legend="open since offset -: no transaction of this producer is open there",
        empty="no idempotent or transactional producer has written there of late",
    )


@app.command("find-hanging")
def find_hanging(
    partitions: Annotated[
        list[str] | None, Argument(metavar="[TOPIC[:0,1]]", show_default=False)
    ] = None,
    max_transaction_timeout: Annotated[
        int,
        Option(
            "--max-transaction-timeout",
            min=0,
            metavar="MINUTES",
            help="The brokers' transaction.max.timeout.ms: what is younger may yet end.",
        ),
    ] = 15,
    broker_id: BrokerId = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
    json_output: JsonOutput = False,
) -> None:
    """Find transactions that are open in a partition, and that no coordinator will end.

    All topics are searched unless some are named; with `--broker-id`, what that broker holds.

    ```
    odradek transactions find-hanging
    odradek transactions find-hanging events:0 --max-transaction-timeout 5
    ```
    """
    from ...client.admin.transaction_admin import TransactionAdmin

    now_ms = _now_ms()

    async def ask(client: KafkaClient) -> list[HangingTransaction]:
        _require_broker(client, broker_id)
        if partitions:
            requested = await existing_partitions(client, partitions)
        else:
            requested = await _all_partitions(client, broker_id)
        return await TransactionAdmin(client).find_hanging(
            requested,
            now_ms=now_ms,
            older_than_ms=max_transaction_timeout * 60_000,
            broker_id=broker_id,
        )

    rows = [
        {
            "topic": each.partition[0],
            "partition": each.partition[1],
            **producer_json(each.producer),
            "id": each.transactional_id,
            "age_ms": now_ms - each.producer.last_timestamp,
        }
        for each in with_client(bootstrap_server, ask, command_config)
    ]
    if json_output:
        show_json(rows)
        return
    show_table(
        [name.removesuffix("_ms").replace("_", " ") for name in rows[0]] if rows else [],
        [with_times(row) for row in rows],
        legend=HANGING,
        empty="no transaction hangs there",
    )


@app.command("abort")
def abort(
    partition: Partition,
    start_offset: Annotated[
        int | None,
        Option(min=0, metavar="N", help="Where the transaction begins, as find-hanging says."),
    ] = None,
    producer_id: Annotated[
        int | None, Option(min=0, metavar="N", help="Instead, with the two epochs.")
    ] = None,
    producer_epoch: Annotated[int | None, Option(min=0, metavar="N")] = None,
    coordinator_epoch: Annotated[int | None, Option(metavar="N")] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """End a hanging transaction in one partition: its records count as aborted.

    This goes past the coordinator. A transaction that is not hanging is ended by
    `force-terminate`.

    ```
    odradek transactions abort events:0 --start-offset 1200
    odradek transactions abort events:0 --producer-id 5 --producer-epoch 0 --coordinator-epoch 3
    ```
    """
    from ...client.admin.transaction_admin import TransactionAdmin

    where = parse_one_partition(partition)
    epochs = (producer_epoch, coordinator_epoch)
    if (start_offset is None) == (producer_id is None):
        fail("say which: --start-offset, or --producer-id with both epochs")
    if producer_id is not None and None in epochs:
        fail("with --producer-id, give --producer-epoch and --coordinator-epoch, too")

    async def ask(client: KafkaClient) -> None:
        await existing_partitions(client, [partition])
        admin = TransactionAdmin(client)
        if start_offset is None:
            assert producer_id is not None
            assert producer_epoch is not None
            assert coordinator_epoch is not None
            await admin.abort(where, producer_id, producer_epoch, coordinator_epoch)
            return
        if not await admin.abort_open(where, start_offset):
            fail(
                f"no open transaction begins at offset {start_offset} of {partition}; see:"
                f" odradek transactions describe-producers {partition}"
            )

    with_client(bootstrap_server, ask, command_config)
    note(f"aborted the transaction in {partition}")


@app.command("force-terminate")
def force_terminate(
    transactional_id: Id,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    command_config: CommandConfig = None,
) -> None:
    """End the open transaction of a transactional id, and shut its producer out.

    The coordinator aborts what is open in all partitions. A producer that still runs gets an
    error (fenced) and has to begin anew.

    ```
    odradek transactions force-terminate orders-1
    ```
    """
    from ...client.admin.transaction_admin import TransactionAdmin

    async def ask(client: KafkaClient) -> None:
        admin = TransactionAdmin(client)
        found = (await admin.describe([transactional_id]))[transactional_id]
        if found is None:
            fail(
                f"transactional id {transactional_id}: there is none; see:"
                " odradek transactions list"
            )
        await admin.fence(transactional_id)

    with_client(bootstrap_server, ask, command_config)
    note(f"ended what was open of {transactional_id}; its producer has to begin anew")


def _require_broker(client: KafkaClient, broker_id: int | None) -> None:
    if broker_id is not None and broker_id not in client.cluster.nodes:
        ids = ", ".join(map(str, sorted(client.cluster.nodes)))
        fail(f"the cluster has no broker {broker_id}; it has {ids}")


async def _all_partitions(client: KafkaClient, broker_id: int | None) -> list[TopicPartition]:
    """Those with a leader, or with a replica on the broker."""
    from ...client.admin.admin import Admin

    return [
        (name, each.partition)
        for name, topic in (await Admin(client).describe_topics()).items()
        for each in topic.partitions.values()
        if (each.leader_id is not None if broker_id is None else broker_id in each.replicas)
    ]


def _now_ms() -> int:
    from ...runtime.clock import SystemClock

    return SystemClock().now_ms()
