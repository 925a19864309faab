"""Broken TLS: a client must not talk to a broker whose certificate it cannot trust.

`@pytest.mark.kafka(tls=True)` makes a broker with certificates of its own, and
`kafka.client_settings()` has what a client needs for it; leave something out, and it must fail.

    pip install "odradek[tls]" pytest confluent-kafka    # after odradek, as README.md says
    pytest test_broken_tls.py
"""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient


def is_reachable(settings: dict, seconds: float) -> bool:
    """The code under test: whether the broker could be asked anything in that time."""
    try:
        AdminClient(settings | {"log_level": 0}).list_topics(timeout=seconds)
    except KafkaException:
        return False
    return True


@pytest.mark.kafka(tls=True)
def test_a_client_that_trusts_the_brokers_certificate_reaches_it(kafka):
    assert is_reachable(kafka.client_settings("confluent-kafka"), 60)


@pytest.mark.kafka(tls=True)
def test_a_client_that_does_not_trust_it_stays_away(kafka):
    settings = kafka.client_settings("confluent-kafka")
    del settings["ssl.ca.location"]  # what is left are the certificates of the system
    assert not is_reachable(settings, 3)


@pytest.mark.kafka(tls=True)
def test_a_client_without_tls_gets_nowhere(kafka):
    assert not is_reachable({"bootstrap.servers": kafka.bootstrap_servers}, 3)
    assert is_reachable(kafka.client_settings("confluent-kafka"), 60)


@pytest.mark.kafka(tls=True, config={"ssl.client.auth": "required"})
def test_a_client_without_a_certificate_is_turned_away_where_one_is_required(kafka):
    assert is_reachable(kafka.client_settings("confluent-kafka"), 60)
    assert not is_reachable(kafka.client_settings("confluent-kafka", certificate=False), 3)
