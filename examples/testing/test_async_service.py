"""A service of asyncio runs beside its test, and the test waits for what it does.

The service reads orders and writes invoices, as a task in the loop of the test. The test awaits
what it expects with `kafka.wait_until_async`, so that the loop goes on meanwhile:
`kafka.wait_until` would block the service that it waits for.

    pip install pytest pytest-asyncio aiokafka    # and odradek, as README.md says
    pytest test_async_service.py

Under anyio the test is marked `@pytest.mark.anyio`, under pytest-trio `@pytest.mark.trio`; the
fixtures and `wait_until_async` are the same there.
"""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from odradek.testing.conditions import no_lag, record_matching


async def write_invoices(address: str, orders: str, invoices: str, group: str) -> None:
    """The code under test: an invoice for each order, until it is cancelled."""
    consumer = AIOKafkaConsumer(
        orders,
        bootstrap_servers=address,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    async with consumer, AIOKafkaProducer(bootstrap_servers=address) as producer:
        async for order in consumer:
            await producer.send_and_wait(invoices, b"invoice for " + order.value)
            await consumer.commit()


@pytest.mark.asyncio
async def test_each_order_gets_an_invoice(kafka, kafka_topic, kafka_group):
    invoices = f"invoices-of-{kafka_topic}"
    kafka.create_topic(invoices)
    service = asyncio.create_task(
        write_invoices(kafka.bootstrap_servers, kafka_topic, invoices, kafka_group)
    )
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        await producer.send_and_wait(kafka_topic, b"one book")

    await kafka.wait_until_async(record_matching(invoices, value=b"invoice for one book"))
    await kafka.wait_until_async(no_lag(kafka_group), timeout=30)

    service.cancel()
    with pytest.raises(asyncio.CancelledError):
        await service
