from pathlib import Path

from odradek.broker.api_table import KAFKA_ADVERTISES, api_table
from odradek.broker.handlers.registry import load_handlers
from odradek.protocol.messages import request_message

DOCUMENT = Path(__file__).parents[2] / "docs" / "apis.md"


def test_the_page_is_what_the_registry_says() -> None:
    assert DOCUMENT.read_text() == api_table(), (
        "write it anew: python -m odradek.broker.api_table > docs/apis.md"
    )


def test_every_api_is_advertised_at_kafkas_versions() -> None:
    for api_key, registration in load_handlers().items():
        first, last = KAFKA_ADVERTISES[api_key]
        advertised = registration.advertised
        assert (advertised.start, advertised.stop - 1) == (first, last), api_key.name


def test_every_served_version_has_a_schema() -> None:
    for api_key, registration in load_handlers().items():
        schema = request_message(api_key).versions
        assert set(registration.versions) <= set(schema), api_key.name
