"""The settings on docs/security.md and docs/tls.md are taken as they stand there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.documented import Block, blocks_of

from odradek.client import connection_settings_of
from odradek.config.broker_config import BrokerConfig
from odradek.config.properties import parse_properties
from odradek.testing.certificates import make_tls_files
from odradek.testing.client_settings import TlsFiles
from odradek.testing.process.broker_process import BrokerProcess

SECURITY, TLS = "docs/security.md", "docs/tls.md"
SECONDS_MAX = 60
ANY_PORT = "127.0.0.1:0"


def parts_of(page: str) -> list[Block]:
    """Blocks that are no whole file; those that are, tests/cli/test_security_page.py writes."""
    return [each for each in blocks_of(page, "properties") if not each.argument]


def is_of_client(block: Block) -> bool:
    return block.text.startswith(("sasl.mechanism=", "security.protocol=", "bootstrap.servers="))


@pytest.mark.parametrize("block", [*parts_of(SECURITY), *parts_of(TLS)], ids=lambda each: each.page)
def test_every_setting_is_known(block: Block, tmp_path: Path) -> None:
    text = block.text
    if not is_of_client(block):
        config = BrokerConfig.from_sources(parse_properties(text))
        assert config.static
        assert config.unknown_keys == ()
        return
    if "security.protocol" not in text:
        text += "security.protocol=SASL_PLAINTEXT\n"  # As the page's other files have it.
    given = parse_properties(at_hand(text, make_tls_files(tmp_path)))
    settings = connection_settings_of(given, lambda path: Path(path).read_bytes())
    assert (settings.ssl_context is not None) == given["security.protocol"].endswith("SSL")
    assert (settings.authenticate is not None) == given["security.protocol"].startswith("SASL")


def at_hand(text: str, files: TlsFiles) -> str:
    """The text, with files that there are in place of the page's."""
    for name, path in {
        "broker.pem": files.keystore,
        "ca.pem": files.ca,
        "client.pem": files.client_keystore,
        "client.crt": files.client_certificate,
        "client.key": files.client_key,
    }.items():
        text = text.replace(f"/etc/odradek/{name}", path)
    return text


def topics(folder: Path, settings: str, address: str) -> str:
    """Have `odradek topics list` reach a broker by a file of settings."""
    (folder / "client.properties").write_text(settings)
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "topics", "list", "-b", address],
        cwd=folder,
        env={**os.environ, "ODRADEK_COMMAND_CONFIG": "client.properties"},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_broker_by_the_page_on_tls_and_the_clients_of_the_page(tmp_path: Path) -> None:
    """And, with logins, one of the page on security."""
    of_broker, of_java, of_librdkafka = parts_of(TLS)
    logins, *_ = parts_of(SECURITY)
    files = make_tls_files(tmp_path / "tls")
    stores = at_hand(of_broker.text, files).replace("//:9093", f"//{ANY_PORT}")
    page = tmp_path / "server.properties"
    page.write_text(stores)
    settings = {"listeners": f"SSL://{ANY_PORT}"}
    with BrokerProcess(
        tmp_path / "1", settings=settings, arguments=["--config", str(page)]
    ) as broker:
        topics(tmp_path, at_hand(of_java.text, files), broker.bootstrap)

    page.write_text(stores.replace("security.inter.broker.protocol=SSL\n", "") + logins.text)
    settings = {"listeners": f"SASL_SSL://{ANY_PORT},PLAINTEXT://{ANY_PORT}"}
    client = of_librdkafka.text.replace("password=...", "password=alice's password")
    with BrokerProcess(
        tmp_path / "2", settings=settings, arguments=["--config", str(page)]
    ) as broker:
        address = broker.bootstrap.partition(",")[0]
        topics(tmp_path, at_hand(client, files), address)
