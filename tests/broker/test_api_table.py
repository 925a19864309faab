from pathlib import Path

from odradek.broker.api_table import KAFKA_ADVERTISES, api_table
from odradek.broker.handlers.registry import load_handlers
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import request_message

DOCUMENT = Path(__file__).parents[2] / "docs" / "apis.md"


def test_the_page_is_what_the_registry_says() -> None:
    assert DOCUMENT.read_text() == api_table(), (
        "write it anew: python -m odradek.broker.api_table > docs/apis.md"
    )


def test_every_api_is_advertised_at_kafkas_versions() -> None:
    for api_key, registration in load_handlers().items():
        advertised = registration.advertised
        if advertised is None:
            assert api_key not in KAFKA_ADVERTISES, api_key.name
        else:
            first, last = KAFKA_ADVERTISES[api_key]
            assert (advertised.start, advertised.stop - 1) == (first, last), api_key.name


def test_what_the_controller_asks_of_brokers_is_served_and_not_advertised() -> None:
    registrations = load_handlers()
    for api_key in (
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
    ):
        assert registrations[api_key].advertised is None, api_key.name
        assert set(registrations[api_key].versions) == set(request_message(api_key).versions)


def test_every_served_version_has_a_schema() -> None:
    for api_key, registration in load_handlers().items():
        schema = request_message(api_key).versions
        assert set(registration.versions) <= set(schema), api_key.name
