"""Kafka's own tool logs in by OAUTHBEARER over TLS, with a token of a file: right and wrong."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from odradek.testing import Broker
from odradek.testing.certificates import broker_settings, make_tls_files

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

SECONDS = 240
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed"
KEY = rsa.generate_private_key(65537, 2048)


def token(key: rsa.RSAPrivateKey) -> str:
    now = int(time.time())
    return jwt.encode({"sub": "alice", "iat": now, "exp": now + 600}, key, "RS256", {"kid": "one"})


def test_kafkas_tool_with_a_right_and_a_wrong_token(
    java_command: list[str], tmp_path: Path
) -> None:
    tls = make_tls_files(tmp_path / "tls")
    public = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
    keys, held = tmp_path / "keys.json", tmp_path / "token"
    keys.write_text(json.dumps({"keys": [{**public, "kid": "one"}]}))
    held.write_text(token(KEY))
    settings = {
        **broker_settings(tls),
        "listeners": "SASL_SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.token.endpoint.url": held.as_uri(),
    }
    client = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": tls.ca,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{PACKAGE}.OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": held.as_uri(),
    }
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{name}={text}\n" for name, text in client.items()))
    allowed = [f"-D{ALLOWED}.urls={held.as_uri()}", f"-D{ALLOWED}.files={held}"]
    with Broker(settings) as broker:
        tool = [
            *(java_command[0], *allowed, *java_command[1:]),
            *("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", broker.bootstrap),
            *("--command-config", str(properties), "--create", "--topic", "by-token"),
        ]

        def run() -> str:
            done = subprocess.run(
                tool, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            return done.stdout + done.stderr

        assert "Created topic by-token." in run()
        held.write_text(token(rsa.generate_private_key(65537, 2048)))
        told = run()
        assert "invalid_token" in told, told
        assert "an access token is refused: its signature is wrong" in broker.log
