"""Kafka's own kafka-delegation-tokens, and Java's clients that log in by tokens."""

from __future__ import annotations

import base64
import json
import re
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
LISTENER = "listener.name.sasl_plaintext"
PACKAGE = "org.apache.kafka.common.security"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
    "delegation.token.secret.key": "key",
    f"{LISTENER}.plain.sasl.jaas.config": (
        f'{PACKAGE}.plain.PlainLoginModule required username="root" password="root" '
        'user_root="root" user_alice="alice";'
    ),
}


def client(path: Path, mechanism: str, entry: str, **more: str) -> str:
    """A file of client settings, as Java's clients read it."""
    lines = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{PACKAGE}.{entry};",
        **more,
    }
    path.write_text("".join(f"{name}={text}\n" for name, text in lines.items()))
    return str(path)


def test_the_tool_and_clients_by_tokens(
    java, run, java_command, start_broker, tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    key = rsa.generate_private_key(65537, 2048)
    public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    keys.write_text(json.dumps({"keys": [{**public, "kid": "one"}]}))
    urls = {"sasl.oauthbearer.jwks.endpoint.url": keys.as_uri()}
    broker = start_broker(settings={**SETTINGS, **urls})
    alice = client(
        tmp_path / "alice",
        "PLAIN",
        'plain.PlainLoginModule required username="alice" password="alice"',
    )
    known = ("--bootstrap-server", broker.bootstrap, "--command-config", alice)
    made = java(
        TOKENS,
        *known,
        "--create",
        "--max-life-time-period",
        "-1",
        "--renewer-principal",
        "User:bob",
    )
    token_id = re.findall(r"Created delegation token with tokenId : (\S+)", made)[0]
    secret = next(word for word in made.split() if len(word) == 88)
    assert len(base64.b64decode(secret)) == 64

    # Without an owner the tool requests an empty list of them, to which Kafka answers no token.
    describe = ("--describe", "--owner-principal", "User:alice")
    described = java(TOKENS, *known, *describe)
    assert "Total number of tokens : 1" in described
    assert token_id in described
    assert secret in described
    assert "User:bob" in described

    by_token = client(
        tmp_path / "token",
        "SCRAM-SHA-512",
        f'scram.ScramLoginModule required username="{token_id}" password="{secret}" '
        'tokenauth="true"',
    )
    topics = (TOPICS, "--bootstrap-server", broker.bootstrap, "--command-config")
    java(*topics, by_token, "--create", "--topic", "made-by-token")
    assert java(*topics, by_token, "--list").split() == ["made-by-token"]

    period = ("--hmac", secret, "--renew-time-period", "60000")
    assert "Completed renew operation" in java(TOKENS, *known, "--renew", *period)
    period = ("--hmac", secret, "--expiry-time-period", "-1")
    assert "Completed expire operation" in java(TOKENS, *known, "--expire", *period)
    assert "Total number of tokens : 0" in java(TOKENS, *known, *describe)

    now = int(time.time())
    claims = {"sub": "carol", "iat": now, "exp": now + 3600, "scope": "kafka"}
    (tmp_path / "jwt").write_text(jwt.encode(claims, key, "RS256", {"kid": "one"}))
    given = tmp_path / "oauth"
    url = (tmp_path / "jwt").as_uri()
    client(
        given,
        "OAUTHBEARER",
        "oauthbearer.OAuthBearerLoginModule required",
        **{
            "sasl.login.callback.handler.class": (
                f"{PACKAGE}.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
            "sasl.oauthbearer.token.endpoint.url": url,
        },
    )
    program, *others = java_command
    allowed = [
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}",
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.files={tmp_path / 'jwt'}",
    ]
    listed = run(program, *allowed, *others, *topics, str(given), "--list")
    assert listed.split() == ["made-by-token"]
