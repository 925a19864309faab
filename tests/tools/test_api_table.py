import ast
import re
from pathlib import Path

from odradek.broker.handlers.registry import REGISTRATIONS, parse_versions
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import request_message
from odradek.tools.docs.api_table import ADVERTISED_WHERE, KAFKA_ADVERTISES, NOT_SERVED, api_table

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "apis.md"
HANDLERS = ROOT / "broker" / "handlers"
CARD = re.compile(r"\w+ \((\d+)\), versions? (\d+(?:-\d+)?)\b")


def test_the_page_is_what_the_registry_says() -> None:
    assert DOCUMENT.read_text() == api_table(), (
        "write it anew: python -m odradek.tools.docs.api_table > docs/apis.md"
    )


def test_every_api_is_advertised_at_kafkas_versions() -> None:
    for api_key, registration in REGISTRATIONS.items():
        advertised = registration.advertised
        if advertised is None or api_key in ADVERTISED_WHERE:
            assert api_key not in KAFKA_ADVERTISES, api_key.name
        else:
            first, last = KAFKA_ADVERTISES[api_key]
            assert (advertised.start, advertised.stop - 1) == (first, last), api_key.name


def test_every_api_that_is_not_served_says_why() -> None:
    assert set(NOT_SERVED) == set(ApiKey) - set(REGISTRATIONS)
    assert all(NOT_SERVED.values())


def test_what_the_controller_asks_of_brokers_is_served_and_not_advertised() -> None:
    for api_key in (
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
    ):
        assert REGISTRATIONS[api_key].advertised is None, api_key.name
        assert set(REGISTRATIONS[api_key].versions) == set(request_message(api_key).versions)


def test_every_handler_is_registered_at_the_versions_its_card_says() -> None:
    """The table is there so that no handler is imported before it is needed."""
    cards = {}
    for path in HANDLERS.glob("*.py"):
        if path.stem not in ("__init__", "registry"):
            card = ast.get_docstring(ast.parse(path.read_text())) or ""
            found = CARD.match(card)
            assert found, f"{path.name} does not open as others do: {card[:60]!r}"
            cards[path.stem] = (int(found[1]), parse_versions(found[2]))
    assert cards == {
        registration.api_key.name.lower(): (api_key, registration.versions)
        for api_key, registration in REGISTRATIONS.items()
    }


def test_every_registered_handler_is_there() -> None:
    for registration in REGISTRATIONS.values():
        assert callable(registration.load()), registration.api_key.name


def test_every_served_version_has_a_schema() -> None:
    for api_key, registration in REGISTRATIONS.items():
        schema = request_message(api_key).versions
        assert set(registration.versions) <= set(schema), api_key.name
