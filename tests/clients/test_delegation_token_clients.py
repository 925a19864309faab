"""A delegation token's life as clients see it: made, logged in with, renewed, ended, refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager

import pytest
import trio

from odradek.client import AuthenticationError, KafkaClient, connection_settings_of
from odradek.client.admin.token_admin import SecretToken, TokenAdmin
from odradek.common.errors import ErrorCode, KafkaError
from odradek.testing import Broker

pytestmark = pytest.mark.clients

SECONDS = 30
LISTENER = "listener.name.sasl_plaintext"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "connection.failed.authentication.delay.ms": "20",
    "delegation.token.secret.key": "the key of all brokers",
    "delegation.token.expiry.check.interval.ms": "1000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
    f"{LISTENER}.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="root" password="root" user_alice="alice" user_bob="bob" user_root="root";'
    ),
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as broker:
        yield broker


def by_password(broker: Broker, name: str) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": name,
    }


def by_token(broker: Broker, secret: SecretToken) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{SCRAM} username="{secret.token.token_id}" '
        f'password="{secret.password}" tokenauth="true";',
    }


@asynccontextmanager
async def admin(given: dict[str, str]):  # type: ignore[no-untyped-def]  # an iterator of TokenAdmin
    made = connection_settings_of(given, lambda path: b"")
    assert made.bootstrap is not None
    with trio.fail_after(SECONDS):
        async with KafkaClient(
            made.bootstrap, made.client, authenticate=made.authenticate
        ) as client:
            await client.refresh_metadata(5000)
            yield TokenAdmin(client, 5000)


@asynccontextmanager
async def refused(code: ErrorCode):  # type: ignore[no-untyped-def]  # an iterator of nothing
    with pytest.raises(KafkaError) as raised:
        yield
    assert raised.value.code == code


async def test_the_life_of_a_token(broker: Broker) -> None:
    async with admin(by_password(broker, "alice")) as alice:
        secret = await alice.create(["User:bob"], 600_000)
        token = secret.token
        assert (token.owner, token.requester, token.renewers) == (
            "User:alice",
            "User:alice",
            ("User:bob",),
        )
        assert token.max_ms - token.issue_ms == 600_000
        assert await alice.describe() == [secret]
        assert await alice.describe(["User:nobody"]) == []
        assert await alice.describe([]) == []
        assert secret.password not in repr(secret)

        async with admin(by_token(broker, secret)) as mine:
            for call in (mine.create(), mine.describe(), mine.renew(secret.hmac)):
                async with refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
                    await call

        async with admin(by_password(broker, "bob")) as bob:
            assert await bob.renew(secret.hmac, 60_000) < token.expiry_ms
            assert [each.token.token_id for each in await bob.describe()] == [token.token_id]
            async with refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
                await bob.renew(b"no such token")
            async with refused(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED):
                await bob.create(owner="User:alice")
            others = await bob.create()
            async with refused(ErrorCode.INVALID_PRINCIPAL_TYPE):
                await bob.create(["Group:x"])

        async with refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
            await alice.renew(others.hmac)
        assert await alice.describe(["User:bob"]) == [
            secret._replace(token=(await alice.describe())[0].token)
        ]
        await alice.expire(secret.hmac)
        assert await alice.describe() == []
        with pytest.raises(AuthenticationError, match="invalid credentials"):
            async with admin(by_token(broker, secret)):
                pass


async def test_a_super_user_makes_tokens_for_others_and_sees_all(broker: Broker) -> None:
    async with admin(by_password(broker, "root")) as root:
        secret = await root.create(owner="User:carol")
        assert (secret.token.owner, secret.token.requester) == ("User:carol", "User:root")
        assert secret in await root.describe(["User:carol"])
        async with refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
            await root.expire(secret.hmac)


async def test_a_token_whose_time_is_over_logs_nobody_in(broker: Broker) -> None:
    async with admin(by_password(broker, "alice")) as alice:
        secret = await alice.create(max_lifetime_ms=30_000)
        async with admin(by_token(broker, secret)):
            pass
        broker.advance_time(31)
        with pytest.raises(AuthenticationError, match="invalid credentials"):
            async with admin(by_token(broker, secret)):
                pass
        async with refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
            while True:  # until it has been removed, it has expired
                try:
                    await alice.renew(secret.hmac)
                except KafkaError as error:
                    if error.code != ErrorCode.DELEGATION_TOKEN_EXPIRED:
                        raise
                broker.advance_time(1)


async def test_who_has_proven_nothing_may_not_request_tokens() -> None:
    with Broker({"delegation.token.secret.key": "key"}) as broker:
        async with admin({"bootstrap.servers": broker.bootstrap}) as anybody:
            for call in (anybody.create(), anybody.describe(), anybody.expire(b"x")):
                async with refused(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
                    await call


async def test_without_a_key_there_are_no_tokens() -> None:
    settings = {name: text for name, text in SETTINGS.items() if "secret.key" not in name}
    with Broker(settings) as broker:
        async with admin(by_password(broker, "alice")) as alice:
            for call in (alice.create(), alice.describe(), alice.renew(b"x"), alice.expire(b"x")):
                async with refused(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
                    await call
