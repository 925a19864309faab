"""The first Metadata of brokers that start together in one process names all, and leaders."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from support.ports import ports_in_a_row

from odradek.bench.errors import BenchError
from odradek.bench.loads.wire import Wire
from odradek.protocol import messages
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.slow

BROKERS = 3
TOPICS = 10
SECONDS_MAX = 60
TRIES = 3


def first_answer(port: int, answers: dict[int, Any]) -> None:
    """The first Metadata that is answered, of a client that was there before the broker."""

    def is_answered() -> bool:
        try:
            with Wire("127.0.0.1", port) as wire:
                answers[port] = wire.ask(messages.MetadataRequest(topics=None), 9)
        except BenchError:
            return False  # nobody listens yet
        return True

    wait_until(is_answered, SECONDS_MAX)


def test_the_first_answers_of_brokers_of_one_process_are_whole(tmp_path: Path) -> None:
    with (
        ports_in_a_row(BROKERS) as first,
        BrokerProcess(
            tmp_path / "data", listen=f"127.0.0.1:{first}", arguments=["--brokers", str(BROKERS)]
        ) as broker,
    ):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topics = [NewTopic(f"t{number}", 20, BROKERS) for number in range(TOPICS)]
        for created in admin.create_topics(topics).values():
            created.result()
        for _ in range(TRIES):
            broker.stop()
            answers: dict[int, Any] = {}
            clients = [
                threading.Thread(target=first_answer, args=(first + number, answers))
                for number in range(BROKERS)
            ]
            for client in clients:
                client.start()
            broker.start()
            for client in clients:
                client.join(SECONDS_MAX)
            assert len(answers) == BROKERS
            for answer in answers.values():
                assert len(answer.brokers) == BROKERS
                assert len(answer.topics) == TOPICS
                leaders = {part.leader_id for topic in answer.topics for part in topic.partitions}
                assert min(leaders) > 0
            librdkafka = AdminClient({"bootstrap.servers": broker.bootstrap})
            listed = librdkafka.list_topics(timeout=SECONDS_MAX)
            assert (len(listed.brokers), len(listed.topics)) == (BROKERS, TOPICS)
