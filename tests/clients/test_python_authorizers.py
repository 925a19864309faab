"""An authorizer of one's own, as a package that is installed brings it by an entry point."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.errors import TopicAuthorizationFailedError, UnknownError

from odradek.broker.request.authorizers import authorizer_of
from odradek.config.broker_config import BrokerConfig
from odradek.config.definition import ConfigError
from odradek.testing import Broker
from odradek.testing.process.broker_process import BrokerProcess

pytestmark = pytest.mark.clients

SECONDS = 60
MODULE = """
import os

class FromFile:
    def __init__(self, settings):
        assert settings["authorizer.class.name"] == "from-file"
        self.path = os.environ["RIGHTS"]

    def authorize(self, principal, host, operation, resource_type, name):
        with open(self.path) as file:
            rights = file.read().split()
        if "broken" in rights:
            raise OSError("the rights cannot be read")
        return resource_type != "TOPIC" or f"{principal}:{operation}:{name}" in rights

def broken(settings):
    raise ValueError("it is not made")

def nothing(settings):
    return None
"""
ENTRY_POINTS = """
[odradek.authorizers]
from-file = rights_of_mine:FromFile
broken = rights_of_mine:broken
nothing = rights_of_mine:nothing
missing = rights_of_mine:missing
"""
WRITE, DESCRIBE, CREATE = (
    f"User:ANONYMOUS:{each}:orders" for each in ("WRITE", "DESCRIBE", "CREATE")
)


@pytest.fixture
def rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that it goes by; this process and those that it starts find the package."""
    (tmp_path / "rights_of_mine.py").write_text(MODULE)
    about = tmp_path / "rights_of_mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rights-of-mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    path = tmp_path / "rights"
    path.write_text(f"{WRITE} {DESCRIBE} {CREATE}")
    monkeypatch.setenv("RIGHTS", str(path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.syspath_prepend(str(tmp_path))
    return path


def test_it_decides_about_every_request(rights: Path, tmp_path: Path) -> None:
    known = {"authorizer.class.name": "from-file"}
    folder, log = tmp_path / "data", tmp_path / "log"
    with BrokerProcess(folder, log_path=log, settings=known) as broker:
        with KafkaProducer(
            bootstrap_servers=broker.bootstrap, enable_idempotence=False, retries=0
        ) as producer:

            def send() -> None:
                producer.send("orders", b"x").get(SECONDS)

            for _ in range(3):  # another authorizer would be remembered by the second
                send()
            rights.write_text(DESCRIBE)
            with pytest.raises(TopicAuthorizationFailedError):
                send()
            rights.write_text(f"{WRITE} {DESCRIBE}")
            send()
        assert "from-file" in broker.log  # what it refused is in the audit log


def test_what_fails_in_it_lets_nobody_in(rights: Path) -> None:
    with Broker({"authorizer.class.name": "from-file"}) as broker:
        broker.create_topic("orders")
        settings = broker.client_settings("kafka-python")
        with KafkaProducer(**settings, enable_idempotence=False, retries=0) as producer:
            producer.send("orders", b"x").get(SECONDS)
            rights.write_text("broken")
            with pytest.raises(UnknownError):
                producer.send("orders", b"x").get(SECONDS)
        assert "the rights cannot be read" in broker.log


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"authorizer.class.name": "mine"},
            "no package that is installed has it among its odradek",
        ),
        ({"authorizer.class.name": "broken"}, "it failed with ValueError: it is not made"),
        ({"authorizer.class.name": "nothing"}, "what it makes has no method `authorize`"),
        ({"authorizer.class.name": "missing"}, "it failed with AttributeError: "),
        (
            {"authorizer.class.name": "from-file", "super.users": "User:root"},
            "super.users has no effect with the authorizer from-file, which decides by itself",
        ),
    ],
)
@pytest.mark.usefixtures("rights")
def test_one_that_cannot_be_used_is_refused(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        authorizer_of(BrokerConfig.from_sources(settings))
